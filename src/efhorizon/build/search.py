"""A search on disk: append-only files, and one small commit file that says how much of each counts.

States are numbered in breadth-first order, so a search needs no queue: the first `num_expanded` states have been
expanded, the next one to expand is the next number, and the states at depth d are a range of numbers. Killed at any
moment, a search continues from its last commit; anything after it in the files is cut off.

    config.json    what is searched: simulator, versions, dictionaries (never changes)
    commit.json    layer starts, and the length and checksum of each file:
    transitions    int32 [expanded, A]
    rewards        float64 [expanded, A]
    state_keys     uint64 [S, 2]
    state_screens  int32 [S]
    states         packed identities, each perhaps followed by a packed snapshot
    state_index    int64 [S, 2], where in `states` the identity and the snapshot end
    screen_keys, screens, screen_index: likewise
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.expand import Codec, Expansion, Found, KeyCollisionError
from efhorizon.build.keys import KeyIndex
from efhorizon.errors import StoreError
from efhorizon.io.files import write_json

_FILES = (
    "transitions",
    "rewards",
    "state_keys",
    "state_screens",
    "state_index",
    "states",
    "screen_keys",
    "screen_index",
    "screens",
)


_CHECKSUM_BLOCK = 1 << 28


class Search:
    """An open search; one process at a time may hold it."""

    def __init__(self, folder: Path) -> None:
        """Open the search in a folder, truncated to its last commit."""
        self.folder = folder
        self._lock = _locked(folder)
        self.config = _read_json(folder / "config.json")
        commit = _read_json(folder / "commit.json")
        self.num_actions: int = self.config["num_actions"]
        self.screen_shape: tuple[int, int, int] = tuple(self.config["screen_shape"])
        self.state_codec = Codec(base64.b64decode(self.config["state_dictionary"]))
        self.screen_codec = Codec(base64.b64decode(self.config["screen_dictionary"]))
        self.layer_starts: list[int] = list(commit["layer_starts"])
        self.num_expanded: int = commit["num_expanded"]
        self.seconds: float = commit["seconds"]
        self._files = {name: _AppendFile(folder / name, *commit["files"][name]) for name in _FILES}
        self._state_keys = KeyIndex(self._array("state_keys", np.uint64, (-1, 2)))
        self._screen_keys = KeyIndex(self._array("screen_keys", np.uint64, (-1, 2)))

    @classmethod
    def create(cls, folder: Path, config: dict[str, Any], start: Expansion) -> Search:
        """Begin a search whose start state and screen are the only ones found in `start`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (folder / name).write_bytes(b"")
        write_json(folder / "config.json", config)
        empty = {name: [0, 0] for name in _FILES}
        write_json(folder / "commit.json", {"layer_starts": [0], "num_expanded": 0, "seconds": 0.0, "files": empty})
        search = cls(folder)
        search._add_found(start)
        search.layer_starts.append(1)
        search.commit()
        return search

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether a search was begun in a folder; one killed before its start state was committed does not count."""
        commit = folder / "commit.json"
        return commit.exists() and len(_read_json(commit).get("layer_starts", ())) > 1

    @property
    def num_states(self) -> int:
        return len(self._state_keys)

    @property
    def num_screens(self) -> int:
        return len(self._screen_keys)

    @property
    def is_closed(self) -> bool:
        """Whether every state that can be reached at any time has been expanded."""
        return self.num_expanded == self.num_states

    @property
    def complete_horizon(self) -> int:
        """The longest horizon whose table is known: every state at depth below it has been expanded."""
        return len(self.layer_starts) - 2

    def num_states_within(self, horizon: int) -> int:
        """States at depth below the horizon, the only ones in which an action is taken; so far as they are known."""
        return self.layer_starts[horizon] if horizon < len(self.layer_starts) else self.num_states

    def batch_stop(self, start: int, size: int, horizon: int) -> int:
        """Where a batch from `start` ends: it neither crosses a layer nor leaves what is known or needed."""
        stop = min(start + size, self.num_states_within(horizon))
        return min(stop, self.layer_starts[-1]) if start < self.layer_starts[-1] else stop

    def packed_states(self, start: int, stop: int) -> list[bytes]:
        """Snapshots of a range of states, packed."""
        ends = self._index("state_index", start - 1, stop)
        data = self._files["states"].read(int(ends[0, 1]), int(ends[-1, 1]))
        base = int(ends[0, 1])
        packed = []
        for (_, before), (middle, end) in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            first = middle if end > middle else before  # its own snapshot, or the identity
            packed.append(data[first - base : end - base])
        return packed

    def state(self, number: int) -> bytes:
        return self.state_codec.unpack(self.packed_states(number, number + 1)[0])

    def screen(self, number: int) -> NDArray[np.uint8]:
        before, end = (int(i) for i in self._index("screen_index", number - 1, number + 1)[:, 1])
        data = self.screen_codec.unpack(self._files["screens"].read(before, end))
        return np.frombuffer(data, np.uint8).reshape(self.screen_shape)

    def add(self, expansion: Expansion) -> None:
        """Append the expansion of the next states: they must be expanded in the order of their numbers."""
        numbers = self._add_found(expansion)
        lookup = np.append(numbers, np.int32(-1))  # successor -1 stays -1
        self._files["transitions"].append(np.ascontiguousarray(lookup[expansion.successors], np.int32))
        self._files["rewards"].append(np.ascontiguousarray(expansion.rewards, np.float64))
        self.num_expanded += len(expansion.rewards)

    def close_layer(self) -> bool:
        """Note the end of a layer if the last state of one was expanded; whether it was."""
        if self.num_expanded != self.layer_starts[-1] or self.layer_starts[-1] == self.num_states:
            return False
        self.layer_starts.append(self.num_states)
        return True

    def commit(self) -> None:
        """Make everything so far count, in one step."""
        for file in self._files.values():
            file.flush()
        content = {
            "layer_starts": self.layer_starts,
            "num_expanded": self.num_expanded,
            "seconds": self.seconds,
            "files": {name: [file.size, file.checksum] for name, file in self._files.items()},
        }
        write_json(self.folder / "commit.json", content)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._lock.close()

    def transitions(self, count: int) -> NDArray[np.int32]:
        """Transitions [count, A] of the first states, checked against the checksum where all are read."""
        return self._array("transitions", np.int32, (-1, self.num_actions))[:count]

    def rewards(self, count: int) -> NDArray[np.float64]:
        return self._array("rewards", np.float64, (-1, self.num_actions))[:count]

    def state_screens(self, count: int) -> NDArray[np.int32]:
        return self._array("state_screens", np.int32, (-1,))[:count]

    def _add_found(self, expansion: Expansion) -> NDArray[np.int32]:
        screen_numbers = self._add_strings("screen", self._screen_keys, expansion.screens, None)[0]
        numbers, new = self._add_strings("state", self._state_keys, expansion.states, expansion.snapshots)
        self._files["state_screens"].append(screen_numbers[expansion.state_screens[new]])
        return numbers

    def _add_strings(
        self, kind: str, index: KeyIndex, found: Found, snapshots: tuple[bytes, ...] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Number the strings, append the new ones, compare the others with what is stored; (numbers, which are new)."""
        known = len(index)
        numbers = index.numbers(found.keys)
        ends = np.cumsum(np.maximum(found.lengths, 0))
        new = np.flatnonzero(numbers >= known)
        codec = self.state_codec if kind == "state" else self.screen_codec
        for i in np.flatnonzero((numbers < known) & (found.lengths >= 0)).tolist():
            packed = found.data[int(ends[i]) - int(found.lengths[i]) : int(ends[i])]
            before, end = self._span(f"{kind}_index", int(numbers[i]))
            stored = self._files[f"{kind}s"].read(before, end)
            if stored != packed and codec.unpack(stored) != codec.unpack(packed):
                raise KeyCollisionError(f"two different {kind}s have the same 128-bit key")
        rows = np.empty((len(new), 2), np.int64)
        chunks = []
        position = self._files[f"{kind}s"].size
        for row, i in enumerate(new.tolist()):
            chunk = found.data[int(ends[i]) - int(found.lengths[i]) : int(ends[i])]
            snapshot = snapshots[i] if snapshots is not None else b""
            chunks += [chunk, snapshot]
            rows[row] = position + len(chunk), position + len(chunk) + len(snapshot)
            position += len(chunk) + len(snapshot)
        self._files[f"{kind}_keys"].append(found.keys[new])
        self._files[f"{kind}_index"].append(rows)
        self._files[f"{kind}s"].append(b"".join(chunks))
        return numbers, new

    def _span(self, name: str, number: int) -> tuple[int, int]:
        """Where the identity of a state, or a screen, begins and ends."""
        rows = self._index(name, number - 1, number + 1)
        return int(rows[0, 1]), int(rows[1, 0])

    def _index(self, name: str, start: int, stop: int) -> NDArray[np.int64]:
        """Rows start .. stop - 1 of an index file; row -1 is zero."""
        rows = np.zeros((stop - start, 2), np.int64)
        skipped = 1 if start < 0 else 0
        data = self._files[name].read((start + skipped) * 16, stop * 16)
        rows[skipped:] = np.frombuffer(data, np.int64).reshape(-1, 2)
        return rows

    def _array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        return self._files[name].checked_array(dtype).reshape(shape)


class _AppendFile:
    """A file that only grows, with a running checksum. Reads see what was appended, flushed or not."""

    def __init__(self, path: Path, size: int, checksum: int) -> None:
        self.path, self.size, self.checksum = path, size, checksum
        try:
            self._file: IO[bytes] = path.open("r+b", buffering=0)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened ({error.strerror})") from None
        actual = os.fstat(self._file.fileno()).st_size
        if actual < size:
            raise StoreError(
                f"{path}: {actual} bytes, but {size} were committed; the search is damaged, delete its folder"
            )
        self._file.truncate(size)
        self._file.seek(size)
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._written = size

    def append(self, data: bytes | NDArray[Any]) -> None:
        block = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        if not block:
            return
        self.checksum = zlib.crc32(block, self.checksum)
        self._pending.append(block)
        self._pending_size += len(block)
        self.size += len(block)
        if self._pending_size > 1 << 20:
            self._write()

    def read(self, start: int, stop: int) -> bytes:
        if stop > self._written:
            self._write()
        data = os.pread(self._file.fileno(), stop - start, start)
        if len(data) != stop - start:
            raise StoreError(f"{self.path}: cut short; the search is damaged, delete its folder")
        return data

    def checked_array(self, dtype: Any) -> NDArray[Any]:
        """The whole file, compared with its checksum."""
        self._write()
        array = np.fromfile(self.path, dtype)
        content = array.view(np.uint8)
        checksum = 0
        for start in range(0, len(content), _CHECKSUM_BLOCK):
            checksum = zlib.crc32(content[start : start + _CHECKSUM_BLOCK].data, checksum)
        if len(content) != self.size or checksum != self.checksum:
            raise StoreError(f"{self.path}: not what was written; the search is damaged, delete its folder")
        return array

    def flush(self) -> None:
        self._write()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _write(self) -> None:
        data = memoryview(b"".join(self._pending))
        while data:
            try:
                written = self._file.write(data)
            except OSError as error:
                raise StoreError(
                    f"{self.path}: cannot be written ({error.strerror}); what was committed is kept"
                ) from None
            data = data[written:]
        self._pending, self._pending_size, self._written = [], 0, self.size


def _locked(folder: Path) -> IO[str]:
    try:
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be opened ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StoreError(f"{folder}: another build is working on this search; wait for it or stop it") from None
    return lock


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: not readable ({error}); the search is damaged, delete its folder") from None
    if not isinstance(content, dict):
        raise StoreError(f"{path}: not readable; the search is damaged, delete its folder")
    return content
