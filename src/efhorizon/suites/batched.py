"""The second, optional protocol: simulators that step many states at once.

A state is a row of bytes of one length, and the same state is always the same bytes. A suite that has such a simulator
beside its usual one says so with `Suite.batched`; a search then runs without Python per state, to the same table.
Numba, JAX and C++ environments fit: all they need is to fill arrays.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.uint8]  # [B, n], states


class Successors(NamedTuple):
    """Where `expand` writes what each action does in each of B states."""

    states: NDArray[np.uint8]  # [B, A, n]; what is written where the episode ended does not matter
    rewards: NDArray[np.float64]  # [B, A]
    ended: NDArray[np.bool_]  # [B, A]

    @classmethod
    def empty(cls, batch: int, num_actions: int, state_bytes: int) -> Successors:
        shape = (batch, num_actions)
        return cls(np.empty((*shape, state_bytes), np.uint8), np.empty(shape), np.empty(shape, bool))


class Snapshots(Protocol):
    """A batched simulator that makes many snapshots at once; without it, `snapshot` is called for each state."""

    def snapshots(self, states: Rows) -> tuple[Rows, NDArray[np.int64]]:
        """The snapshot of each state [B, L], as far as its length [B] says."""
        ...


def joined_snapshots(simulator: BatchedSimulator, states: Rows) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The snapshots of some states, one after the other, and the length of each [B]."""
    many: Snapshots | None = cast(Snapshots, simulator) if hasattr(simulator, "snapshots") else None
    if many is None:
        snapshots = [simulator.snapshot(state) for state in states]
        return np.frombuffer(b"".join(snapshots), np.uint8), np.array([len(each) for each in snapshots], np.int64)
    rows, lengths = many.snapshots(states)
    if (lengths == rows.shape[1]).all():
        return rows.reshape(-1), lengths
    return rows[np.arange(rows.shape[1]) < lengths[:, None]], lengths


@runtime_checkable
class BatchedSimulator(Protocol):
    """A deterministic environment whose states are rows of bytes."""

    num_actions: int
    start: NDArray[np.uint8]  # [n], the start state
    # [H, W, C] of what is seen; None: states are not looked at, and differ only by what they do
    screen_shape: tuple[int, int, int] | None

    def expand(self, states: Rows, out: Successors) -> None:
        """Take every action in every state. Called from one thread at a time, while another one uses the processor."""
        ...

    def looks(self, states: Rows) -> Rows | None:
        """Bytes [B, m] that are equal where the screens are; None: every state has a screen of its own."""
        ...

    def screens(self, states: Rows) -> NDArray[np.uint8]:
        """What is seen in each state [B, H, W, C]."""
        ...

    def snapshot(self, state: NDArray[np.uint8]) -> bytes:
        """The same state for the suite's usual simulator: what its `set_state` takes."""
        ...
