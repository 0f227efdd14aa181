"""A lattice, many states at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import compiled_with
from efhorizon.suites.batched import Rows, Successors


class BatchedLattice:
    """The rules of `Lattice` for rows of counters."""

    screen_shape: tuple[int, int, int] | None = None

    def __init__(self, counters: int, size: int, *, is_cliff: bool = False) -> None:
        """`counters` counters with `size` values each."""
        self.num_actions, self._size, self._is_cliff = counters, size, is_cliff
        self.start: NDArray[np.uint8] = np.zeros(self.num_actions, np.uint8)

    def expand(self, states: Rows, out: Successors) -> None:
        _expand(states, self._size - 1, self._is_cliff, out.states, out.rewards, out.ended)

    def looks(self, states: Rows) -> Rows | None:
        return None

    def screens(self, states: Rows) -> NDArray[np.uint8]:
        return np.zeros((len(states), 1, 1, 1), np.uint8)

    def snapshot(self, state: NDArray[np.uint8]) -> bytes:
        return state.tobytes()

    def snapshots(self, states: Rows) -> tuple[Rows, NDArray[np.int64]]:
        return states, np.full(len(states), states.shape[1], np.int64)


@compiled_with(nogil=True)
def _expand(states: Any, end: int, is_cliff: bool, out: Any, rewards: Any, ended: Any) -> None:
    batch, size = states.shape
    for row in range(batch):
        left = 0
        for counter in range(size):
            left += end - states[row, counter]
        for action in range(size):
            for counter in range(size):
                out[row, action, counter] = states[row, counter]
            moves = states[row, action] < end
            if moves:
                out[row, action, action] += 1
            ended[row, action] = left == 1 if moves else is_cliff
            rewards[row, action] = 1.0 if moves and left == 1 else 0.0
