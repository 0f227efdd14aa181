"""The parts of a search that is divided among owners, on disk, and the manifest that says how much of them counts.

    SEARCH/parts/manifest.json   written last, after all owners have committed a layer
    SEARCH/parts/owner-K/        the files of one owner, which only grow:
        numbers       int64 [n]       of its states, in increasing order
        keys          uint64 [n, 2]
        shown         uint64 [n, 2]   the key of the screen of each state, which may belong to another owner
        states        packed identities, each perhaps followed by a packed snapshot, in the order of their arrival
        state_spans   int64 [n, 3]    where the identity begins and ends, and where the snapshot ends
        rewards       float64 [expanded, A]
        edges         int64 [E, 2]    the pairs that lead to its states, and their numbers, layer by layer
        screen_keys   uint64 [m, 2]
        screens, screen_spans         likewise

The folder must be on a file system that all nodes share. An owner that begins again reads its files up to the manifest.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from efhorizon.build.append_file import AppendFile
from efhorizon.build.search_records import Entry, Seconds
from efhorizon.errors import StoreError
from efhorizon.io.decode import Count, Positive, Record, encoded_record, read_object, record_of

PARTS, MANIFEST = "parts", "manifest.json"
FILES = (
    "numbers", "keys", "shown", "states", "state_spans", "rewards", "edges", "screen_keys", "screens", "screen_spans"
)  # fmt: skip
_SECONDS_FOR_LOCK = 60.0  # an owner that was ended may need a moment to let go


class PartRecord(Record, frozen=True):
    """What counts of one owner's files."""

    files: dict[str, Entry]
    state_rows: list[Count]  # where the states of each layer since the base begin, and where the last layer ends
    edge_rows: list[Count]  # the same of edges; the first layer has none


class Manifest(Record, frozen=True):
    """How far a divided search has come."""

    num_owners: Positive
    layer_starts: Annotated[list[Count], Meta(min_length=2)]
    base_layers: Positive  # how many of the layer starts were there when the search was divided
    is_closed: bool
    seconds: Seconds
    parts: list[PartRecord]

    def __post_init__(self) -> None:
        if len(self.parts) != self.num_owners or not 2 <= self.base_layers <= len(self.layer_starts):
            raise ValueError("the numbers do not fit together")

    @property
    def num_states(self) -> int:
        return self.layer_starts[-1]

    @property
    def complete_horizon(self) -> int:
        return len(self.layer_starts) - 2


def read_manifest(search_folder: Path) -> Manifest | None:
    """The manifest of a search that is divided; None where it is not."""
    path = search_folder / PARTS / MANIFEST
    if not path.exists():
        return None
    return record_of(read_object(path, "the manifest of a divided search"), Manifest, str(path))


def write_manifest(search_folder: Path, manifest: Manifest) -> None:
    path = search_folder / PARTS / MANIFEST
    temporary = path.with_name(f".{MANIFEST}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(encoded_record(manifest))
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); what was committed is kept") from None


class PartFiles:
    """The files of one owner, which nobody else writes to."""

    def __init__(self, folder: Path, record: PartRecord | None, *, read_only: bool = False) -> None:
        self.folder = folder
        with ExitStack() as stack:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not read_only:
                    self._lock(stack)
                self._files = {}
                for name in FILES:
                    flags = os.O_RDWR | os.O_CREAT | (os.O_TRUNC if record is None else 0)
                    file = stack.enter_context(open(os.open(folder / name, flags, 0o644), "r+b", buffering=0))
                    self._files[name] = AppendFile(
                        folder / name, file, *((0, 0) if record is None else record.files[name])
                    )
            except OSError as error:
                raise StoreError(f"{folder}: cannot be opened ({error.strerror})") from None
            self.close = stack.pop_all().close

    def __getitem__(self, name: str) -> AppendFile:
        return self._files[name]

    def rows(self, name: str, dtype: Any, width: int, start: int, stop: int) -> NDArray[Any]:
        """Some rows of a file of numbers."""
        size = np.dtype(dtype).itemsize * width
        return np.frombuffer(self._files[name].read(start * size, stop * size), dtype).reshape(-1, width)

    def commit(self) -> dict[str, Entry]:
        for file in self._files.values():
            file.flush()
        return {name: (file.size, file.checksum) for name, file in self._files.items()}

    def _lock(self, stack: ExitStack) -> None:
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        stack.callback(os.close, descriptor)
        until = time.monotonic() + _SECONDS_FOR_LOCK
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise damaged_lock(self.folder) from None
                time.sleep(0.05)


def damaged_lock(folder: Path) -> StoreError:
    return StoreError(f"{folder}: another process is still writing here; wait for it or stop it")


def owner_folder(search_folder: Path, owner: int) -> Path:
    return search_folder / PARTS / f"owner-{owner}"
