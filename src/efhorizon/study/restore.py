"""The way back from an export: what it holds, taken over into a results directory so that a study goes on elsewhere.

A row comes back under the file name and with the content that it had, so it counts as done wherever table,
hyperparameters and code are still the same. Analyses come without their pictures: they count in tables and reports,
and a study of their MDPs makes them again. Of tables that were built elsewhere there are the lines of OUT/tables.csv.
Everything is checked before anything is written, and what is there stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from efhorizon.errors import StoreError
from efhorizon.evaluation._fields import Fields
from efhorizon.io.files import write_json
from efhorizon.study import built_tables, export
from efhorizon.study.analyses import analysis_path
from efhorizon.study.built_tables import BuiltTable
from efhorizon.study.records import Results, Row, RunKey

_LONGEST_NAME = 200  # file systems allow 255 characters, and claims and unfinished files have longer names than rows
_ROW_FIELDS = frozenset(field.name for field in fields(Row))


@dataclass(frozen=True)
class Restored:
    """What came of an export."""

    file: Path  # with the rows
    num_taken_over: int  # rows
    num_there: int  # rows that were there already, which stay as they are
    num_being_made: int  # rows that another process is making at this moment
    num_analyses: int  # taken over
    num_tables: int  # that are listed, and not built here

    def as_json(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "taken_over": self.num_taken_over,
            "were_there": self.num_there,
            "being_made": self.num_being_made,
            "analyses": self.num_analyses,
            "tables": self.num_tables,
        }


def restore(path: Path, out: Path) -> Restored:
    """Add what an export (its folder, or runs.parquet alone) has and the results directory `out` has not."""
    file = _runs_file(path)
    rows = [
        (_key(row, f"{file}: row {number}"), _row(row, f"{file}: row {number}"))
        for number, row in enumerate(export.read_runs(file))
    ]
    analyses = _analyses(path) if path.is_dir() else {}
    tables = built_tables.read_tables(path / built_tables.FILE) if path.is_dir() else ()
    results = Results(out)
    num_taken_over = num_there = 0
    for key, row in rows:  # one claim at a time: a process can hold only so many open files
        with results.claimed([key]) as ours:
            if ours:
                results.append(key, row)
                num_taken_over += 1
            elif results.has(key):
                num_there += 1
    new = {name: content for name, content in analyses.items() if not analysis_path(out, name).exists()}
    for name, content in new.items():
        write_json(analysis_path(out, name), content)
    return Restored(
        file,
        num_taken_over,
        num_there,
        num_being_made=len(rows) - num_taken_over - num_there,
        num_analyses=len(new),
        num_tables=_list_tables(out / built_tables.FILE, tables),
    )


def _analyses(export_folder: Path) -> dict[str, dict[str, Any]]:
    """The analyses of an export by the names of their files."""
    file = export_folder / export.MDPS
    if not file.exists():
        return {}
    analyses = {content["id"]: content for content in export.read_mdps(file)[0].values()}
    for name in analyses:
        if not _can_be_a_file(name):
            raise StoreError(f"{file}: an MDP is called {name[:_LONGEST_NAME]!r}: nothing that a file can be called")
    return analyses


def _can_be_a_file(name: str) -> bool:
    is_plain = name.isprintable() and Path(name).name == name and not name.startswith(".")
    return is_plain and len(name.encode()) <= _LONGEST_NAME


def _list_tables(file: Path, tables: tuple[BuiltTable, ...]) -> int:
    """Add tables to the list of those that were built elsewhere; returns how many are new."""
    listed = {table.name: table for table in built_tables.read_tables(file)}
    new = {table.name: table for table in tables if table.name not in listed}
    if new:
        built_tables.write_tables(file, [*listed.values(), *new.values()])
    return len(new)


def _runs_file(path: Path) -> Path:
    """The file with the rows of an export."""
    file = path / export.RUNS if path.is_dir() else path
    if not file.is_file():
        raise StoreError(f"{file}: no such file; `efhorizon evaluate RESULTS --export EXPORT` writes it")
    return file


def _key(row: Mapping[str, Any], where: str) -> RunKey:
    """What a row is of; `read_runs` has checked everything but the provenance."""
    provenance = Fields(row["provenance"], f"{where}: provenance")
    key = RunKey(
        id=row["id"],
        algorithm=row["algorithm"],
        backend=row["backend"],
        setting=row["setting"],
        seed=row["seed"],
        hyperparameters=row["hyperparameters"],
        protocol=row["protocol"],
        fingerprint=provenance.text("table_fingerprint"),
        code=provenance.text("code"),
    )
    if len(key.name) > _LONGEST_NAME:
        raise StoreError(f"{where}: id, algorithm, backend and setting are too long for the name of a file")
    return key


def _row(row: Mapping[str, Any], where: str) -> Row:
    """The row itself. A field that this version does not know would be lost, so it is refused."""
    unknown = sorted(set(row) - _ROW_FIELDS)
    if unknown:
        raise StoreError(f"{where}: fields that this version of efhorizon does not know: {', '.join(unknown)}")
    checked = Fields(row, where)
    checked.optional_text("solved_by")
    checked.optional_number("best_return")
    checked.number("optimal_return")
    checked.number("wall_seconds")
    curve = row["learning_curve"]
    if not isinstance(curve, list) or not all(_is_point(point) for point in curve):
        raise StoreError(f"{where}: the points of the learning curve must be a timestep and two or three numbers")
    return Row(**row)


def _is_point(point: Any) -> bool:
    return isinstance(point, list) and len(point) in (3, 4) and isinstance(point[0], int)
