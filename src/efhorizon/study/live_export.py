"""Runs on live environments as JSON lines: one row each, in the order of their names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from efhorizon.io.checksums import read_listed
from efhorizon.io.decode import json_object, plain, record_of, text_of
from efhorizon.study.live_runs import LiveRow

FILE = "live.jsonl"
_MAX_BYTES = 1 << 28


def encoded_live(rows: Sequence[LiveRow]) -> bytes:
    """The content of the file."""
    ordered = sorted(rows, key=lambda row: (row.id, row.algorithm, row.backend, row.setting, row.seed))
    return "".join(json.dumps(plain(row)) + "\n" for row in ordered).encode()


def read_live(path: Path) -> tuple[LiveRow, ...]:
    """The rows of a file; none if there is none."""
    if not path.exists():
        return ()
    what = "live runs as JSON lines"
    text = text_of(read_listed(path, what, _MAX_BYTES), path, what)
    lines = [(f"{path} line {number + 1}", line) for number, line in enumerate(text.splitlines()) if line]
    return tuple(record_of(json_object(line, where, what), LiveRow, where) for where, line in lines)
