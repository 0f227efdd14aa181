"""The choice that GORP(1, m) faces in one state: what its actions return, and how many episodes it takes to decide.

Its episodes take one action and explore then, so the mean of the returns after an action a is Q^1(s, a).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import Choices, choices_at
from efhorizon.planning.problem import Problem
from efhorizon.planning.returns import ReturnDistributions
from efhorizon.planning.values import Values, action_values, relative_error

MAX_LATTICE_POINTS = 1 << 22  # of the distributions of one state: beyond, there are none
_SCANNED = 32  # up to here every m is tried, then it is doubled and bisected
_MAX_M = 1 << 50
_MAX_POINTS = 2_000_000  # lattice points of one m

Distribution = tuple[NDArray[Any], NDArray[np.float64]]  # returns in reward units, and their probabilities


@dataclass(frozen=True)
class Decision:
    """One pair, with the distribution of returns after each of its actions.

    Raises `NoLatticeError` where there are no such distributions.
    """

    problem: Problem
    pair: int
    right: NDArray[np.bool_]  # [A], the actions that are right

    @cached_property
    def _choices(self) -> tuple[Choices, ReturnDistributions]:
        options = choices_at(self.problem, np.array([self.pair]), 1)
        return options, self.problem.return_distributions(options.group_ends, max_points=MAX_LATTICE_POINTS)

    def distribution(self, action: int) -> Distribution:
        """Of the return after an action, in the units of rewards (of returns, with a discount)."""
        options, after = self._choices
        group = int(options.arm_groups[options.arm_actions == action][0])
        least, mass = after.of(group)
        positive = np.flatnonzero(mass)
        prefix = after.units.sums(options.group_prefixes[group : group + 1], options.times[:1])[0]
        return prefix + least + positive, mass[positive]

    def seen_chance(self, right: int, wrong: int) -> float:
        """The chance that an episode shows something, in effect: p = min(1, 2 (E|X - c|)^2 / E[(X - c)^2]).

        X is the return after one of the two actions, each half the time, and c its median. If the right action pays 1
        with a chance of p and else nothing, as the wrong one does, it is p; for noise of all sizes it is about 1.
        """
        found = [self.distribution(action) for action in (right, wrong)]
        returns = np.concatenate([returns for returns, _ in found]).astype(np.float64)
        mass = np.concatenate([mass / 2 for _, mass in found])
        order = np.argsort(returns, kind="stable")
        returns, mass = returns[order], mass[order]
        median = returns[min(int(np.searchsorted(np.cumsum(mass), 0.5)), len(returns) - 1)]
        away = np.abs(returns - median)
        second = float(mass @ away**2)
        return min(1.0, 2 * float(mass @ away) ** 2 / second) if second > 0 else 1.0

    def right_chance(self, m: int, actions: Sequence[int] | None = None) -> float:
        """The chance of GORP(1, m) to choose a right action, among all or some of them."""
        return float(self._greedy(actions).probabilities(m)[0].chances[0, self.right].sum())

    def episodes(self, level: float, actions: Sequence[int] | None = None) -> int | None:
        """The least m with which a right action is chosen with this chance; None where none is found.

        Every m up to 32 is tried; beyond, m is the least between one that was tried and fails and one that does not.
        """
        greedy = self._greedy(actions)

        def suffices(m: int) -> bool:
            return float(greedy.probabilities(m)[0].chances[0, self.right].sum()) >= level

        failing = 0
        while failing < _SCANNED:
            if suffices(failing + 1):
                return failing + 1
            failing += 1
        m = 2 * failing
        while greedy.points(m) <= _MAX_POINTS and not suffices(m):
            failing, m = m, 2 * m
            if m > _MAX_M:
                return None
        if greedy.points(m) > _MAX_POINTS:
            return None
        while m - failing > 1:
            middle = (failing + m) // 2
            failing, m = (failing, middle) if suffices(middle) else (middle, m)
        return m

    def _greedy(self, actions: Sequence[int] | None) -> GreedyChoices:
        options, after = self._choices
        if actions is None:
            return GreedyChoices(options, after)
        arms = np.flatnonzero(np.isin(options.arm_actions, actions))
        groups = np.unique(options.arm_groups[arms])
        chosen = replace(
            options,
            group_starts=np.array([0, len(groups)]),
            group_ends=options.group_ends[groups],
            group_prefixes=options.group_prefixes[groups],
            arm_starts=np.array([0, len(arms)]),
            arm_groups=np.searchsorted(groups, options.arm_groups[arms]),
            arm_actions=options.arm_actions[arms],
            arm_counts=options.arm_counts[arms],
        )
        return GreedyChoices(chosen, replace(after, index=after.index[groups]))


def approximate_evidence(
    problem: Problem, values: Values, pair: int, right: int, wrong: int, level: float
) -> tuple[float, int]:
    """The chance to see something, and the episodes to decide between two actions, from moments alone.

    For returns without a lattice: p = min(1, 2 v^2 / w) from the mean variance v and fourth moment w, which is again p
    where a reward is rare; episodes by the normal approximation, z^2 (v_right + v_wrong) / (Q_right - Q_wrong)^2.
    """
    moments = problem.return_moments(problem.timeline.successors[pair, [right, wrong]])
    row = action_values(problem.timeline, values, pair).astype(np.float64)
    variance, fourth = float(moments.variance.mean()), float(moments.fourth.mean())
    seen = min(1.0, 2 * variance**2 / fourth) if fourth > 0 else 1.0
    gap = float(row[right] - row[wrong])
    z = float(ndtri(level))
    return seen, max(1, math.ceil(min(_MAX_M, z**2 * 2 * variance / gap**2))) if gap > 0 else _MAX_M


def is_misleading(problem: Problem, values: Values, pair: int, right: NDArray[np.bool_]) -> bool:
    """Whether Q^1 of the best wrong action is not below that of the best right one: more episodes then do not help.

    `values` are those of the exploration policy. Values that floats cannot order count as equal if their residues are.
    """
    row = action_values(problem.timeline, values, pair)
    if right.all():
        return False
    time = problem.timeline.time_of(pair)
    magnitude = float(np.abs(row).max())
    if len(values.magnitudes):
        after = problem.timeline.successors[pair]
        magnitude += float(np.where(after >= 0, values.magnitudes[np.maximum(after, 0)], 0.0).max())
    error = 2 * relative_error(problem.timeline, values, time) * magnitude
    return bool(row[right].max() - row[~right].max() <= error)
