"""Values of every reachable (time, state) pair, and those of an exploration policy; `optimal.py` has the optimal ones.

    V^pi_t(s) = sum_a pi_t(a | s) (R(s, a) + gamma V^pi_{t+1}(f(s, a)))         V_T = 0

All in reward units (see `rewards.py`). Rounding: one step of either recursion costs at most A + 3 roundings, each
relative to a sum of absolute rewards, so a value with n steps to go is within n (A + 3) 2^-53 of its magnitude. Two
values that differ by more are different; two that differ by less are equal if and only if their residues are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.planning import _kernels as kernels
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.rewards import ROUNDING, RewardScale, residue, reward_scale
from efhorizon.planning.threads import on_layer
from efhorizon.planning.timeline import Timeline

_ROUNDINGS_A_STEP = 3  # besides one for each action: the reward's sum, the discount, the average


@dataclass(frozen=True)
class Values:
    """A value for every pair, in the three parts that `_kernels.py` explains."""

    scale: RewardScale
    numbers: NDArray[Any]  # [P], int64 or float64, in reward units
    residues: NDArray[np.uint64]  # [P] or [0]
    magnitudes: NDArray[np.float64]  # [P] or [0]

    def reward(self, pair: int = 0) -> float:
        """The value of one pair as a reward; pair 0 is the start."""
        return self.scale.reward(self.numbers[pair].item())

    @property
    def units(self) -> NDArray[Any]:
        """The rewards [R] in the type of these values."""
        return self.scale.units.astype(self.numbers.dtype)

    @property
    def discount(self) -> Any:
        """The discount in the type of these values."""
        return self.numbers.dtype.type(self.scale.discount)

    @property
    def parts(self) -> kernels.Parts:
        """What kernels read and write."""
        scale = self.scale
        return kernels.Parts(
            numbers=self.numbers,
            residues=self.residues,
            magnitudes=self.magnitudes,
            units=self.units,
            unit_residues=scale.residues,
            gamma=self.discount,
            gamma_residue=scale.discount_residue,
        )


def zero_values(timeline: Timeline, scale: RewardScale, *, residues: bool = True, averages: bool = False) -> Values:
    """Values of an episode that is over: 0, exact integers unless averages are to be taken."""
    exact = scale.exact and not averages
    num_pairs = timeline.num_pairs
    return Values(
        scale,
        np.zeros(num_pairs, np.int64 if exact else np.float64),
        np.zeros(0 if exact or not residues else num_pairs, np.uint64),
        np.zeros(0 if exact or not (scale.units < 0).any() else num_pairs),
    )


def relative_error(timeline: Timeline, values: Values, time: int) -> float:
    """The rounding error of a value at this time, relative to its magnitude; 0 for integers."""
    if values.numbers.dtype == np.int64:
        return 0.0
    return (timeline.mdp.horizon - time) * (timeline.mdp.num_actions + _ROUNDINGS_A_STEP) * ROUNDING


def policy_values(
    timeline: Timeline, policy: ArrayLike | ExplorationPolicy | None = None, *, gamma: float = 1.0
) -> Values:
    """V^pi_t(s) of an exploration policy, uniform unless one is given; Q^1_t(s, a) = R + gamma V^pi_{t+1}(s')."""
    mdp = timeline.mdp
    explorer = exploration_policy(mdp, policy)
    values = zero_values(timeline, reward_scale(mdp, gamma=gamma), residues=explorer.is_uniform, averages=True)
    share = np.uint64(residue(Fraction(1, mdp.num_actions)))
    steps, parts = timeline.steps, values.parts
    for time in reversed(range(mdp.horizon)):
        on_layer(kernels.average, timeline.layer(time), steps, parts, explorer.at(time), share)
    return values


def action_values(timeline: Timeline, values: Values, pairs: int | slice) -> NDArray[Any]:
    """Q_t(s, a) = R(s, a) + gamma V_{t+1}(f(s, a)) of one pair [A] or of several [pairs, A], in reward units."""
    successors = timeline.successors[pairs]
    rewards = values.units[timeline.mdp.reward_codes[timeline.states[pairs]]]
    following: NDArray[Any] = np.where(successors >= 0, values.numbers[successors], 0)
    result: NDArray[Any] = rewards + values.discount * following
    return result
