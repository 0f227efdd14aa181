"""Exploration policies: uniform, or probabilities given as an array [S, A] or [T, S, A].

Published files have one row more, [T, S + 1, A]: the last one stands for the end of an episode and is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.errors import EfhorizonError
from efhorizon.io.files import written_aside
from efhorizon.io.npy import read_numbers
from efhorizon.mdp import TabularMDP

_SUM_TOLERANCE = 1e-5  # of a row in float32, the least precise type in which networks write probabilities


class InvalidPolicyError(EfhorizonError, ValueError):
    """An exploration policy of the wrong shape, or rows that are no probability distributions."""


@dataclass(frozen=True)
class ExplorationPolicy:
    """A policy pi_t(a | s). Rows sum to 1 in float64; the uniform policy needs no array."""

    num_actions: int
    probabilities: NDArray[np.float64] | None = None  # [T, S, A] or [1, S, A]; None: uniform

    @property
    def is_uniform(self) -> bool:
        return self.probabilities is None

    @property
    def is_stationary(self) -> bool:
        return self.probabilities is None or len(self.probabilities) == 1

    def at(self, time: int) -> NDArray[np.float64]:
        """Probabilities at one time: [S, A], or [0, A] for the uniform policy, which kernels know how to read."""
        if self.probabilities is None:
            return np.empty((0, self.num_actions))
        layer: NDArray[np.float64] = self.probabilities[min(time, len(self.probabilities) - 1)]
        return layer

    def row(self, time: int, state: int) -> NDArray[np.float64]:
        """pi_t(. | s) [A]."""
        if self.probabilities is None:
            return np.full(self.num_actions, 1 / self.num_actions)
        row: NDArray[np.float64] = self.at(time)[state]
        return row


def exploration_policy(mdp: TabularMDP, policy: ArrayLike | ExplorationPolicy | None = None) -> ExplorationPolicy:
    """A validated policy from an array [S, A] or [T, S, A], or with a row for the end; None gives the uniform one.

    An array whose rows are all constant is the uniform policy too, so that both give the same figures.
    """
    if isinstance(policy, ExplorationPolicy):
        return policy
    if policy is None:
        return ExplorationPolicy(mdp.num_actions)
    array = np.asarray(policy)
    shapes = ((mdp.num_states, mdp.num_actions), (mdp.horizon, mdp.num_states, mdp.num_actions))
    if array.ndim in (2, 3) and array.shape[-2] == mdp.num_states + 1:
        array = array[..., :-1, :]
    if array.shape not in shapes:
        raise InvalidPolicyError(
            f"the exploration policy has shape {np.shape(policy)}; this table needs {shapes[0]} or {shapes[1]}, "
            "perhaps with one more row for the end of an episode"
        )
    if array.dtype.kind not in "iuf":
        raise InvalidPolicyError(f"the exploration policy must hold numbers, got {array.dtype}")
    probabilities = array.astype(np.float64).reshape(-1, *shapes[0])
    _check_rows(probabilities, timed=array.ndim == 3)
    if (probabilities == probabilities[:, :, :1]).all():
        return ExplorationPolicy(mdp.num_actions)
    probabilities /= probabilities.sum(axis=2, keepdims=True)
    probabilities.flags.writeable = False
    return ExplorationPolicy(mdp.num_actions, probabilities)


def _check_rows(probabilities: NDArray[np.float64], *, timed: bool) -> None:
    bad = ~(np.isfinite(probabilities) & (probabilities >= 0))
    if bad.any():
        time, state, action = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidPolicyError(
            f"the exploration policy gives action {action}{_place(time, state, timed)} "
            f"probability {probabilities[time, state, action]}"
        )
    sums = probabilities.sum(axis=2)
    off = np.abs(sums - 1) > _SUM_TOLERANCE
    if off.any():
        time, state = (int(i) for i in np.argwhere(off)[0])
        raise InvalidPolicyError(
            f"the exploration policy's probabilities{_place(time, state, timed)} sum to {sums[time, state]:.6g}, not 1"
        )


def _place(time: int, state: int, timed: bool) -> str:
    return f" in state {state}" + (f" at time {time}" if timed else "")


def load_policy(path: Path) -> NDArray[Any]:
    """The array of an exploration policy in a file; `exploration_policy` checks it against a table."""
    return read_numbers(path, "an exploration policy")


def published_policy(
    mdp: TabularMDP, policy: ArrayLike | ExplorationPolicy | None, at_end: ArrayLike | None = None
) -> NDArray[np.float32]:
    """A policy in the published layout, [T, S + 1, A]; the last row is `at_end` [A], by default every action alike."""
    if at_end is None and policy is not None and not isinstance(policy, ExplorationPolicy):
        given = np.asarray(policy)
        at_end = given[..., -1, :] if given.shape[-2:] == (mdp.num_states + 1, mdp.num_actions) else None
    checked = exploration_policy(mdp, policy)
    found = np.empty((mdp.horizon, mdp.num_states + 1, mdp.num_actions), np.float32)
    found[:, -1] = 1 / mdp.num_actions if at_end is None else at_end
    found[:, :-1] = 1 / mdp.num_actions if checked.probabilities is None else checked.probabilities
    return found


def save_policy(path: Path, probabilities: NDArray[Any]) -> Path:
    """Write the array of a policy; the old file stays until the new one is complete."""
    with written_aside(path) as temporary, temporary.open("wb") as file:
        np.save(file, probabilities, allow_pickle=False)
    return path
