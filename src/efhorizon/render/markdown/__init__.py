"""A study as files to commit: tables.md, lists.md and figures; full-length.md where there are live runs, stochastic.md
where there are tables with chance.

The same study always gives the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from efhorizon.evaluation.by_suite import run_counts, suite_bounds
from efhorizon.evaluation.live_curves import live_figures
from efhorizon.evaluation.rules import under
from efhorizon.evaluation.source import StudyData
from efhorizon.evaluation.stochastic import stochastic_tables
from efhorizon.evaluation.tables import Tables
from efhorizon.io.files import written_aside
from efhorizon.render.markdown.figures import Figure, study_figures
from efhorizon.render.markdown.lists_page import lists_page
from efhorizon.render.markdown.live_page import live_files
from efhorizon.render.markdown.stochastic_page import stochastic_files
from efhorizon.render.markdown.tables_page import Study, tables_page
from efhorizon.render.markdown.text import picture

TABLES, LISTS = "tables.md", "lists.md"


def publication(data: StudyData, tables: Tables, by_papers_rule: Tables) -> dict[str, str]:
    """The content of every file by its name; `tables` are `all_tables` of the data, by either rule."""
    counted = under(tables.rule, data.summaries)
    figures = study_figures(counted, tables, data.titles)
    study = Study(
        summaries=counted,
        all_summaries=data.summaries,
        tables=tables,
        by_papers_rule=by_papers_rule,
        suites=suite_bounds(counted, data.titles, num_resamples=tables.num_resamples, seed=tables.seed),
        runs=run_counts(data),
        pictures=_pictures(figures),
    )
    return {
        TABLES: tables_page(study),
        LISTS: lists_page(data, tables),
        **{figure.file: figure.svg for figure in figures},
        **live_files(live_figures(data.live)),
        **stochastic_files(stochastic_tables(data, num_resamples=tables.num_resamples, seed=tables.seed)),
    }


def write_publication(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write the files, each in one step; other files in the folder stay."""
    paths = []
    for name, content in files.items():
        path = folder / name
        with written_aside(path) as temporary:
            temporary.write_bytes(content.encode("utf-8", "replace"))  # the same line ends on every system
        paths.append(path)
    return paths


def _pictures(figures: Sequence[Figure]) -> dict[str, str]:
    """The figures of each section as Markdown: the large one alone, the others side by side."""
    sections: dict[str, list[str]] = defaultdict(list)
    for figure in figures:
        width = "75%" if figure.is_large else "49%"
        sections[figure.section].append(picture(figure.file, figure.caption, width))
    return {key: "<p>\n" + "\n".join(shown) + "\n</p>" for key, shown in sections.items()}
