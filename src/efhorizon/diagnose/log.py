"""The log of a diagnosis: one line of JSON for each task that was done, so that nothing is done twice.

The first line says what was diagnosed and with which seed; a log of anything else is refused. A process that is killed
can leave half a line at the end, which is dropped. Tasks are found by their key, in whatever order they were done.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from efhorizon.errors import StoreError

FORMAT = "efhorizon-diagnose-1"
_MAX_BYTES = 1 << 30
_T = TypeVar("_T")


class Log:
    """What was done so far; in memory only where no path is given."""

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        self._results: dict[str, Any] = {}  # in plain types
        self._file: BinaryIO | None = None
        if path is not None:
            self._open(path, {"format": FORMAT, **settings})

    def found(self, key: str, kind: type[_T]) -> _T | None:
        """The result of a task, if it was done."""
        if key not in self._results:
            return None
        try:
            return msgspec.convert(self._results[key], kind)
        except msgspec.MsgspecError as error:
            raise StoreError(
                f"the log of this diagnosis is damaged at {key!r}: {error}; delete it to begin again"
            ) from None

    def add(self, key: str, result: Any) -> None:
        self._results[key] = msgspec.to_builtins(result)
        if self._file is not None:
            self._file.write(json.dumps({"key": key, "result": self._results[key]}).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, path: Path, settings: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise StoreError(f"{path}: another process is writing this diagnosis") from None
        if self._file.seek(0, os.SEEK_END) > _MAX_BYTES:
            raise StoreError(f"{path}: over {_MAX_BYTES:,} bytes are too many for a log")
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        self._file.seek(0, os.SEEK_END)
        lines = whole.splitlines()
        expected = json.dumps(settings, sort_keys=True).encode()
        if not lines:
            self._file.write(expected + b"\n")
            self._file.flush()
        elif lines[0] != expected:
            self.close()
            raise StoreError(f"{path}: a log of another diagnosis, or of another version; delete it to begin again")
        for number, line in enumerate(lines[1:], 2):
            try:
                entry = msgspec.convert(json.loads(line), _Entry)  # json knows Infinity, which an m can be
            except (ValueError, RecursionError) as error:
                self.close()
                raise StoreError(f"{path}: line {number} is damaged ({error}); delete it to begin again") from None
            self._results[entry.key] = entry.result


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    result: Any
