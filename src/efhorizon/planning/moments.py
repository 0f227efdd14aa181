"""Moments of the return-to-go under an exploration policy, from any reachable (time, state) pair.

    X_t(s) = R(s, a) + gamma X_{t+1}(f(s, a)),   a ~ pi_t(. | s),   X_T = 0

Moments need no lattice, as whole distributions do (`returns.py`). All sums are of nonnegative terms, so the mean above
the least return and the variance are right to a relative `mixing_error`, however small they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.compiled import Floats, Integers, Numbers, compiled_parallel, prange
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.rewards import ROUNDING, reward_scale
from efhorizon.planning.threads import on_layer
from efhorizon.planning.timeline import Timeline


@dataclass(frozen=True)
class ReturnMoments:
    """Moments of the return-to-go of N pairs, in reward units."""

    least: NDArray[np.float64]  # [N], alpha in Appendix C: the least return of positive probability
    largest: NDArray[np.float64]  # [N], beta
    above: NDArray[np.float64]  # [N], mean - least, kept apart because it can be 1e-11
    below: NDArray[np.float64]  # [N], largest - mean
    variance: NDArray[np.float64]  # [N]
    third_absolute: NDArray[np.float64]  # [N], E|X - mean|^3, or an upper bound of it
    fourth: NDArray[np.float64]  # [N], E(X - mean)^4
    two_point: NDArray[np.bool_]  # [N], whether only the least and the largest return occur
    relative_error: float

    @property
    def mean(self) -> NDArray[np.float64]:
        return self.least + self.above


class Mixture(NamedTuple):
    """How the returns after each action are mixed at one time."""

    successors: Integers  # [P, A]
    states: Integers  # [P]
    codes: Integers  # [S, A], of rewards
    units: Numbers  # [R]
    weights: Floats  # [S, A], or [0, A]: uniform


def mixing_error(timeline: Timeline) -> float:
    """Bound on the relative rounding error of a nonnegative sum over all times and actions."""
    return (timeline.mdp.horizon + 1) * (timeline.mdp.num_actions + 8) * ROUNDING


def return_moments(
    timeline: Timeline,
    pairs: ArrayLike,
    policy: ArrayLike | ExplorationPolicy | None = None,
    *,
    gamma: float = 1.0,
) -> ReturnMoments:
    """Moments of the return-to-go from some pairs (-1: an episode that is over), by recursion of central moments.

    With weights w, component means mu_i, variances v_i and d_i = mu_i - mu: v = sum w (v_i + d_i^2), and likewise up to
    the fourth. E|Y|^3 has no recursion: it is at most sqrt(E Y^2 E Y^4), and at most max|Y| E Y^2.
    """
    mdp = timeline.mdp
    scale = reward_scale(mdp, gamma=gamma)
    explorer = exploration_policy(mdp, policy)
    wanted = np.asarray(pairs, np.int64)
    columns = np.zeros((8, len(wanted)))
    columns[7, wanted < 0] = 1
    units = scale.units.astype(np.float64)
    following = np.zeros((8, 0))
    for time in reversed(range(mdp.horizon)):
        layer = timeline.layer(time)
        current = np.empty((8, layer.stop - layer.start))
        mixture = Mixture(*timeline.steps, units, explorer.at(time))
        on_layer(_mix_moments, layer, mixture, scale.discount, following, current)
        here = np.flatnonzero((wanted >= layer.start) & (wanted < layer.stop))
        columns[:, here] = current[:, wanted[here] - layer.start]
        following = current
    least, largest, above, below, variance, _, fourth, two_point = columns
    span = np.where(above + below > 0, above + below, 1.0)
    exact = variance * (above**2 + below**2) / span  # p q (p^2 + q^2) C^3 of a distribution on two points C apart
    bound = np.minimum(np.sqrt(variance) * np.sqrt(fourth), variance * np.maximum(above, below))
    third = np.where(two_point > 0, exact, bound)
    return ReturnMoments(least, largest, above, below, variance, third, fourth, two_point > 0, mixing_error(timeline))


@compiled_parallel
def _mix_moments(start: int, stop: int, mixture: Mixture, gamma: float, following: Floats, out: Floats) -> None:
    """Rows: least, largest, mean - least, largest - mean, central moments 2 to 4, whether only two returns occur."""
    successors, states, codes, units, weights = mixture
    num_actions = successors.shape[1]
    for i in prange(stop - start):
        pair = start + i
        parts = np.zeros((8, num_actions))
        shares = np.zeros(num_actions)
        count = 0
        least, largest = np.inf, -np.inf
        for action in range(num_actions):
            weight = weights[states[pair], action] if len(weights) else 1.0 / num_actions
            if weight == 0:
                continue
            shares[count] = weight
            successor = successors[pair, action]
            reward = units[codes[states[pair], action]]
            if successor >= 0:
                child = successor - stop  # the next layer begins where this one stops
                factor = 1.0
                for row in range(2, 7):
                    if row != 3:
                        factor *= gamma
                    parts[row, count] = factor * following[row, child]
                parts[0, count] = reward + gamma * following[0, child]
                parts[1, count] = reward + gamma * following[1, child]
                parts[7, count] = following[7, child]
            else:
                parts[0, count] = parts[1, count] = reward
                parts[7, count] = 1.0
            least, largest = min(least, parts[0, count]), max(largest, parts[1, count])
            count += 1
        above = below = 0.0
        two = 1.0
        for j in range(count):
            above += shares[j] * (parts[0, j] - least + parts[2, j])
            below += shares[j] * (largest - parts[1, j] + parts[3, j])
            for row in range(2):
                if parts[row, j] != least and parts[row, j] != largest:
                    two = 0.0
            two = min(two, parts[7, j])
        second = third = fourth = 0.0
        for j in range(count):
            d = parts[0, j] - least + parts[2, j] - above
            v, c = parts[4, j], parts[5, j]
            second += shares[j] * (v + d * d)
            third += shares[j] * (c + 3 * v * d + d**3)
            fourth += shares[j] * (parts[6, j] + 4 * c * d + 6 * v * d * d + d**4)
        out[0, i], out[1, i], out[2, i], out[3, i] = least, largest, above, below
        out[4, i], out[5, i], out[6, i], out[7, i] = second, third, max(fourth, second * second), two
