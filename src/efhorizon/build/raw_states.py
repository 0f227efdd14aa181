"""The environment's own states, before any merging, as a verification meets them.

States are numbered as they are first met, from 0, the start state. What their actions do is found out in fresh
processes when it is first asked for, and kept. Snapshots are taken on the way; none comes from a table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.keys import KeyIndex
from efhorizon.build.player import Digests, Expanded, Met, Player
from efhorizon.build.table_screens import TableScreens
from efhorizon.engines.engine import Engine

ENDED, UNKNOWN = -1, -2  # successors: the episode ended; nobody has asked yet
_STATES_A_TASK = 32
_GROWTH = 1.5


class TooManyStatesError(Exception):
    """There are more raw states than a verification may visit."""


class RawStates:
    """Raw states by number: rewards [N, A], successors [N, A], screens [N], and how each was first met."""

    def __init__(self, engine: Engine[Player], num_actions: int, screens: TableScreens) -> None:
        self._engine, self._num_actions, self._screens = engine, num_actions, screens
        self._keys = KeyIndex()
        self._snapshots: dict[int, bytes] = {}  # of states that were not yet expanded
        self.num_steps = 0
        self.rewards = np.zeros((0, num_actions))
        self.successors = np.zeros((0, num_actions), np.int32)
        self.screens = np.zeros(0, np.int32)
        self.parents = np.zeros((0, 2), np.int32)  # the state and the action from which it was first met
        engine.submit(Player.start)
        self._add(engine.next_result(), np.full((1, 2), -1, np.int32))

    def __len__(self) -> int:
        return len(self._keys)

    def numbers(self, digests: Digests) -> NDArray[np.int32]:
        """The numbers of states by their digests; -1 for those that were never met."""
        known = len(self)
        found = self._keys.numbers(digests)
        return np.where(found < known, found, -1).astype(np.int32)

    def expand(
        self,
        numbers: NDArray[np.int32],
        max_steps: int | None = None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        """Find out what the actions of these states do, as far as that is not known."""
        wanted = np.unique(numbers)
        wanted = wanted[self.successors[wanted, 0] == UNKNOWN]
        if max_steps is not None and self.num_steps + wanted.size * self._num_actions > max_steps:
            raise TooManyStatesError
        waiting = deque(np.array_split(wanted, range(_STATES_A_TASK, len(wanted), _STATES_A_TASK)))
        sent: deque[NDArray[np.int32]] = deque()
        while sent or (waiting and len(waiting[0])):
            while waiting and self._engine.has_room:
                sent.append(waiting.popleft())
                packed = [self._snapshots.pop(number) for number in sent[-1].tolist()]
                self._engine.submit(partial(Player.expanded, snapshots=packed))
            self._note(sent.popleft(), self._engine.next_result())
            on_progress()

    def path(self, number: int) -> list[int]:
        """The actions by which a state was first met."""
        actions = []
        while number:
            number, action = self.parents[number].tolist()
            actions.append(action)
        return actions[::-1]

    def _note(self, numbers: NDArray[np.int32], expanded: Expanded) -> None:
        """Take down what the actions of some states do."""
        _, first = np.unique(expanded.successors, return_index=True)
        first = first[len(first) - len(expanded.met.states) :]  # where each new state was first met; -1 comes before
        rows, actions = np.divmod(first, self._num_actions)
        met = self._add(expanded.met, np.stack([numbers[rows], actions], axis=1))
        self.rewards[numbers] = expanded.rewards
        self.successors[numbers] = np.append(met, np.int32(ENDED))[expanded.successors]
        self.num_steps += expanded.successors.size

    def _add(self, met: Met, parents: NDArray[Any]) -> NDArray[np.int32]:
        """Number some states; `parents` [n, 2] says how each was met."""
        known = len(self)
        numbers = self._keys.numbers(met.states)
        new = np.flatnonzero(numbers >= known)
        self._reserve(len(self))
        self.screens[numbers[new]] = self._screens.of_digests(met.screens[new])
        self.parents[numbers[new]] = parents[new]
        for i in new.tolist():
            self._snapshots[int(numbers[i])] = met.snapshots[i]
        return numbers

    def _reserve(self, size: int) -> None:
        if size > len(self.screens):
            more = max(size, int(len(self.screens) * _GROWTH), 1024) - len(self.screens)
            self.rewards = np.pad(self.rewards, ((0, more), (0, 0)))
            self.successors = np.pad(self.successors, ((0, more), (0, 0)), constant_values=UNKNOWN)
            self.screens = np.pad(self.screens, (0, more))
            self.parents = np.pad(self.parents, ((0, more), (0, 0)))
