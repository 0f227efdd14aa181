"""Where results come from: a results directory, an export of one, or a summary.csv on its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from efhorizon.errors import StoreError
from efhorizon.evaluation import runs, summary_csv, theory
from efhorizon.evaluation._fields import read_object
from efhorizon.evaluation.records import MdpSummary
from efhorizon.study import built_tables, export
from efhorizon.study.built_tables import BuiltTable, read_tables, tables_in
from efhorizon.study.records import FORMAT, FORMAT_VERSION


@dataclass(frozen=True)
class StudyData:
    """Everything that is known of a study."""

    path: Path  # where pictures are looked for
    analyses: dict[str, dict[str, Any]]  # by name
    runs: list[dict[str, Any]]  # run rows, all of them
    summaries: list[MdpSummary]  # complete analyses only, where there is something to learn, by name
    titles: dict[str, str]  # bound name: title for people
    notes: tuple[str, ...] = ()  # what was left out, and why
    tables: tuple[BuiltTable, ...] = ()  # that were built, also those that were not analyzed


def study_data(path: Path | str) -> StudyData:
    """Read a results directory, an export (mdps.parquet, runs.parquet, summary.csv), or one summary.csv."""
    path = Path(path)
    if not path.exists():
        raise StoreError(f"{path}: no such file or directory")
    if path.is_file():
        return _from_csv(path, path.parent)
    if any((path / name).exists() for name in ("results.json", "analyses", "rows")):
        return _from_results(path)
    if (path / export.MDPS).exists():
        return _from_export(path)
    if (path / summary_csv.FILE).exists():
        return _from_csv(path / summary_csv.FILE, path)
    raise StoreError(f"{path}: no results here: neither analyses/ nor rows/, {export.MDPS} or {summary_csv.FILE}")


def combined(
    path: Path, analyses: dict[str, dict[str, Any]], rows: list[dict[str, Any]], where: str = "analyses"
) -> StudyData:
    """The data of a study from its analyses and run rows."""
    explored = {name: content for name, content in analyses.items() if theory.is_complete(content)}
    complete = {name: content for name, content in explored.items() if theory.has_something_to_learn(content)}
    selection = runs.selected_rows(rows, {name: theory.fingerprint(content) for name, content in complete.items()})
    summaries, titles = [], {}
    for name in sorted(complete):
        found = {algorithm: runs.practice(its) for (of, algorithm), its in selection.rows.items() if of == name}
        summaries.append(
            replace(
                theory.theory_summary(complete[name], f"{where}/{name}"),
                sample_complexities={algorithm: what.sample_complexity for algorithm, what in found.items()},
                budgets={algorithm: what.budget for algorithm, what in found.items()},
                returns={a: what.final_return for a, what in found.items() if what.final_return is not None},
            )
        )
        titles.update(theory.titles_of(complete[name], f"{where}/{name}"))
    reasons = {
        "unfinished tables, whose figures are intervals, are left out": set(analyses) - set(explored),
        "tables that pay the same whatever is done, so that there is nothing to learn, are left out": set(explored)
        - set(complete),
    }
    notes = tuple(f"{reason}: {', '.join(sorted(names))}" for reason, names in reasons.items() if names)
    return StudyData(path, analyses, rows, summaries, titles, (*notes, *selection.notes))


def _from_results(path: Path) -> StudyData:
    marker = path / "results.json"
    if marker.exists():
        content = read_object(marker, "the mark of a results directory")
        if content.get("format") != FORMAT or content.get("format_version") != FORMAT_VERSION:
            raise StoreError(f"{marker}: not the mark of a results directory of this version")
    analyses: dict[str, dict[str, Any]] = {}
    for file in sorted((path / "analyses").glob("[!.]*.json")):
        content = read_object(file, "an analysis")
        name = theory.checked_name(content, str(file))
        if name in analyses:
            raise StoreError(f"{file}: there is another analysis of {name}")
        analyses[name] = content
    rows = []
    for file in sorted((path / "rows").glob("[!.]*.json")):
        row = read_object(file, "a row")
        runs.check_row(row, str(file))
        rows.append(row)
    data = combined(path, analyses, rows, str(path / "analyses"))
    notes = (*_plan_notes(path / "study.json"), *data.notes)
    return replace(data, notes=notes, tables=_tables_of_results(path))


def _tables_of_results(path: Path) -> tuple[BuiltTable, ...]:
    """The tables that are here, and those that the study built elsewhere before an export brought it here."""
    elsewhere = {table.name: table for table in read_tables(path / built_tables.FILE)}
    here = {table.name: table for table in tables_in(path / "tables")}
    tables = elsewhere | here
    return tuple(tables[name] for name in sorted(tables))


def _plan_notes(file: Path) -> tuple[str, ...]:
    """What the plan of a study wants its readers to know."""
    plan = read_object(file, "the record of a study").get("plan") if file.exists() else None
    note = plan.get("note") if isinstance(plan, dict) else None
    return (note,) if isinstance(note, str) else ()


def _from_export(path: Path) -> StudyData:
    analyses, summaries = export.read_mdps(path / export.MDPS)
    rows = export.read_runs(path / export.RUNS)
    if not analyses:  # the export of a summary.csv
        return StudyData(path, {}, rows, summaries, summary_csv.titles(summaries))
    tables = read_tables(path / built_tables.FILE)
    return replace(combined(path, analyses, rows, str(path / export.MDPS)), tables=tables)


def _from_csv(file: Path, folder: Path) -> StudyData:
    summaries = summary_csv.read_summaries(file)
    return StudyData(folder, {}, [], summaries, summary_csv.titles(summaries))
