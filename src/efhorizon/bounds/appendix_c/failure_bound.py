"""GORP's failure probability as a function of m: the kernels of Appendix C put together."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from efhorizon.bounds.appendix_c import failure as kernels
from efhorizon.bounds.appendix_c.tails import (
    ABOVE,
    BELOW,
    COUNT,
    LOW,
    NUM_COLUMNS,
    OPTIMAL_COUNT,
    SLACK,
    SPAN,
    THIRD,
    VARIANCE,
)
from efhorizon.gorp.backward import failing_chances
from efhorizon.gorp.decisions import Choices, equal_rows, merged
from efhorizon.planning.moments import ReturnMoments
from efhorizon.planning.rewards import ROUNDING
from efhorizon.planning.threads import threads_if

_N = 100  # quantiles of a distribution in the grid, as in the paper
MAX_GRID_GROUPS = 100  # distribution functions are integrated for so many groups; the paper: so many sequences
_ROWS_A_BLOCK = 1 << 15
_PARALLEL_FROM = 256  # choices

_LEVELS = np.arange(1, _N // 2) / (_N // 2)
_TAIL_LEVELS = np.concatenate([-np.log(_LEVELS), [4.5, 5.5, 7.0, 9.0, 12.0, 16.0, 22.0, 30.0, 42.0, 80.0]])
_FAR = np.array([2.6, 2.9, 3.3, 3.8, 4.5, 5.5, 7.0])
_NORMAL_POINTS = np.concatenate([ndtri(np.arange(1, _N) / _N), _FAR, -_FAR])


@dataclass(frozen=True)
class Solution:
    """The failure bound of the start, and what it is made of. O choices."""

    failure: float
    methods: NDArray[np.int64]  # [O], the best method
    contributions: NDArray[np.float64]  # [O], chance to fail here, if all linear programs' worst came true


class FailureBound:
    """An upper bound of GORP's failure probability as a function of m."""

    def __init__(self, options: Choices, moments: ReturnMoments, *, uniform_ties: bool = True) -> None:
        rows = _groups(options, moments)
        two_point = moments.two_point & options.scale.exact
        self._options, kept = merged(options, equal_rows([*rows.T, two_point.astype(np.int8)]))
        counted = _with_counts(self._options, rows[kept])
        self._groups = kernels.Groups(counted, two_point[kept], moments.relative_error, uniform_ties)
        self._grid = kernels.Grid(_TAIL_LEVELS, _NORMAL_POINTS, MAX_GRID_GROUPS)

    @property
    def grid_work(self) -> int:
        """Groups whose distribution functions are integrated over grids: what takes the time."""
        choice_of = np.repeat(np.arange(self._options.num_choices), np.diff(self._options.group_starts))
        needs_grid = np.zeros(self._options.num_choices, np.bool_)
        needs_grid[choice_of[~self._groups.two_point]] = True
        return int(needs_grid[choice_of].sum())

    def without_grids(self) -> FailureBound:
        """The same with Bennett's inequality instead of Berry-Esseen and Bernstein grids: weaker, far quicker."""
        result = copy(self)
        result._grid = self._grid._replace(max_groups=0)
        return result

    def __call__(self, m: float) -> Solution:
        options = self._options
        num_choices, num_actions = options.following.shape
        failure, contributions = np.zeros((2, num_choices))
        chances = np.zeros((num_choices, num_actions))
        used = np.zeros(num_choices, np.int64)
        num_rows = min(num_choices, _ROWS_A_BLOCK)
        for end in range(num_choices, 0, -num_rows):
            begin = max(0, end - num_rows)
            bounds = self.chance_bounds(m, begin, end)
            kernels.failure_recursion(begin, options.following, bounds, failure, used, chances)
        failing_chances(options.following, chances, contributions)
        return Solution(float(failure[0]), used, contributions)

    def chance_bounds(self, m: float, begin: int, end: int) -> kernels.ChanceBounds:
        """Bounds on the chance of each action, by each method, at the choices begin .. end - 1."""
        lower, upper = np.empty((2, end - begin, kernels.NUM_METHODS, self._options.following.shape[1]))
        bounds = kernels.ChanceBounds(lower, upper, np.empty((end - begin, kernels.NUM_METHODS)))
        with threads_if(self._options.num_choices >= _PARALLEL_FROM):
            kernels.method_bounds(float(m), begin, end, self._options.arms, self._groups, self._grid, bounds)
        return bounds

    def success_limit(self, m: int) -> float:
        """A bound on the success probability that holds for this m and for every larger one."""
        bounds = np.zeros(self._options.num_choices)
        options = self._options
        kernels.success_limits(float(m), options.following, options.group_starts, self._groups.rows, bounds)
        return float(bounds[0])


def _groups(options: Choices, moments: ReturnMoments) -> NDArray[np.float64]:
    """The rows that `tails.py` describes [G, columns]."""
    prefixes = options.group_prefixes
    factor = options.scale.discount**options.num_steps
    lows = prefixes + factor * moments.least
    bases = np.minimum.reduceat(lows, options.group_starts[:-1])
    choice_of = np.repeat(np.arange(options.num_choices), np.diff(options.group_starts))
    columns = np.zeros((len(prefixes), NUM_COLUMNS))
    columns[:, LOW] = lows - bases[choice_of]
    columns[:, SPAN] = factor * (moments.largest - moments.least)
    columns[:, ABOVE], columns[:, BELOW] = factor * moments.above, factor * moments.below
    columns[:, VARIANCE] = factor**2 * moments.variance * (1 + 4 * moments.relative_error)
    columns[:, THIRD] = factor**3 * moments.third_absolute * (1 + 4 * moments.relative_error)
    columns[:, SLACK] = moments.relative_error * columns[:, ABOVE]
    columns[:, SLACK] += np.where(columns[:, ABOVE] > 0, 4 * ROUNDING * (columns[:, LOW] + columns[:, ABOVE]), 0)
    if not options.scale.exact:
        columns[:, SLACK] += moments.relative_error * (np.abs(prefixes) + np.abs(lows) + np.abs(bases[choice_of]))
    return columns


def _with_counts(options: Choices, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set the last columns: the number of sequences, and of those that begin with an optimal action."""
    choice_of = np.repeat(np.arange(options.num_choices), np.diff(options.group_starts))
    optimal = options.following[choice_of[options.arm_groups], options.arm_actions] > -2
    rows[:, COUNT] = np.bincount(options.arm_groups, options.arm_counts, len(rows))
    rows[:, OPTIMAL_COUNT] = np.bincount(options.arm_groups, options.arm_counts * optimal, len(rows))
    return rows
