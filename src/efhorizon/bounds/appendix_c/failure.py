"""Appendix C: how likely GORP is to leave the optimal actions, bounded from above.

For each choice and each of four methods: bounds  p_lower <= P(a sequence has the strictly largest mean)  and P(its
mean is at least all others) <= p_upper,  summed over the sequences that begin with each action. The linear program

    max sum_a f_a p_a    with    lower_a <= p_a <= upper_a,  sum_a p_a = 1

is a fractional knapsack: every action gets its lower bound, and what is left goes to the actions that fail most. f_a
is 1 for an action that is not optimal, else the failure bound of the next choice. One constraint is added to the
paper's: the actions that are not optimal get together at most `cap` >= P(their best mean >= the best of the optimal
ones). All bounds hold however ties are broken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from efhorizon.bounds.appendix_c.methods import UNUSED, bennett, binomial, distribution
from efhorizon.bounds.appendix_c.tails import ABOVE, LOW, OPTIMAL_COUNT, SPAN, difference_exponent
from efhorizon.compiled import Flags, Floats, Integers, compiled, compiled_parallel, prange
from efhorizon.gorp.decisions import Arms

BINOMIAL, BERRY_ESSEEN, BERNSTEIN, BENNETT = range(4)
NUM_METHODS = 4
MAX_BINOMIAL_M = 1e6
MAX_GRID_M = 1e12  # beyond, distribution functions are steps, and Bennett's inequality is as good
DECIDED = 1e-9  # chance of all actions but one below which no other method is tried


class Groups(NamedTuple):
    """The returns of each group of sequences."""

    rows: Floats  # [G, columns], see `tails.py`
    two_point: Flags  # [G], whether only two returns occur
    relative_error: float
    uniform_ties: bool


class Grid(NamedTuple):
    """Where distribution functions are evaluated."""

    tail_levels: Floats
    normal_points: Floats
    max_groups: int  # of a choice; where there are more, no distribution function is integrated


class ChanceBounds(NamedTuple):
    """Bounds on the chance of each action by each method, for some choices."""

    lower: Floats  # [choices, methods, A]
    upper: Floats  # [choices, methods, A]
    cap: Floats  # [choices, methods], UNUSED where a method does not apply


@compiled_parallel
def method_bounds(m: float, begin: int, end: int, arms: Arms, groups: Groups, grid: Grid, out: ChanceBounds) -> None:
    """The bounds of the choices begin .. end - 1."""
    group_starts, arm_starts, arm_groups, arm_actions, arm_counts = arms
    rows, two_point, relative_error, uniform_ties = groups
    tail_levels, normal_points, max_grid_groups = grid
    lower = out.lower
    upper = out.upper
    cap = out.cap
    for row in prange(end - begin):
        choice = begin + row
        first, last = group_starts[choice], group_starts[choice + 1]
        own = rows[first:last]
        num_groups = last - first
        p_low = np.empty(num_groups)
        p_high = np.empty(num_groups)
        lower[row] = 0.0
        upper[row] = 0.0
        cap[row] = UNUSED
        exact = m <= MAX_BINOMIAL_M and _all_two_valued(own, two_point[first:last])
        decided = False
        for method in (BINOMIAL, BENNETT, BERRY_ESSEEN, BERNSTEIN):
            if exact != (method == BINOMIAL) or decided:
                continue
            if method == BINOMIAL:
                cap[row, method] = binomial(own, m, relative_error, uniform_ties, p_low, p_high)
            elif method == BENNETT:
                cap[row, method] = bennett(own, m, p_low, p_high)
            elif num_groups <= max_grid_groups and m <= MAX_GRID_M:
                points = normal_points if method == BERRY_ESSEEN else normal_points[:0]
                cap[row, method] = distribution(own, m, tail_levels, points, p_low, p_high)
            if cap[row, method] == UNUSED:
                continue
            for arm in range(arm_starts[choice], arm_starts[choice + 1]):
                group = arm_groups[arm] - first
                lower[row, method, arm_actions[arm]] += arm_counts[arm] * p_low[group]
                upper[row, method, arm_actions[arm]] += arm_counts[arm] * p_high[group]
            if method == BENNETT:
                decided = upper[row, method].sum() - upper[row, method].max() < DECIDED


@compiled
def _all_two_valued(groups: Floats, two_point: Flags) -> bool:
    """Whether all returns of all groups are 0 or one other number."""
    top = 0.0
    for i in range(len(groups)):
        top = max(top, groups[i, LOW] + groups[i, SPAN])
    for i in range(len(groups)):
        low, high = groups[i, LOW], groups[i, LOW] + groups[i, SPAN]
        if not two_point[i] or (low != 0.0 and low != top) or (high != 0.0 and high != top):
            return False
    return True


@compiled
def failure_recursion(
    begin: int, following: Integers, bounds: ChanceBounds, failure: Floats, used: Integers, chances: Floats
) -> None:
    """The best of the methods for each choice, from the last to the first; row 0 of the bounds is choice `begin`."""
    lower, upper, cap = bounds
    num_actions = following.shape[1]
    trial = np.empty(num_actions)
    for row in range(len(lower) - 1, -1, -1):
        choice = begin + row
        failure[choice] = np.inf
        for method in range(NUM_METHODS):
            if cap[row, method] != UNUSED:
                value = knapsack(
                    following[choice], lower[row, method], upper[row, method], cap[row, method], failure, trial
                )
                if value < failure[choice]:
                    failure[choice] = value
                    used[choice] = method
                    chances[choice] = trial


@compiled
def knapsack(following: Integers, lower: Floats, upper: Floats, cap: float, failure: Floats, chances: Floats) -> float:
    """max sum f p over lower <= p <= upper, sum p = 1, with at most `cap` on the actions that are not optimal."""
    num_actions = len(following)
    left, value, others, worst = 1.0, 0.0, 0.0, -1
    for action in range(num_actions):
        chances[action] = lower[action]
        left -= lower[action]
        if following[action] == -2:
            value += lower[action]
            others += lower[action]
            worst = action
        elif following[action] >= 0:
            value += lower[action] * failure[following[action]]
    for action in range(num_actions):  # these fail for certain: first
        if following[action] == -2:
            more = max(0.0, min(left, upper[action] - lower[action], cap - others))
            chances[action] += more
            value += more
            others += more
            left -= more
    used = np.zeros(num_actions, np.bool_)
    while left > 0.0:
        best, best_failure = -1, -1.0
        for action in range(num_actions):
            if following[action] > -2 and not used[action]:
                own = failure[following[action]] if following[action] >= 0 else 0.0
                if own > best_failure:
                    best, best_failure = action, own
        if best < 0:
            break
        used[best] = True
        more = max(0.0, min(left, upper[best] - lower[best]))
        chances[best] += more
        value += more * best_failure
        left -= more
    if left > 0.0:  # rounding, or a cap below what the others leave
        value += left
        if worst >= 0:
            chances[worst] += left
    return min(1.0, value)


@compiled
def success_limits(m: float, following: Integers, group_starts: Integers, groups: Floats, out: Floats) -> None:
    """Bounds on the success from each choice on that only fall as m grows.

    An optimal action is chosen only if one of its sequences does at least as well as the best group without any: each
    of these chances is at most exp(-m I).
    """
    for choice in range(len(following) - 1, -1, -1):
        best = 0.0
        for action in range(following.shape[1]):
            after = following[choice, action]
            if after >= -1:
                best = max(best, out[after] if after >= 0 else 1.0)
        rival = -1
        for i in range(group_starts[choice], group_starts[choice + 1]):
            mean = groups[i, LOW] + groups[i, ABOVE]
            if groups[i, OPTIMAL_COUNT] == 0.0 and (rival < 0 or mean > groups[rival, LOW] + groups[rival, ABOVE]):
                rival = i
        chance = 1.0
        if rival >= 0:
            chance = 0.0
            for i in range(group_starts[choice], group_starts[choice + 1]):
                if groups[i, OPTIMAL_COUNT] > 0.0:
                    chance += groups[i, OPTIMAL_COUNT] * math.exp(-m * difference_exponent(groups[rival], groups[i]))
        out[choice] = min(1.0, chance) * best
