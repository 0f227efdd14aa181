"""The way back from an export: its content is taken over into a results folder, so that a study continues elsewhere.

A row comes back under the file name and with the content that it had, so it counts as done wherever table,
hyperparameters and code are still the same. Analyses come without their pictures: they count in tables and reports,
and a study of their MDPs makes only the pictures. Of tables that were built elsewhere there are the lines of
OUT/tables.csv.
Everything is checked before anything is written, and what is there stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET

from efhorizon.errors import StoreError
from efhorizon.io.names import is_safe_name
from efhorizon.study import built_tables, export
from efhorizon.study.analysis_record import AnyAnalysis
from efhorizon.study.records import Row, RunKey
from efhorizon.study.results import Results

_LONGEST_NAME = 200  # file systems allow 255 characters, and claims and unfinished files have longer names than rows


@dataclass(frozen=True)
class Restored:
    """What was taken over from an export."""

    file: Path  # with the rows
    num_taken_over: int  # rows
    num_there: int  # rows that were there already, which stay as they are
    num_being_made: int  # rows that another process is making at this moment
    num_analyses: int  # taken over
    num_tables: int  # that are listed, and not built here

    def as_json(self) -> dict[str, str | int]:
        return {
            "file": str(self.file),
            "taken_over": self.num_taken_over,
            "were_there": self.num_there,
            "being_made": self.num_being_made,
            "analyses": self.num_analyses,
            "tables": self.num_tables,
        }


def restore(path: Path, out: Path) -> Restored:
    """Add what an export (its folder, or runs.parquet alone) has and the results folder `out` lacks."""
    file = _runs_file(path)
    rows = [(_key(row, f"{file}: row {number}"), row) for number, row in enumerate(export.read_runs(file))]
    analyses = _analyses(path / export.MDPS) if path.is_dir() else []
    tables = built_tables.read_tables(path / built_tables.FILE) if path.is_dir() else ()
    results = Results.made(out)
    num_taken_over = num_there = 0
    for key, row in rows:  # one claim at a time: a process can hold only so many open files
        with results.claimed([key]) as ours:
            if ours:
                results.append(key, row)
                num_taken_over += 1
            elif results.has(key):
                num_there += 1
    new = [analysis for analysis in analyses if not results.has_analysis(analysis.id)]
    for analysis in new:
        results.write_analysis(analysis)
    return Restored(
        file,
        num_taken_over,
        num_there,
        num_being_made=len(rows) - num_taken_over - num_there,
        num_analyses=len(new),
        num_tables=results.list_tables(tables),
    )


def _analyses(file: Path) -> list[AnyAnalysis]:
    """The analyses of an export, each of which can be a file."""
    if not file.exists():
        return []
    analyses = [mdp.analysis for mdp in export.read_mdps(file) if mdp.analysis is not None]
    for analysis in analyses:
        if not is_safe_name(analysis.id):
            raise StoreError(f"{file}: the MDP's name {analysis.id[:80]!r} cannot be the name of a file")
    return list({analysis.id: analysis for analysis in analyses}.values())


def _runs_file(path: Path) -> Path:
    """The file with the rows of an export."""
    file = path / export.RUNS if path.is_dir() else path
    if not file.is_file():
        raise StoreError(f"{file}: no such file; `efhorizon evaluate RESULTS --export EXPORT` writes it")
    return file


def _key(row: Row, where: str) -> RunKey:
    """What a row is about."""
    fingerprint, code = row.provenance.table_fingerprint, row.provenance.code
    if fingerprint is UNSET or code is UNSET:
        raise StoreError(f"{where}: provenance: {'code' if code is UNSET else 'table_fingerprint'} is missing")
    key = RunKey(
        row.id, row.algorithm, row.backend, row.setting, row.seed, row.hyperparameters, row.protocol, fingerprint, code
    )
    if len(key.name) > _LONGEST_NAME:
        raise StoreError(f"{where}: id, algorithm, backend and setting are too long for the name of a file")
    if key.name.startswith("."):
        raise StoreError(f"{where}: {key.id[:80]!r} cannot be the beginning of a file's name")
    return key
