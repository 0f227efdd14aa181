"""A search divided among owners: dividing one, and putting the parts together again.

What comes out is the search that one process would have made, byte for byte; so everything that follows a search knows
nothing of owners, and a search begun with one engine continues with the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.expand import Expansion, Found
from efhorizon.build.keys import KeyIndex
from efhorizon.build.owner import Adopted
from efhorizon.build.parcels import Strings, owners_of, strings
from efhorizon.build.parts import PARTS, Manifest, PartFiles, owner_folder, read_manifest
from efhorizon.build.search import Search
from efhorizon.errors import EfhorizonError

_BLOCK = 1 << 12  # states at a time


def divided(search: Search, num_owners: int) -> Iterator[tuple[int, Adopted]]:
    """The states of a search for their owners, up to the last whole layer; the last one is still to be expanded."""
    first, stop = search.layer_starts[-2:]
    for start in range(0, stop, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, stop), dtype=np.int64)
        keys = search.state_keys(numbers)
        shown = search.screen_keys(search.screens_of(start, int(numbers[-1]) + 1))
        owners = owners_of(keys, num_owners)
        for owner in range(num_owners):
            mine = np.flatnonzero(owners == owner)
            if len(mine):
                found = [search.packed_state(int(n)) if n >= first else (b"", b"") for n in numbers[mine]]
                identities, snapshots = (strings([pair[i] for pair in found]) for i in (0, 1))
                yield owner, Adopted(numbers[mine], keys[mine], shown[mine], identities, snapshots)


def collect(search: Search, on_progress: Callable[[str], None] = lambda line: None) -> None:
    """Put what the owners have found into the search, layer by layer, and delete their parts."""
    manifest = read_manifest(search.folder)
    if manifest is not None:
        with ExitStack() as stack:
            collection = _Collection(search, manifest, stack)
            on_progress(f"putting the layers of {manifest.num_owners} owners together")
            for layer in range(manifest.base_layers - 2, collection.num_layers):
                collection.add_layer(layer)
    if (search.folder / PARTS).exists():
        shutil.rmtree(search.folder / PARTS)


class _Collection:
    """The parts of all owners, read."""

    def __init__(self, search: Search, manifest: Manifest, stack: ExitStack) -> None:
        self._search, self._manifest = search, manifest
        self._parts = []
        for owner, record in enumerate(manifest.parts):
            files = PartFiles(owner_folder(search.folder, owner), record)
            stack.callback(files.close)
            self._parts.append(files)
        self._screens = [KeyIndex(files["screen_keys"].array(np.uint64).reshape(-1, 2)) for files in self._parts]
        self.num_layers = manifest.complete_horizon + manifest.is_closed  # that were expanded

    def add_layer(self, layer: int) -> None:
        search, starts = self._search, [*self._manifest.layer_starts, self._manifest.num_states]
        start, stop, end = starts[layer], starts[layer + 1], starts[layer + 2]
        if search.num_expanded >= stop:
            return
        transitions, rewards = self._rows(layer, start, stop)
        new = _NewStates(self._parts, self._screens, self._layer_rows(layer + 1), stop, end)
        for row in range(max(start, search.num_expanded), stop, _BLOCK):
            block = slice(row - start, min(row + _BLOCK, stop) - start)
            search.add(_expansion(search, transitions[block], rewards[block], new))
        search.close_layer()
        if search.num_states != end and search.num_expanded < search.num_states:
            raise EfhorizonError(f"{search.folder}: the parts of this search do not fit together; build with --rebuild")
        search.seconds = max(search.seconds, self._manifest.seconds)
        search.commit()

    def _rows(self, layer: int, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        num_actions, index = self._search.num_actions, layer - (self._manifest.base_layers - 2)
        transitions = np.full((stop - start) * num_actions, -1, np.int64)
        rewards = np.empty((stop - start, num_actions))
        for files, record in zip(self._parts, self._manifest.parts, strict=True):
            edges = files.rows("edges", np.int64, 2, *record.edge_rows[index : index + 2])
            transitions[edges[:, 0] - start * num_actions] = edges[:, 1]
            first, last = record.state_rows[index : index + 2]
            numbers = files.rows("numbers", np.int64, 1, first, last)[:, 0]
            base = record.state_rows[0]
            rewards[numbers - start] = files.rows("rewards", np.float64, num_actions, first - base, last - base)
        return transitions.reshape(-1, num_actions), rewards

    def _layer_rows(self, layer: int) -> list[tuple[int, int]]:
        """Which rows of each part are the states of a layer."""
        index = layer - (self._manifest.base_layers - 2)
        spans = [record.state_rows[index : index + 2] for record in self._manifest.parts]
        return [(rows[0], rows[1]) if len(rows) == 2 else (0, 0) for rows in spans]


class _NewStates:
    """The states of one layer, from all owners, by number."""

    def __init__(
        self,
        parts: list[PartFiles],
        screens: list[KeyIndex],
        rows: list[tuple[int, int]],
        start: int,
        stop: int,
    ) -> None:
        self._parts, self._screens, self._start = parts, screens, start
        count = stop - start
        self._owners = np.empty(count, np.int32)
        self.keys, self.shown = np.empty((count, 2), np.uint64), np.empty((count, 2), np.uint64)
        self._spans = np.empty((count, 3), np.int64)
        for owner, (files, (first, last)) in enumerate(zip(parts, rows, strict=True)):
            places = files.rows("numbers", np.int64, 1, first, last)[:, 0] - start
            self._owners[places] = owner
            self.keys[places] = files.rows("keys", np.uint64, 2, first, last)
            self.shown[places] = files.rows("shown", np.uint64, 2, first, last)
            self._spans[places] = files.rows("state_spans", np.int64, 3, first, last)

    def at(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers - self._start

    def packed(self, place: int) -> tuple[bytes, bytes]:
        start, middle, end = self._spans[place].tolist()
        data = self._parts[self._owners[place]]["states"].read(start, end)
        return data[: middle - start], data[middle - start :]

    def screen(self, key: NDArray[np.uint64]) -> bytes:
        owner = int(owners_of(key.reshape(1, 2), len(self._parts))[0])
        place = int(self._screens[owner].find(key.reshape(1, 2))[0])
        start, end, _ = self._parts[owner].rows("screen_spans", np.int64, 3, place, place + 1)[0].tolist()
        return self._parts[owner]["screens"].read(start, end)


def _expansion(
    search: Search, transitions: NDArray[np.int64], rewards: NDArray[np.float64], new: _NewStates
) -> Expansion:
    """The next rows of a search, as one process would have found them."""
    flat = transitions.ravel()
    distinct, firsts, inverse = np.unique(flat[flat >= 0], return_index=True, return_inverse=True)
    order = np.argsort(firsts)  # as they are first met
    numbers = distinct[order]
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    successors = np.full(len(flat), -1, np.int32)
    successors[flat >= 0] = place[inverse]
    is_new = numbers >= search.num_states
    fresh = new.at(numbers[is_new])
    keys = np.empty((len(numbers), 2), np.uint64)
    keys[~is_new], keys[is_new] = search.state_keys(numbers[~is_new]), new.keys[fresh]
    packed = [new.packed(int(i)) for i in fresh]
    lengths = np.full(len(numbers), -1, np.int32)
    lengths[is_new] = [len(identity) for identity, _ in packed]
    snapshots = np.full(len(numbers), b"", object)
    snapshots[is_new] = [snapshot for _, snapshot in packed]
    screens, shown = _screens(search, new, fresh)
    state_screens = np.full(len(numbers), -1, np.int32)
    state_screens[is_new] = shown
    states = Found(keys, lengths, b"".join(identity for identity, _ in packed))
    rows = successors.reshape(transitions.shape)
    return Expansion(rewards, rows, states, state_screens, tuple(snapshots.tolist()), screens)


def _screens(search: Search, new: _NewStates, fresh: NDArray[np.int64]) -> tuple[Found, NDArray[np.int32]]:
    """The distinct screens of new states, as they are first seen, and which of them each state shows."""
    index = KeyIndex()
    shown = index.numbers(new.shown[fresh])
    keys = index.keys(np.arange(len(index)))
    known = search.known_screens(keys) >= 0
    found = Strings(*_joined([b"" if is_known else new.screen(key) for is_known, key in zip(known, keys, strict=True)]))
    return Found(keys, np.where(known, -1, found.lengths).astype(np.int32), found.data), shown


def _joined(chunks: list[bytes]) -> tuple[NDArray[np.int32], bytes]:
    return np.array([len(chunk) for chunk in chunks], np.int32), b"".join(chunks)
