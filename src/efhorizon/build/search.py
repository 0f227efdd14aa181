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
    lock           locked by the process that works in the folder

Each file is compared with its checksum before anything in it is used or added to.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.append_file import AppendFile
from efhorizon.build.expand import Codec, Expansion, Found, KeyCollisionError, key_of
from efhorizon.build.keys import KeyIndex
from efhorizon.build.search_folder import SearchFolder
from efhorizon.build.search_records import (
    COMMIT,
    CONFIG,
    FILES,
    Commit,
    Config,
    damaged,
    read_commit,
    read_config,
)
from efhorizon.errors import StoreError
from efhorizon.io.decode import MAX_TEXT, encoded_record

_BYTES_AN_ENTRY = 16  # of an index

Start = Callable[[], tuple[Config, Expansion]]  # what is searched, and the start state and its screen, not expanded


class Search:
    """An open search; one process at a time may hold it."""

    def __init__(self, folder: Path, start: Start | None = None) -> None:
        """Open the search in a folder as it was last committed; where there is none, begin with `start`."""
        self.folder = folder
        with ExitStack() as stack:
            self._folder = SearchFolder(folder)
            stack.callback(self._folder.close)
            commit = read_commit(folder)
            if commit is not None:
                self._open(commit, stack)
            elif start is not None:
                self._begin(start, stack)
            else:
                raise StoreError(f"{folder}: no search was begun here")
            self.close: Callable[[], object] = weakref.finalize(self, stack.pop_all().close)

    def _open(self, commit: Commit, stack: ExitStack) -> None:
        self._use(read_config(self.folder, commit))
        self._folder.check_place()  # the two files were read by their path
        self.layer_starts = list(commit.layer_starts)
        self.num_expanded, self.seconds = commit.num_expanded, commit.seconds
        self._files = {name: self._file(stack, name, *commit.files[name]) for name in FILES}
        self._state_keys = self._checked_keys("state", self.state_codec)
        self._screen_keys = self._checked_keys("screen", self.screen_codec)

    def _begin(self, start: Start, stack: ExitStack) -> None:
        config, found = start()
        content = encoded_record(config)
        if len(content) > MAX_TEXT:
            raise StoreError(f"{self.folder}: {len(content):,} bytes are too many for a state and its screen")
        self._folder.replace(CONFIG, content)
        self._use(config)
        self.layer_starts, self.num_expanded, self.seconds = [0, 1], 0, 0.0
        self._files = {name: self._file(stack, name, flags=os.O_CREAT | os.O_TRUNC) for name in FILES}
        self._state_keys, self._screen_keys = KeyIndex(), KeyIndex()
        self._add_found(found)
        self.commit()

    def _use(self, config: Config) -> None:
        self.config, self.num_actions, self.screen_shape = config, config.num_actions, config.screen_shape
        self.state_codec, self.screen_codec = Codec(config.state_dictionary), Codec(config.screen_dictionary)

    def _file(self, stack: ExitStack, name: str, size: int = 0, checksum: int = 0, *, flags: int = 0) -> AppendFile:
        file = stack.enter_context(self._folder.open(name, flags))
        return AppendFile(self.folder / name, file, size, checksum)

    def _checked_keys(self, kind: str, codec: Codec) -> KeyIndex:
        """The keys of what was found so far. The index must fit, and what was found first must have the first key: the
        dictionary would spoil that too."""
        index, file = f"{kind}_index", self._files[f"{kind}s"]
        keys = self._array(f"{kind}_keys", np.uint64, (-1, 2))
        if not len(keys) or int(self._index(index, len(keys) - 1, len(keys))[-1, 1]) != file.size:
            raise damaged(file.path, "not as long as its index says")
        if key_of(codec.unpack(file.read(*self._span(index, 0)))) != keys[0].tobytes():
            raise damaged(file.path, "not what its keys say")
        return KeyIndex(keys)

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

    def packed_state(self, number: int) -> tuple[bytes, bytes]:
        """The identity of a state and its snapshot, packed; the second is empty where both are the same."""
        ends = self._index("state_index", number - 1, number + 1)
        start, (middle, end) = int(ends[0, 1]), ends[1].tolist()
        data = self._files["states"].read(start, end)
        return data[: middle - start], data[middle - start :]

    def screens_of(self, start: int, stop: int) -> NDArray[np.int32]:
        """The screens of a range of states."""
        return np.frombuffer(self._files["state_screens"].read(4 * start, 4 * stop), np.int32)

    def state(self, number: int) -> bytes:
        return self.state_codec.unpack(self.packed_states(number, number + 1)[0])

    def screen(self, number: int) -> NDArray[np.uint8]:
        before, end = (int(i) for i in self._index("screen_index", number - 1, number + 1)[:, 1])
        data = self.screen_codec.unpack(self._files["screens"].read(before, end))
        if len(data) != math.prod(self.screen_shape):
            raise damaged(self.folder / "screens", f"screen {number} has {len(data)} bytes, not {self.screen_shape}")
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
        files = {name: (file.size, file.checksum) for name, file in self._files.items()}
        commit = Commit(self.layer_starts, self.num_expanded, self.seconds, files)
        self._folder.replace(COMMIT, encoded_record(commit))

    def state_keys(self, numbers: NDArray[Any]) -> NDArray[np.uint64]:
        """The keys [n, 2] of states."""
        return self._state_keys.keys(numbers)

    def screen_keys(self, numbers: NDArray[Any]) -> NDArray[np.uint64]:
        return self._screen_keys.keys(numbers)

    def known_screens(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The numbers of screens by their keys [n, 2]; -1 for those that were never seen."""
        return self._screen_keys.find(keys)

    def transitions(self, count: int) -> NDArray[np.int32]:
        """Transitions [count, A] of the first states."""
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
        data = self._files[name].read((start + skipped) * _BYTES_AN_ENTRY, stop * _BYTES_AN_ENTRY)
        rows[skipped:] = np.frombuffer(data, np.int64).reshape(-1, 2)
        return rows

    def _array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        return self._files[name].array(dtype).reshape(shape)
