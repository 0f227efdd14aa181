"""The replay buffer of DQN on live environments: frames in one file that survives the process.

Each environment has a column. A row holds what was seen, and what was done then. Of observations that are stacks of
frames only the newest frame is kept; the stack is put together again when it is drawn. Where an episode was cut short,
an additional row holds its last observation.

A checkpoint keeps everything but the frames, which are mapped into memory from a file. There are more rows than the
buffer has transitions: what a checkpoint refers to is overwritten only after `slack` further timesteps, and by then
there must be another checkpoint. So a killed run finds all that it needs, without writing gigabytes at each checkpoint.

Legend: N environments, R rows of a column, K frames of a stack, M drawn transitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.live_deep.games import Array
from efhorizon.errors import StoreError

SLACK = 16_384  # timesteps


class Drawn(NamedTuple):
    """Transitions."""

    seen: Array  # [M, ...]
    action: NDArray[np.int64]  # [M]
    reward: NDArray[np.float32]  # [M]
    is_end: NDArray[np.bool_]  # [M], whether nothing can follow
    following: Array  # [M, ...]


class Replay:
    """The last `size` transitions of N environments."""

    def __init__(self, first: Array, size: int, stack: int, path: Path | None) -> None:
        """`first` [N, ...] are the first observations; `stack` frames of the last axis are one observation."""
        num_envs = len(first)
        self._size, self._stack = size // num_envs, stack
        self._rows = self._size + SLACK // num_envs + 2 * stack
        self._channels = first.shape[-1] // stack if stack > 1 else 0
        newest = self._newest(first)
        self._frames = _frames(path, (num_envs, self._rows, *newest.shape[1:]), newest.dtype)
        self._action = np.full((num_envs, self._rows), -1, np.int16)  # -1: there was none
        self._reward = np.zeros((num_envs, self._rows), np.float32)
        self._is_end = np.zeros((num_envs, self._rows), np.bool_)
        self._begun = np.zeros((num_envs, self._rows), np.int64)  # the row with which the episode began
        self._count = np.zeros(num_envs, np.int64)  # of rows that are complete: the next one holds what is seen now
        for which in range(num_envs):
            self._frames[which, 0] = newest[which]

    def add(
        self,
        action: NDArray[np.int64],
        reward: NDArray[np.float32],
        is_done: NDArray[np.bool_],
        last: Mapping[int, Array],
        now: Array,
    ) -> None:
        """One step of all environments, and what is seen after it (`last` where episodes were cut short)."""
        newest = self._newest(now)
        for which in range(len(action)):
            row = self._count[which] % self._rows
            self._action[which, row], self._reward[which, row] = action[which], reward[which]
            self._is_end[which, row] = is_done[which] and which not in last
            begun = int(self._begun[which, row])
            if which in last:
                begun = self._next(which, self._newest(last[which][None])[0], begun)
            self._next(which, newest[which], None if is_done[which] else begun)

    def drawn(self, count: int, rng: np.random.Generator) -> Drawn:
        """Transitions drawn at random, each as likely as all others."""
        column, row = self._places(count, rng)
        place = column, row % self._rows
        seen, following = self._observed(column, row), self._observed(column, row + 1)
        return Drawn(seen, self._action[place].astype(np.int64), self._reward[place], self._is_end[place], following)

    def flush(self) -> None:
        """Before a checkpoint: frames must be on disk."""
        if isinstance(self._frames, np.memmap):
            self._frames.flush()

    def state(self) -> dict[str, NDArray[Any]]:
        return {name: array.copy() for name, array in self._arrays().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        for name, array in self._arrays().items():
            if state[name].shape != array.shape:
                raise StoreError(f"array {name!r} is not that of such a run")
            array[:] = state[name]

    def _arrays(self) -> dict[str, Array]:
        return {
            "replay_action": self._action,
            "replay_reward": self._reward,
            "replay_is_end": self._is_end,
            "replay_begun": self._begun,
            "replay_count": self._count,
        }

    def _next(self, which: int, frame: Array, begun: int | None) -> int:
        """Complete a row and begin the next one, of the episode that began with row `begun`; None: of a new one."""
        self._count[which] += 1
        row = self._count[which] % self._rows
        self._frames[which, row] = frame
        self._action[which, row] = -1
        self._begun[which, row] = self._count[which] if begun is None else begun
        return int(self._begun[which, row])

    def _places(self, count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        columns, rows, missing = np.zeros(count, np.int64), np.zeros(count, np.int64), np.arange(count)
        while len(missing):
            column = rng.integers(len(self._count), size=len(missing))
            row = self._count[column] - 1 - rng.integers(np.minimum(self._count[column], self._size))
            columns[missing], rows[missing] = column, row
            missing = missing[self._action[column, row % self._rows] < 0]
        return columns, rows

    def _observed(self, column: NDArray[np.int64], row: NDArray[np.int64]) -> Array:
        if self._stack == 1:
            found: Array = self._frames[column, row % self._rows]
            return found
        begun = self._begun[column, row % self._rows]
        earlier = [np.maximum(row - back, begun) % self._rows for back in reversed(range(self._stack))]
        return np.concatenate([self._frames[column, place] for place in earlier], axis=-1)

    def _newest(self, observations: Array) -> Array:
        return observations if self._stack == 1 else observations[..., -self._channels :]


def _frames(path: Path | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if path is None:
        return np.zeros(shape, dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    is_there = path.exists() and path.stat().st_size == size
    try:
        return np.memmap(path, dtype, "r+" if is_there else "w+", shape=shape)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror})") from None
