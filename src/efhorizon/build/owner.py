"""An owner: the keys of the states that belong to it, and its part of the search on disk.

While a layer is expanded, owners receive parcels in any order. At the barrier each says by which pairs its new states
were first met; their ranks among the first pairs of all owners are the numbers of the new states. These are the numbers
that a search in one process gives, whatever the number of owners.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from numpy.typing import NDArray

from efhorizon.build.expand import Codec, KeyCollisionError
from efhorizon.build.keys import KeyIndex
from efhorizon.build.parcels import Batch, Keys, Parcel, Rewards, Strings
from efhorizon.build.parts import PartFiles, PartRecord, owner_folder
from efhorizon.errors import EfhorizonError

_SPAN = 3  # numbers that say where an identity begins and ends, and where the snapshot behind it ends


class Committed(NamedTuple):
    """What an owner has on disk now."""

    record: PartRecord
    memory: int  # bytes of its process


class Adopted(NamedTuple):
    """States that a search has found before it was divided; strings are empty for those already expanded."""

    numbers: NDArray[np.int64]  # [n], increasing
    keys: Keys
    shown: Keys
    identities: Strings
    snapshots: Strings


class Owner:
    """One owner; begins with what counts of its files."""

    def __init__(
        self,
        search_folder: Path,
        place: int,
        dictionaries: tuple[bytes, bytes],
        num_actions: int,
        record: PartRecord | None,
    ) -> None:
        """`place`: which of the owners it is; `record`: None for a search that is divided just now."""
        self._codecs = {"state": Codec(dictionaries[0]), "screen": Codec(dictionaries[1])}
        self._num_actions = num_actions
        files = self._files = PartFiles(owner_folder(search_folder, place), record)
        self._keys = KeyIndex(files["keys"].array(np.uint64).reshape(-1, 2))
        self._screen_keys = KeyIndex(files["screen_keys"].array(np.uint64).reshape(-1, 2))
        self._numbers: NDArray[np.int64] = files["numbers"].array(np.int64)  # [n], of states
        self._state_rows = [] if record is None else list(record.state_rows)
        self._edge_rows = [0] if record is None else list(record.edge_rows)
        self._begin_layer()

    def _begin_layer(self) -> None:
        self._new = KeyIndex()
        self._first_pairs = np.empty(0, np.int64)  # [new]
        self._spans: list[tuple[int, int, int]] = []  # [new]
        self._shown: list[Keys] = []
        self._edges: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # pairs; numbers, or -1 - place among new
        self._rewards: dict[int, NDArray[np.float64]] = {}  # by first row

    def close(self) -> None:
        self._files.close()

    # --- dividing a search

    def adopt(self, states: Adopted) -> None:
        """Take over states, in the order of their numbers."""
        spans = []
        for identity, snapshot in zip(states.identities.chunks(), states.snapshots.chunks(), strict=True):
            spans.append(self._append("states", identity, snapshot))
        self._add_states(states.numbers, states.keys, states.shown, np.array(spans, np.int64).reshape(-1, _SPAN))

    def close_base(self, num_expanded: int) -> Committed:
        """All states were taken over; those from this number on are to be expanded."""
        self._state_rows = [int(np.searchsorted(self._numbers, num_expanded)), len(self._numbers)]
        return self._committed()

    # --- expanding a layer

    def batch(self, first_row: int, stop: int) -> Batch:
        """States to be expanded."""
        spans = self._files.rows("state_spans", np.int64, _SPAN, first_row, stop)
        packed = []
        for start, middle, end in spans.tolist():
            packed.append(
                self._files["states"].read(middle, end) if end > middle else self._files["states"].read(start, middle)
            )
        return Batch(first_row, self._numbers[first_row:stop], packed)

    def earn(self, rewards: Rewards) -> None:
        self._rewards[rewards.first_row] = rewards.rewards

    def receive(self, parcel: Parcel) -> None:
        """States and screens that an expander has met; what is known already is compared."""
        self._receive_screens(parcel)
        rows = self._keys.find(parcel.keys).astype(np.int64)
        identities, snapshots = parcel.identities.chunks(), parcel.snapshots.chunks()
        for i in np.flatnonzero(rows >= 0).tolist():
            start, middle, _ = self._files.rows("state_spans", np.int64, _SPAN, int(rows[i]), int(rows[i]) + 1)[
                0
            ].tolist()
            self._compare("state", start, middle, identities[i])
        unknown = np.flatnonzero(rows < 0)
        places = self._new.numbers(parcel.keys[unknown])
        firsts = np.full(len(rows), np.iinfo(np.int64).max)
        np.minimum.at(firsts, parcel.reached, parcel.pairs)
        self._grow(len(self._new))
        for i, place in zip(unknown.tolist(), places.tolist(), strict=True):
            first = int(firsts[i])
            if place == len(self._spans):
                self._spans.append(self._append("states", identities[i], snapshots[i]))
                self._shown.append(parcel.shown[i])
            else:
                self._compare("state", self._spans[place][0], self._spans[place][1], identities[i])
                if first < self._first_pairs[place] and snapshots[i]:  # the snapshot of the first pair counts
                    self._spans[place] = self._append("states", identities[i], snapshots[i])
            self._first_pairs[place] = min(self._first_pairs[place], first)
        numbers = np.where(rows >= 0, self._numbers[rows] if len(self._numbers) else -1, -1)
        numbers[unknown] = -1 - places.astype(np.int64)
        self._edges.append((parcel.pairs, numbers[parcel.reached]))

    def _receive_screens(self, parcel: Parcel) -> None:
        known = len(self._screen_keys)
        places = self._screen_keys.numbers(parcel.screen_keys)
        new = []
        for i, (place, screen) in enumerate(zip(places.tolist(), parcel.screens.chunks(), strict=True)):
            if place < known:
                start, end, _ = self._files.rows("screen_spans", np.int64, _SPAN, place, place + 1)[0].tolist()
                self._compare("screen", start, end, screen)
            else:
                self._files["screen_spans"].append(np.array(self._append("screens", screen, b""), np.int64))
                new.append(i)
        self._files["screen_keys"].append(parcel.screen_keys[new])

    # --- the barrier

    def first_pairs(self) -> NDArray[np.int64]:
        """The pairs by which this layer's new states were first met, in increasing order."""
        return np.sort(self._first_pairs[: len(self._new)])

    def commit(self, first_number: int, *first_pairs: NDArray[np.int64]) -> Committed:
        """Number the new states among those of all owners, and write everything."""
        firsts = self._first_pairs[: len(self._new)]
        order = np.argsort(firsts)
        ranks = np.zeros(len(firsts), np.int64)
        for pairs in first_pairs:
            ranks += np.searchsorted(pairs, firsts)
        numbers = first_number + ranks  # [new], by place
        self._write_expanded(numbers)
        keys = self._new.keys(np.arange(len(firsts)))[order]
        shown = np.array(self._shown, np.uint64).reshape(-1, 2)[order]
        spans = np.array(self._spans, np.int64).reshape(-1, _SPAN)[order]
        self._add_states(numbers[order], keys, shown, spans)
        self._state_rows.append(len(self._numbers))
        self._begin_layer()
        return self._committed()

    def _write_expanded(self, numbers: NDArray[np.int64]) -> None:
        """The rewards of this layer's states, and the pairs that lead to mine."""
        row, stop = self._state_rows[-2:]
        while row < stop:
            if row not in self._rewards:
                raise EfhorizonError("a batch of a divided search was never received")
            self._files["rewards"].append(np.ascontiguousarray(self._rewards[row], np.float64))
            row += len(self._rewards[row])
        pairs = np.concatenate([np.empty(0, np.int64), *(pairs for pairs, _ in self._edges)])
        reached = np.concatenate([np.empty(0, np.int64), *(reached for _, reached in self._edges)])
        is_new = reached < 0
        reached[is_new] = numbers[-1 - reached[is_new]]
        order = np.argsort(pairs)
        self._files["edges"].append(np.stack([pairs[order], reached[order]], axis=1))
        self._edge_rows.append(self._edge_rows[-1] + len(pairs))

    def _add_states(self, numbers: NDArray[np.int64], keys: Keys, shown: Keys, spans: NDArray[np.int64]) -> None:
        self._files["numbers"].append(numbers)
        self._files["keys"].append(keys)
        self._files["shown"].append(shown)
        self._files["state_spans"].append(spans)
        self._keys.numbers(keys)
        self._numbers = np.concatenate([self._numbers, numbers])

    def _committed(self) -> Committed:
        record = PartRecord(self._files.commit(), list(self._state_rows), list(self._edge_rows))
        return Committed(record, psutil.Process().memory_info().rss)

    def _append(self, name: str, first: bytes, second: bytes) -> tuple[int, int, int]:
        file = self._files[name]
        start = file.size
        file.append(first + second)
        return start, start + len(first), start + len(first) + len(second)

    def _compare(self, kind: str, start: int, end: int, packed: bytes) -> None:
        if start == end:
            return  # taken over from an undivided search, which has compared it
        stored = self._files[f"{kind}s"].read(start, end)
        codec = self._codecs[kind]
        if stored != packed and codec.unpack(stored) != codec.unpack(packed):
            raise KeyCollisionError(f"two different {kind}s have the same 128-bit key")

    def _grow(self, size: int) -> None:
        if size > len(self._first_pairs):
            grown = np.full(max(size, 2 * len(self._first_pairs), 1024), np.iinfo(np.int64).max)
            grown[: len(self._first_pairs)] = self._first_pairs
            self._first_pairs = grown
