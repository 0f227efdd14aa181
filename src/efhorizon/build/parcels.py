"""What an expander sends to the owners of the states that it met: one packed buffer for each.

The top bits of a state's key choose its owner, and those of a screen's key the owner of the screen. A pair of a state
and an action has the number `state * A + action`, which orders pairs over the whole search. Wherever two batches meet
the same new state, the one with the lower pair counts, so nothing depends on which of them came first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import psutil
from numpy.typing import NDArray

from efhorizon.build.expand import Codec, Expander, Expansion, Found
from efhorizon.engines.actors import Reference
from efhorizon.suites.simulator import Simulator

Keys = NDArray[np.uint64]  # [n, 2]


@dataclass(frozen=True)
class Strings:
    """Packed byte strings, one after the other."""

    lengths: NDArray[np.int32]  # [n]
    data: bytes

    def chunks(self) -> list[bytes]:
        ends = np.cumsum(self.lengths, dtype=np.int64)
        return [self.data[end - size : end] for end, size in zip(ends.tolist(), self.lengths.tolist(), strict=True)]


@dataclass(frozen=True)
class Parcel:
    """For one owner: states that were met, the pairs that lead to them, and screens."""

    keys: Keys  # of n distinct states
    identities: Strings  # [n]
    snapshots: Strings  # [n], empty where the identity is the snapshot itself
    shown: Keys  # [n], the screens of the states
    pairs: NDArray[np.int64]  # [E]
    reached: NDArray[np.int32]  # [E], which of the n states
    screen_keys: Keys  # of m distinct screens
    screens: Strings  # [m]


class Batch(NamedTuple):
    """States of one owner to be expanded."""

    first_row: int  # of the owner's states
    numbers: NDArray[np.int64]  # [B]
    packed: list[bytes]


class Rewards(NamedTuple):
    """What the actions in a batch of states earned, for the owner of these states."""

    first_row: int
    rewards: NDArray[np.float64]  # [B, A]


class Expanded(NamedTuple):
    """What is left for the driver to know of a batch."""

    num_states: int
    memory: int  # bytes of the expander
    rewards: Reference
    parcels: tuple[Reference, ...]  # one for each owner


def owners_of(keys: Keys, num_owners: int) -> NDArray[np.int64]:
    """Which owner each key belongs to: its top 32 bits, scaled."""
    top = keys[:, 1] >> np.uint64(32)
    return ((top * np.uint64(num_owners)) >> np.uint64(32)).astype(np.int64)


class LayerExpander:
    """Expands batches; keeps a simulator and nothing else."""

    def __init__(
        self,
        make_simulator: Callable[[], Simulator],
        dictionaries: tuple[bytes, bytes],
        num_owners: int,
        put: Callable[[Any], Reference],
    ) -> None:
        states, screens = (Codec(dictionary) for dictionary in dictionaries)
        self._expander = Expander(make_simulator(), states, screens, memory=0)
        self._num_owners, self._put = num_owners, put

    def expand(self, batch: Batch) -> Expanded:
        expansion = self._expander.expand(batch.packed)
        sent = tuple(self._put(parcel) for parcel in parcels(expansion, batch.numbers, self._num_owners))
        rewards = self._put(Rewards(batch.first_row, expansion.rewards))
        return Expanded(len(batch.packed), psutil.Process().memory_info().rss, rewards, sent)


def parcels(expansion: Expansion, numbers: NDArray[np.int64], num_owners: int) -> list[Parcel]:
    """An expansion of the states with these numbers, divided among the owners of what was met."""
    num_actions = expansion.successors.shape[1]
    identities, screens = _chunks(expansion.states), _chunks(expansion.screens)
    shown = expansion.screens.keys[expansion.state_screens]
    rows, actions = np.nonzero(expansion.successors >= 0)
    pairs = numbers[rows] * num_actions + actions
    successors = expansion.successors[rows, actions]
    state_owners = owners_of(expansion.states.keys, num_owners)
    screen_owners = owners_of(expansion.screens.keys, num_owners)
    made = []
    place = np.empty(len(state_owners), np.int32)
    for owner in range(num_owners):
        mine, seen = np.flatnonzero(state_owners == owner), np.flatnonzero(screen_owners == owner)
        place[mine] = np.arange(len(mine), dtype=np.int32)
        entering = np.flatnonzero(state_owners[successors] == owner)
        made.append(
            Parcel(
                expansion.states.keys[mine],
                strings([identities[i] for i in mine.tolist()]),
                strings([expansion.snapshots[i] for i in mine.tolist()]),
                shown[mine],
                pairs[entering],
                place[successors[entering]],
                expansion.screens.keys[seen],
                strings([screens[i] for i in seen.tolist()]),
            )
        )
    return made


def strings(chunks: list[bytes]) -> Strings:
    return Strings(np.array([len(chunk) for chunk in chunks], np.int32), b"".join(chunks))


def _chunks(found: Found) -> list[bytes]:
    return Strings(found.lengths, found.data).chunks()
