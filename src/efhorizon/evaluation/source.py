"""The data of a study, from a results folder, an export of one, or a summary.csv on its own; and exports of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from efhorizon.errors import StoreError
from efhorizon.evaluation import rules, runs, summary_csv, theory
from efhorizon.evaluation.records import DEEP_RL, MdpSummary
from efhorizon.io.checksums import write_listed
from efhorizon.study import built_tables, export, live_export, stochastic_results
from efhorizon.study.analysis_record import AnyAnalysis, is_complete
from efhorizon.study.built_tables import BuiltTable
from efhorizon.study.live_runs import LiveResults, LiveRow
from efhorizon.study.records import Row
from efhorizon.study.results import Results, is_results
from efhorizon.study.stochastic_results import StochasticData


@dataclass(frozen=True)
class StudyData:
    """Everything that is known about a study."""

    path: Path  # where pictures are looked for
    analyses: Mapping[str, AnyAnalysis]  # by name
    runs: Sequence[Row]  # all of them
    summaries: list[MdpSummary]  # complete analyses only, where there is something to learn, by name
    titles: dict[str, str]  # bound name: title for people
    notes: tuple[str, ...] = ()  # what was left out, and why
    tables: tuple[BuiltTable, ...] = ()  # that were built, also those that were not analyzed
    live: tuple[LiveRow, ...] = ()  # runs in environments, without a table
    stochastic: StochasticData = field(default_factory=StochasticData)  # tables with chance

    def with_stochastic(self, path: Path | str) -> StudyData:
        """With the tables with chance of another folder, in place of those of this one."""
        other = study_data(path).stochastic
        if not other:
            raise StoreError(f"{path}: no tables with chance here; efhorizon sticky NAME makes results of them")
        return replace(self, stochastic=other)


def study_data(path: Path | str) -> StudyData:
    """Read a results folder, an export (mdps.parquet, runs.parquet, summary.csv), or one summary.csv."""
    path = Path(path)
    if not path.exists():
        raise StoreError(f"{path}: no such file or directory")
    if path.is_file():
        return _from_csv(path, path.parent)
    if is_results(path):
        return _from_results(Results.opened(path))
    if (path / export.MDPS).exists():
        return _from_export(path)
    if (path / summary_csv.FILE).exists():
        return _from_csv(path / summary_csv.FILE, path)
    if stochastic_results.is_exported(path):
        return StudyData(path, {}, [], [], {}, stochastic=stochastic_results.read_export(path))
    raise StoreError(f"{path}: no results here; there is no analyses/, rows/, {export.MDPS} or {summary_csv.FILE}")


def combined(path: Path, analyses: Mapping[str, AnyAnalysis], rows: Sequence[Row]) -> StudyData:
    """The data of a study from its analyses and run rows."""
    explored = {name: analysis for name, analysis in analyses.items() if is_complete(analysis)}
    complete = {name: each for name, each in explored.items() if theory.has_something_to_learn(each.figures)}
    selection = runs.rows_that_count(rows, complete)
    summaries, titles = [], {}
    for name in sorted(complete):
        rows_of = {algorithm: its for (of, algorithm), its in selection.rows.items() if of == name}
        found = {algorithm: runs.practice(its) for algorithm, its in rows_of.items()}
        trained = {algorithm: rules.trained_rows(its) for algorithm, its in rows_of.items() if algorithm in DEEP_RL}
        summaries.append(
            replace(
                theory.theory_summary(complete[name]),
                sample_complexities={algorithm: what.sample_complexity for algorithm, what in found.items()},
                budgets={algorithm: what.budget for algorithm, what in found.items()},
                returns={a: what.final_return for a, what in found.items() if what.final_return is not None},
                learnt={algorithm: runs.practice(its).sample_complexity for algorithm, its in trained.items() if its},
            )
        )
        titles.update(theory.titles_of(complete[name]))
    nothing_to_learn = "tables in which every action sequence earns the same, so that there is nothing to learn"
    reasons = {
        "unfinished tables, whose figures are intervals, are left out": set(analyses) - set(explored),
        f"{nothing_to_learn}, are left out": set(explored) - set(complete),
    }
    notes = tuple(f"{reason}: {', '.join(sorted(names))}" for reason, names in reasons.items() if names)
    return StudyData(path, analyses, rows, summaries, titles, (*notes, *selection.notes))


def write_export(folder: Path, data: StudyData) -> list[Path]:
    """Write a study as files that other programs read, and their checksums; returns their paths."""
    if data.stochastic and not data.analyses and not data.summaries:
        folder.mkdir(parents=True, exist_ok=True)
        return write_listed(folder, stochastic_results.encoded(data.stochastic))
    lines = [summary_csv.fields_of(each) for each in data.summaries]
    return write_listed(
        folder,
        {
            **stochastic_results.encoded(data.stochastic),
            export.MDPS: export.encoded_mdps(data.analyses, summary_csv.columns(data.summaries), lines),
            export.RUNS: export.encoded_runs(data.runs),
            summary_csv.FILE: summary_csv.encoded_summaries(data.summaries),
            built_tables.FILE: built_tables.encoded_tables(data.tables) if data.tables else None,
            live_export.FILE: live_export.encoded_live(data.live) if data.live else None,
        },
    )


def _from_results(results: Results) -> StudyData:
    stochastic, rows = stochastic_results.of_results(results.path, results.rows())
    data = combined(results.path, results.analyses(), rows)
    study = results.study()
    planned = () if study is None or study.plan.note is None else (study.plan.note,)
    live = tuple(LiveResults(results.path).rows())
    return replace(data, notes=(*planned, *data.notes), tables=results.tables(), live=live, stochastic=stochastic)


def _from_export(path: Path) -> StudyData:
    mdps = export.read_mdps(path / export.MDPS)
    rows = export.read_runs(path / export.RUNS)
    analyses = {mdp.analysis.name: mdp.analysis for mdp in mdps if mdp.analysis is not None}
    if not analyses:  # the export of a summary.csv
        summaries = summary_csv.checked_summaries(
            (summary_csv.summary_of(mdp.columns, mdp.where) for mdp in mdps), str(path / export.MDPS)
        )
        return StudyData(path, {}, rows, summaries, summary_csv.titles(summaries))
    tables, live = built_tables.read_tables(path / built_tables.FILE), live_export.read_live(path / live_export.FILE)
    stochastic = stochastic_results.read_export(path)
    return replace(combined(path, analyses, rows), tables=tables, live=live, stochastic=stochastic)


def _from_csv(file: Path, folder: Path) -> StudyData:
    summaries = summary_csv.read_summaries(file)
    return StudyData(folder, {}, [], summaries, summary_csv.titles(summaries))
