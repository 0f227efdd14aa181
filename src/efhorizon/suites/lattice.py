"""Lattices: a synthetic game of which everything is known in closed form, to try large searches on.

    lattice-{D}x{N}     D counters, each from 0 to N - 1; action a adds one to counter a, unless it is at its end
    cliff-{D}x{N}       the same, but to add one to a counter that is at its end ends the episode, with nothing

In a lattice an action may do nothing, so a state is met at many times; in a cliff each state has its own time, as where
a state holds a clock. Both have the same states with the same numbers.

The episode ends, with a reward of 1, when the last counter reaches its end and all others are there. There are N^D - 1
states, and one more at the end, which is none. A state is met after as many steps as its counters say together, first
from the state before its last counter that is not 0. So a search numbers the states of a layer in decreasing order, as
words, and the number of a state can be computed (`numbers`). No two states behave alike, so nothing merges.

They are not in the catalogue: nobody learns to play them. `efhorizon build cliff-4x100` knows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.suites.batched import BatchedSimulator
from efhorizon.suites.entry import Entry
from efhorizon.suites.replay import RestoreReport
from efhorizon.suites.simulator import Screen, Simulator, SimulatorError, Transition
from efhorizon.suites.suite import Costs, NetworkKind, Suite, Survey

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

_NAME = re.compile(r"(?:lattice|cliff)-(\d{1,2})x(\d{1,3})")
_MOST_COUNTERS, _LARGEST_END = 16, 256


class Lattice:
    """One lattice, state by state."""

    def __init__(self, game: str) -> None:
        self.num_actions, self._size = shape_of(game)
        self._is_cliff = is_cliff(game)
        self._counters = bytes(self.num_actions)

    def reset(self) -> None:
        self._counters = bytes(self.num_actions)

    def step(self, action: int) -> Transition:
        counters = bytearray(self._counters)
        if self._is_cliff and counters[action] == self._size - 1:
            return Transition(0.0, True)
        counters[action] = min(counters[action] + 1, self._size - 1)
        self._counters = bytes(counters)
        is_over = all(counter == self._size - 1 for counter in counters)
        return Transition(float(is_over), is_over)

    def get_state(self) -> bytes:
        return self._counters

    def set_state(self, state: bytes) -> None:
        self._counters = state

    def identity(self, state: bytes) -> bytes:
        return state

    def screen(self) -> Screen:
        return np.zeros((1, 1, 1), np.uint8)  # nothing is seen: states differ by what they do

    def picture(self) -> Screen:
        return self.screen()

    def close(self) -> None:
        pass


def shape_of(game: str) -> tuple[int, int]:
    """The number of counters, and how many values each has."""
    found = _NAME.fullmatch(game)
    counters, size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (1 <= counters <= _MOST_COUNTERS and 2 <= size <= _LARGEST_END):
        raise SimulatorError(f"no lattice is called {game!r}: lattice-4x10 has 4 counters with 10 values each")
    return counters, size


def is_cliff(game: str) -> bool:
    return game.startswith("cliff")


def num_states(game: str) -> int:
    counters, size = shape_of(game)
    return int(size**counters - 1)


def compositions(game: str) -> NDArray[np.int64]:
    """How many words of d counters add up to s: [D + 1, D * (N - 1) + 1]."""
    counters, size = shape_of(game)
    longest = counters * (size - 1)
    table = np.zeros((counters + 1, longest + 1), np.int64)
    table[0, 0] = 1
    for d in range(1, counters + 1):
        sums = np.concatenate([[0], np.cumsum(table[d - 1])])
        for s in range(longest + 1):
            table[d, s] = sums[s + 1] - sums[max(0, s + 1 - size)]
    return table


def numbers(game: str, states: NDArray[Any]) -> NDArray[np.int64]:
    """The number that a search gives to each state [B, D]: those of earlier layers, and those above it in its own."""
    counters, size = shape_of(game)
    table = compositions(game)
    left = states.sum(axis=1, dtype=np.int64)
    number: NDArray[np.int64] = np.concatenate([[0], np.cumsum(table[counters])])[left]
    for counter in range(counters):  # words that agree so far and have a larger counter here
        for value in range(1, size):
            is_larger = (value > states[:, counter]) & (left >= value)
            number += np.where(is_larger, table[counters - counter - 1, np.maximum(left - value, 0)], 0)
        left = left - states[:, counter]
    return number


class Lattices(Suite):
    """Lattices by name, none of them listed."""

    name = "lattice"
    title = "Lattices"
    behaviour = BEHAVIOUR
    builds_unlisted = True
    screen_format = "observation"
    costs = Costs(pairs_a_second=1_000_000.0)

    def entries(self) -> Iterator[Entry]:
        return iter(())

    def unlisted_entry(self, name: str) -> Entry | None:
        if _NAME.fullmatch(name) is None:
            return None
        counters, size = shape_of(name)
        return Entry(name, self.name, name, counters * (size - 1), 1, counters)

    def simulator(self, **arguments: Any) -> Simulator:
        return Lattice(**arguments)

    def batched(self, arguments: Mapping[str, Any]) -> BatchedSimulator:
        from efhorizon.suites.lattice_batched import BatchedLattice  # it loads numba

        return BatchedLattice(*shape_of(**arguments), is_cliff=is_cliff(**arguments))

    def restore_report(self, make: Callable[[], Simulator], horizon: int, rng: np.random.Generator) -> RestoreReport:
        return RestoreReport(True)  # the counters are all there is

    def survey(self, entry: Entry) -> Survey | None:
        return Survey(num_states(entry.game))

    def network(self, game: str) -> NetworkKind:
        return "dense"


LATTICES = Lattices()
