"""Values of every reachable (time, state) pair: optimal, worst, and under an exploration policy.

    V*_t(s)  = max_a R(s, a) + gamma V*_{t+1}(f(s, a))
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

from efhorizon.planning import _layer_kernels as kernels
from efhorizon.planning._threads import on_layer
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.rewards import ROUNDING, RewardScale, residue, reward_scale
from efhorizon.planning.timeline import Timeline

_ROUNDINGS_A_STEP = 3  # besides one for each action: the reward's sum, the discount, the average


@dataclass(frozen=True)
class Values:
    """A value for every pair, in the three parts that `_layer_kernels` explains."""

    scale: RewardScale
    numbers: NDArray[Any]  # [P], int64 or float64, in reward units
    residues: NDArray[np.uint64]  # [P] or [0]
    magnitudes: NDArray[np.float64]  # [P] or [0]

    def reward(self, pair: int = 0) -> float:
        """The value of one pair as a reward; pair 0 is the start."""
        return self.scale.reward(self.numbers[pair].item())

    def kernel_scale(self) -> tuple[Any, ...]:
        """The rewards and the discount in the type of these values."""
        units = self.scale.units.astype(self.numbers.dtype)
        gamma = self.numbers.dtype.type(self.scale.discount)
        return units, self.scale.residues, gamma, self.scale.discount_residue


@dataclass(frozen=True)
class OptimalValues:
    """V*, the optimal actions, and the pairs that some optimal policy reaches (S^opt in the paper)."""

    values: Values
    actions: NDArray[np.bool_]  # [P, A]
    reached: NDArray[np.bool_]  # [P]
    undecided_ties: int  # different values that floats cannot order; both actions then count as optimal


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


def optimal_values(timeline: Timeline, *, gamma: float = 1.0) -> OptimalValues:
    """V*_t(s) = max_a Q*_t(s, a), with every action that attains it."""
    values, actions, undecided = _maximum(timeline, reward_scale(timeline.mdp, gamma=gamma))
    reached = np.zeros(timeline.num_pairs, np.bool_)
    reached[0] = True
    for time in range(timeline.mdp.horizon):
        layer = timeline.layer(time)
        on_layer(kernels.mark_reached, layer, timeline.successors, actions, reached)
    return OptimalValues(values, actions, reached, undecided)


def worst_values(timeline: Timeline, *, gamma: float = 1.0) -> Values:
    """V_t(s) = min_a R(s, a) + gamma V_{t+1}(f(s, a)): the least that any action sequence gets."""
    scale = reward_scale(timeline.mdp, gamma=gamma)
    negated = RewardScale(-scale.units, scale.unit, scale.residues, scale.discount, scale.discount_residue)
    values = _maximum(timeline, negated)[0]
    np.negative(values.numbers, out=values.numbers)
    return Values(scale, values.numbers, values.residues[:0], values.magnitudes)


def policy_values(
    timeline: Timeline, policy: ArrayLike | ExplorationPolicy | None = None, *, gamma: float = 1.0
) -> Values:
    """V^pi_t(s) of an exploration policy, uniform unless one is given; Q^1_t(s, a) = R + gamma V^pi_{t+1}(s')."""
    mdp = timeline.mdp
    explorer = exploration_policy(mdp, policy)
    values = zero_values(timeline, reward_scale(mdp, gamma=gamma), residues=explorer.is_uniform, averages=True)
    share = np.uint64(residue(Fraction(1, mdp.num_actions)))
    for time in reversed(range(mdp.horizon)):
        layer = timeline.layer(time)
        on_layer(
            kernels.average,
            layer,
            timeline.successors,
            timeline.states,
            mdp.reward_codes,
            values.kernel_scale(),
            explorer.at(time),
            share,
            values.numbers,
            values.residues,
            values.magnitudes,
        )
    return values


def action_values(timeline: Timeline, values: Values, pair: int) -> NDArray[Any]:
    """Q_t(s, a) = R(s, a) + gamma V_{t+1}(f(s, a)) of one pair, for every action [A], in reward units."""
    units, _, gamma, _ = values.kernel_scale()
    successors = timeline.successors[pair]
    rewards = units[timeline.mdp.reward_codes[timeline.states[pair]]]
    following: NDArray[Any] = np.where(successors >= 0, values.numbers[successors], 0)
    result: NDArray[Any] = rewards + gamma * following
    return result


def _maximum(timeline: Timeline, scale: RewardScale) -> tuple[Values, NDArray[np.bool_], int]:
    values = zero_values(timeline, scale)
    actions = np.empty(timeline.successors.shape, np.bool_)
    undecided = 0
    for time in reversed(range(timeline.mdp.horizon)):
        layer = timeline.layer(time)
        undecided += on_layer(
            kernels.maximise,
            layer,
            timeline.successors,
            timeline.states,
            timeline.mdp.reward_codes,
            values.kernel_scale(),
            relative_error(timeline, values, time),
            values.numbers,
            values.residues,
            values.magnitudes,
            actions,
        )
    return values, actions, int(undecided)
