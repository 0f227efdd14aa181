"""Where GORP(1, m) makes its first mistake.

A mistake is an action after which no episode is optimal any more. As long as GORP makes none, it moves among the pairs
(time, state) that optimal play reaches. With P(a | c) its chance to take the action a at such a pair c,

    reach(0) = 1,    reach(c') = sum over c and optimal a that lead to c' of reach(c) P(a | c)
    first(c) = reach(c) sum_{a not optimal} P(a | c)

first(c) is the chance that the first mistake is made at c. No run makes two first mistakes, and a run without one
succeeds: the first(c) of all pairs sum to 1 - success.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.goal import MAX_SEQUENCES_A_CHOICE, GoalChoices
from efhorizon.gorp.success import Chances, ChancesAt, most_likely
from efhorizon.gorp.ties import Ties
from efhorizon.planning.problem import Problem
from efhorizon.planning.timeline import Timeline

OVER, WRONG, LEFT_OUT = -1, -2, -3  # in `following`
MAX_LEFT_OUT = 1e-3  # chance of pairs that are not looked at, where there are many
FEW_PAIRS = 100_000  # up to so many, none is left out
MOST_EPISODES = 1 << 60  # that compiled code can count; bounds on m can be larger


class TooMuchWorkError(Exception):
    """More lattice points than may be summed over."""


@dataclass(frozen=True)
class Losses:
    """O pairs where GORP is likely to be as long as its actions were optimal, in the order of time."""

    timeline: Timeline
    m: int
    pairs: NDArray[np.int64]  # [O]
    reach: NDArray[np.float64]  # [O], the chance to be there without a mistake so far
    chances: NDArray[np.float64]  # [O, A], of each action
    following: NDArray[np.int64]  # [O, A], the place of the next pair; OVER, WRONG or LEFT_OUT

    @property
    def mistakes(self) -> NDArray[np.float64]:
        """[O], the chance to take a wrong action, once there."""
        mistakes: NDArray[np.float64] = np.where(self.following == WRONG, self.chances, 0.0).sum(axis=1)
        return mistakes

    @cached_property
    def first(self) -> NDArray[np.float64]:
        """[O], the chance that the first mistake is made there."""
        return self.reach * self.mistakes

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """[O], ascending."""
        return np.searchsorted(self.timeline.starts, self.pairs, side="right") - 1

    @property
    def states(self) -> NDArray[np.int32]:
        """[O]."""
        states: NDArray[np.int32] = self.timeline.states[self.pairs]
        return states

    @cached_property
    def steps_at_risk(self) -> float:
        """The number of times among which first mistakes spread: 1 / sum_t share_t^2, which is n for n equal shares."""
        by_time = np.bincount(self.times, self.first)
        total = float(by_time.sum())
        return total**2 / float((by_time**2).sum()) if total > 0 else 0.0


def losses(
    problem: Problem,
    m: int,
    *,
    ties: Ties = "uniform",
    max_work: int | None = None,
    check: Callable[[], None] | None = None,
) -> Losses:
    """GORP(1, m) from the exact distributions of its rollouts.

    Raises `NoLatticeError` where these cannot be had, `TooMuchWorkError` where they take too many lattice points.
    `check` is called at every time, and may end it all by an exception.
    """
    exact: GoalChoices | ForwardChoices
    if problem.is_goal_mdp and problem.gamma == 1.0 and problem.mdp.num_actions <= MAX_SEQUENCES_A_CHOICE:
        if m > MOST_EPISODES:
            raise TooMuchWorkError
        exact = GoalChoices(problem, 1, check=check)
    else:
        exact = ForwardChoices(problem, 1, check=check)
    chances_at, work = exact.chances(m, ties), 0

    def counted(pairs: NDArray[np.int64]) -> Chances:
        nonlocal work
        found = chances_at(pairs)
        work += found[2]
        if max_work is not None and work > max_work:
            raise TooMuchWorkError
        return found

    pairs, reach, chances = _walked(problem, counted)
    return Losses(problem.timeline, m, pairs, reach, chances, _following(problem, pairs))


def _walked(
    problem: Problem, chances_at: ChancesAt
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The pairs [O] that are looked at, the chance [O] to be there without a mistake, and those of each action [O, A].

    Where pairs are many, those are left out which are met least by a GORP whose every mistake is repaired: it is
    nowhere less often than one that plays right by fiat in some states only, so MAX_LEFT_OUT bounds the error of all.
    """
    line, optimal = problem.timeline, problem.optimal
    left_out = 0.0 if int(optimal.reached.sum()) <= FEW_PAIRS else MAX_LEFT_OUT / problem.mdp.horizon
    reach, repaired = np.ones((2, 1))  # of the pairs of one time
    pairs, weights, rows = [], [], []
    for time in range(problem.mdp.horizon):
        layer, size = line.layer(time), int(np.append(np.diff(line.starts), 0)[time + 1])
        met = most_likely(repaired, left_out)
        if not len(met):
            break
        pairs.append(met + layer.start)
        weights.append(reach[met])
        rows.append(chances_at(pairs[-1])[0])
        right = optimal.actions[pairs[-1]]
        wrong = np.where(right, 0.0, rows[-1]).sum(axis=1)
        shares = np.where(right, rows[-1] + (wrong / right.sum(axis=1))[:, None], 0.0)
        after = line.successors[pairs[-1]] - layer.stop
        goes_on = right & (after >= 0)
        moved = after[goes_on]
        next_reach = np.bincount(moved, (weights[-1][:, None] * rows[-1])[goes_on], size)
        next_repaired = np.bincount(moved, (repaired[met][:, None] * shares)[goes_on], size)
        reach, repaired = next_reach, next_repaired
    return np.concatenate(pairs), np.concatenate(weights), np.concatenate(rows)


def _following(problem: Problem, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    line = problem.timeline
    place = np.full(line.num_pairs, LEFT_OUT, np.int64)
    place[pairs] = np.arange(len(pairs))
    successors = line.successors[pairs]
    following = np.where(successors >= 0, place[np.maximum(successors, 0)], OVER)
    return np.where(problem.optimal.actions[pairs], following, WRONG)
