"""Analyses and runs of tables with chance: beside the others in a results folder, and two files of an export.

DIR/stochastic/NAME.json        the analysis of one table with chance
DIR/rows/...                    its runs, among all others; the name of such a table ends with -sticky0.25

stochastic.jsonl                an export: the analyses, one in a line
stochastic-runs.jsonl           the runs on these tables, one in a line
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from efhorizon.errors import StoreError
from efhorizon.io.checksums import read_listed
from efhorizon.io.decode import json_object, plain, read_object, record_of, text_of, write_record
from efhorizon.io.names import safe_name
from efhorizon.study.records import Row
from efhorizon.study.stochastic_record import StochasticRecord

ANALYSES, RUNS = "stochastic.jsonl", "stochastic-runs.jsonl"
_FOLDER = "stochastic"
_MAX_BYTES = 1 << 28
_RecordT = TypeVar("_RecordT")


@dataclass(frozen=True)
class StochasticData:
    """What is known about tables with chance."""

    analyses: Mapping[str, StochasticRecord] = field(default_factory=dict)  # by name
    runs: Sequence[Row] = ()

    def __bool__(self) -> bool:
        return bool(self.analyses)


def write_analysis(results: Path, record: StochasticRecord) -> None:
    """Into a results folder."""
    path = _file(results, record.id)
    path.parent.mkdir(exist_ok=True)
    write_record(path, record)


def read_analysis(results: Path, name: str) -> StochasticRecord | None:
    """From a results folder, if it is there."""
    path = _file(results, name)
    return _read(path) if path.exists() else None


def of_results(results: Path, rows: Iterable[Row]) -> tuple[StochasticData, list[Row]]:
    """What a results folder has of tables with chance, and its other rows."""
    found = [_read(path) for path in sorted((results / _FOLDER).glob("[!.]*.json"))]
    analyses = {record.id: record for record in found}
    own, others = list[Row](), list[Row]()
    for row in rows:
        (own if row.id in analyses else others).append(row)
    return StochasticData(analyses, own), others


def is_exported(folder: Path) -> bool:
    return (folder / ANALYSES).exists()


def encoded(data: StochasticData) -> dict[str, bytes | None]:
    """The files of an export; None for those that there is no need of."""
    analyses = [data.analyses[name] for name in sorted(data.analyses)]
    runs = sorted(data.runs, key=lambda row: (row.id, row.algorithm, row.backend, row.setting, row.seed))
    return {ANALYSES: _lines(analyses), RUNS: _lines(runs)}


def read_export(folder: Path) -> StochasticData:
    """The files of an export; nothing if they are not there."""
    analyses = _records(folder / ANALYSES, "analyses as JSON lines", StochasticRecord)
    named = {record.id: record for record in analyses}
    if len(named) < len(analyses):
        raise StoreError(f"{folder / ANALYSES}: there are several analyses of one table")
    return StochasticData(named, _records(folder / RUNS, "runs as JSON lines", Row))


def _lines(records: Sequence[msgspec.Struct]) -> bytes | None:
    return "".join(json.dumps(plain(record)) + "\n" for record in records).encode() if records else None


def _records(path: Path, what: str, kind: type[_RecordT]) -> list[_RecordT]:
    if not path.exists():
        return []
    text = text_of(read_listed(path, what, _MAX_BYTES), path, what)
    lines = [(f"{path} line {number + 1}", line) for number, line in enumerate(text.splitlines()) if line]
    return [record_of(json_object(line, where, what), kind, where) for where, line in lines]


def _file(results: Path, name: str) -> Path:
    return results / _FOLDER / f"{safe_name(name)}.json"


def _read(path: Path) -> StochasticRecord:
    try:
        return record_of(read_object(path, "an analysis"), StochasticRecord, str(path))
    except StoreError as error:
        raise StoreError(f"{error}; delete it and it will be made again") from None
