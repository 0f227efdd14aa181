"""Rows: one for each run, appended to a results directory and never changed.

    DIR/results.json          what this directory is
    DIR/rows/NAME.json        one row a file; the name says id, algorithm, backend, setting, seed and a digest
    DIR/claims/NAME.lock      locked by the process that is making this row; the lock ends with the process

The digest covers everything that a row depends on: hyperparameters, protocol, the table's fingerprint, the code. So a
row whose inputs have changed is another row, and is made again. Any number of sweeps can share a directory: a row is
made by whoever holds its lock, and a file appears complete or not at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from efhorizon.errors import StoreError
from efhorizon.io.files import write_json, written_aside

FORMAT, FORMAT_VERSION = "efhorizon-results", 1


@dataclass(frozen=True)
class RunKey:
    """What a row is of: equal keys mean the same experiment."""

    id: str
    algorithm: str
    backend: str
    setting: str
    seed: int
    hyperparameters: Mapping[str, Any]
    protocol: Mapping[str, Any]
    fingerprint: str  # of the table
    code: str  # digest of the code that runs it

    @property
    def name(self) -> str:
        """The name of the row's file."""
        content = json.dumps(asdict(self), sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        parts = (self.id, self.algorithm, self.backend, self.setting, f"seed{self.seed}", digest)
        return "__".join(re.sub(r"[^A-Za-z0-9.=-]", "_", part) for part in parts)


@dataclass(frozen=True)
class Row:
    """One run."""

    id: str
    algorithm: str
    backend: str
    setting: str
    seed: int
    sample_complexity: int | None  # None: not reached within the steps run
    solved_by: str | None
    steps: int  # timesteps run
    best_return: float | None
    final_return: float | None
    optimal_return: float
    # Points. PPO and DQN: timestep, return of the greedy episode, mean return of the training episodes since the last
    # point (None: there was none). GORP: timestep, then median, 10th and 90th percentile over its runs of the expected
    # return of the policy so far.
    learning_curve: list[list[float | None]]
    wall_seconds: float
    hyperparameters: dict[str, Any]
    protocol: dict[str, Any]
    provenance: dict[str, Any]


class Results:
    """A results directory."""

    def __init__(self, path: Path) -> None:
        """Open a directory, or make one where there is nothing."""
        self.path = path
        marker = path / "results.json"
        if marker.is_file():
            self._check(marker)
        elif path.exists() and (not path.is_dir() or any(not _is_unfinished_marker(child) for child in path.iterdir())):
            raise StoreError(f"{path}: not a results directory, and not empty; nothing was written")
        else:
            write_json(marker, {"format": FORMAT, "format_version": FORMAT_VERSION})
        self._rows, self._claims = path / "rows", path / "claims"
        self._rows.mkdir(exist_ok=True)
        self._claims.mkdir(exist_ok=True)

    def has(self, key: RunKey) -> bool:
        return self._file(key).exists()

    def append(self, key: RunKey, row: Row) -> Path:
        """Add a row; the caller holds its claim."""
        path = self._file(key)
        if path.exists():
            raise StoreError(f"{path}: this row is there already")
        with written_aside(path) as temporary:
            temporary.write_text(json.dumps(asdict(row), indent=1))
        return path

    def row(self, key: RunKey) -> dict[str, Any] | None:
        """The row of a key, if it is there."""
        path = self._file(key)
        return _read(path) if path.exists() else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows, in the order of their names."""
        yield from map(_read, sorted(self._rows.glob("[!.]*.json")))

    @contextmanager
    def claimed(self, keys: list[RunKey]) -> Iterator[list[RunKey]]:
        """Those of the keys that have no row and that nobody else is working on; they are ours within the block."""
        descriptors: list[int] = []
        ours: list[RunKey] = []
        try:
            for key in keys:
                if self.has(key):
                    continue
                descriptor = os.open(self._claims / f"{key.name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    continue
                descriptors.append(descriptor)
                if not self.has(key):  # it may have been written between the look and the lock
                    ours.append(key)
            yield ours
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _file(self, key: RunKey) -> Path:
        return self._rows / f"{key.name}.json"

    def _check(self, marker: Path) -> None:
        try:
            content = json.loads(marker.read_text())
        except ValueError:
            content = None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise StoreError(f"{marker}: not the mark of a results directory; nothing was written")
        if content.get("format_version") != FORMAT_VERSION:
            raise StoreError(f"{marker}: made by another version of efhorizon; nothing was written")


def _is_unfinished_marker(path: Path) -> bool:
    """What a process leaves that is killed while it makes a directory."""
    return path.name.startswith(".results.json.") and path.suffix == ".tmp"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise StoreError(f"{path}: not a row; delete it to have it made again")
    return content
