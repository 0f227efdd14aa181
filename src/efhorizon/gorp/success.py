"""GORP's success forward in time: where it is likely to be, not everywhere that optimal play leads.

The chances of each action are computed at the pairs of one time, GORP's whereabouts moved on, and so to the last time;
nothing is kept. Pairs that are met least are left out, which leaves success between two numbers: those that matter are
few, 1 in 4 of the five million of a gridworld with 80,000 states, and most of the work is in the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Flags, Floats, Integers, compiled
from efhorizon.planning.problem import Problem
from efhorizon.planning.rewards import ROUNDING

LEFT_OUT = (
    0.2,
    0.02,
    0.002,
    2e-4,
    2e-5,
    2e-6,
)  # chance of the choices left out, until success is above or below 1/2 for certain
SHOWN_WITHOUT = 0.02  # the same where success is to be shown
_POINTS_A_LAYER = 1000  # what the loop over times takes, in lattice points

Chances = tuple[NDArray[np.float64], NDArray[np.float64], int]  # of each action [O, A], their errors [O], the work
ChancesAt = Callable[[NDArray[np.int64]], Chances]  # at some pairs of one time


@dataclass(frozen=True)
class Success:
    """Bounds on the chance that GORP(k, m) ends with an optimal policy, and where it fails most."""

    low: float
    high: float
    worst_pair: int
    worst_failure: float  # chance to take the first action that is not optimal at that pair
    points: int  # lattice points summed over and sequences compared: a measure of the work

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        return (self.high - self.low) / 2

    def or_closer(self, other: Success) -> Success:
        """The one that leaves less open."""
        return self if self.error <= other.error else other


def compared_with_half(success: Callable[[float], Success], *, at_least: float = 0.0) -> Success:
    """Success with as few choices left out as it takes to compare it with 1/2, if that is possible.

    At least so much is left out: if that leaves it open whether success is above or below 1/2, it stays open.
    """
    points = 0
    for left_out in LEFT_OUT:
        found = success(left_out)
        points += found.points
        if found.low >= 0.5 or found.high < 0.5 or left_out <= at_least:
            break
    return replace(found, points=points)


def forward_success(
    problem: Problem,
    chances_at: ChancesAt,
    *,
    max_left_out: float,
    least: float = 0.0,
) -> Success:
    """Success by the chances at each pair, without those pairs that are met least: at most `max_left_out` of all.

    It ends early once success is known to be below `least`.
    """
    line, optimal = problem.timeline, problem.optimal
    success = left_out = doubt = 0.0
    worst, points = (0, 0.0), 0
    sizes = np.append(np.diff(line.starts), 0)
    reach = np.ones(1)  # of the pairs of one time
    for time in range(line.mdp.horizon):
        layer = line.layer(time)
        met = most_likely(reach, max_left_out / line.mdp.horizon)
        weights, pairs = reach[met], met + layer.start
        left_out += max(0.0, float(reach.sum() - weights.sum()))
        reach = np.zeros(sizes[time + 1])
        if not len(met):
            break
        chances, errors, work = chances_at(pairs)
        failures = np.zeros(len(met))
        success += _move_on(pairs, layer.stop, weights, chances, optimal.actions, line.successors, reach, failures)
        doubt += float(weights @ errors) + 4 * chances.size * ROUNDING  # each share is rounded, and so is each sum
        points += work + _POINTS_A_LAYER
        if failures.max() > worst[1]:
            worst = int(pairs[failures.argmax()]), float(failures.max())
        if success + float(reach.sum()) + left_out + doubt < least:
            break
    still_on = float(reach.sum())
    return Success(
        low=max(0.0, success - doubt),
        high=min(1.0, success + still_on + left_out + doubt),
        worst_pair=worst[0],
        worst_failure=worst[1],
        points=points,
    )


def most_likely(reach: NDArray[np.float64], left_out: float) -> NDArray[np.int64]:
    """Places of all but the least, which together are at most `left_out`; ascending."""
    met = np.flatnonzero(reach)
    ascending = met[np.argsort(reach[met], kind="stable")]
    return np.sort(ascending[np.searchsorted(np.cumsum(reach[ascending]), left_out, side="right") :])


@compiled
def _move_on(
    pairs: Integers, next_start: int, weights: Floats, chances: Floats, optimal: Flags, successors: Integers,
    reach: Floats, failures: Floats,
) -> float:  # fmt: skip
    """Where GORP is at the next time; returns the chance that the episode has ended well."""
    ended = 0.0
    for i in range(len(pairs)):
        for action in range(chances.shape[1]):
            share = weights[i] * chances[i, action]
            if not optimal[pairs[i], action]:
                failures[i] += share
            elif successors[pairs[i], action] >= 0:
                reach[successors[pairs[i], action] - next_start] += share
            else:
                ended += share
    return ended
