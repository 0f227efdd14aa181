"""GORP's success with the exact distributions of its rollouts, backward over all its choices.

    P(success | t, s) = sum_{a optimal} P(a chosen | t, s) P(success | t + 1, f(s, a))

The chance of each action to be chosen is that of its sequences to have the largest sum of returns: `winning.py` if ties
are drawn at random, else `ties.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Floats, Integers, Numbers, compiled, compiled_parallel, prange
from efhorizon.gorp.decisions import Arms, Choices, equal_rows, merged
from efhorizon.gorp.success import Success
from efhorizon.gorp.sums import RolloutSums, SumDistributions
from efhorizon.gorp.ties import Ties, first_at_point, lowest_first, worst_first
from efhorizon.gorp.winning import win_at_point
from efhorizon.planning.return_units import NoLatticeError
from efhorizon.planning.returns import ReturnDistributions
from efhorizon.planning.rewards import ROUNDING
from efhorizon.planning.threads import threads_if

_PARALLEL_FROM = 1 << 16  # groups times lattice points
_MAX_SUM = 1 << 61  # of m returns, in 64 bits


class Probabilities(NamedTuple):
    """Of O choices."""

    chances: Floats  # [O, A], to take each action
    missing: Floats  # [O], the chance left out
    error: Floats  # [O], a bound on rounding


class _Groups(NamedTuple):
    distributions: Integers  # [G], of the return after the sequence
    prefixes: Numbers  # [G], what its own actions earn
    counts: Floats  # [G], the number of sequences


class GreedyChoices:
    """GORP's choices with the exact distributions of its rollouts."""

    def __init__(self, choices: Choices, returns: ReturnDistributions) -> None:
        """`returns` are those after the sequences of each group."""
        prefixes = returns.units.sums(choices.group_prefixes, np.repeat(choices.times, np.diff(choices.group_starts)))
        choices = replace(choices, group_prefixes=prefixes)
        self._choices, kept = merged(choices, equal_rows([returns.index, prefixes]))
        counts = np.bincount(self._choices.arm_groups, self._choices.arm_counts, len(self._choices.group_ends))
        self._groups = _Groups(returns.index[kept], self._choices.group_prefixes, counts.astype(np.float64))
        self._rollouts = RolloutSums(returns, choices.num_steps)
        self._is_sparse = returns.units.discount != 1  # few points of the lattice are sums, so each is gone to

    def points(self, m: int) -> int:
        """Lattice points of all choices: what `success` has to sum over."""
        first, last = self._rollouts.windows(m)
        return int((last - first + 1)[self._groups.distributions].sum())

    def success(self, m: int, ties: Ties = "uniform") -> Success:
        """The success recursion: V_t(s) = sum over optimal actions of P(a | s) V_{t+1}(s'), and 1 at the end."""
        following = self._choices.following
        low, high, failures = np.zeros((3, self._choices.num_choices))
        if ties == "adversarial":
            (chances, missing, error), points, _ = self._against(m, low, high)
        else:
            (chances, missing, error), points = self.probabilities(m, ties)
            _success_recursion(following, chances, missing, error, low, high, 0, len(following))
        failing_chances(following, chances, failures)
        worst = int(failures.argmax())
        return Success(float(low[0]), float(high[0]), int(self._choices.pairs[worst]), float(failures[worst]), points)

    def worst_order(self, m: int) -> NDArray[np.int64]:
        """The order of actions [O, A] in which ties go against GORP."""
        low, high = np.zeros((2, self._choices.num_choices))
        return self._against(m, low, high)[2]

    def probabilities(self, m: int, ties: Ties = "uniform") -> tuple[Probabilities, int]:
        """The chances of each action at each choice, and the lattice points that it took."""
        sums, found, points = self._prepared(m)
        with threads_if(points >= _PARALLEL_FROM):
            if ties == "uniform":
                _probabilities(m, self._is_sparse, self._choices.arms, self._groups, sums, found)
            else:
                order = lowest_first(*self._choices.following.shape)
                self._ordered(m, slice(0, len(order)), order, sums, found)
        return found, points

    def _against(self, m: int, low: Floats, high: Floats) -> tuple[Probabilities, int, NDArray[np.int64]]:
        """The same with ties against GORP, and the order in which they go; fills in success [O], from which that
        follows, from the last time back.

        By the lower bounds of later success, ties go to the least of them: both bounds stay bounds.
        """
        following, times = self._choices.following, self._choices.times
        sums, found, points = self._prepared(m)
        order = np.zeros(following.shape, np.int64)
        layers = np.unique(times)
        with threads_if(points >= _PARALLEL_FROM * len(layers)):
            for time in layers[::-1]:
                begin, end = np.searchsorted(times, [time, time + 1]).tolist()
                order[begin:end] = worst_first(following[begin:end], low)
                self._ordered(m, slice(begin, end), order, sums, found)
                _success_recursion(following, *found, low, high, begin, end)
        return found, points, order

    def _ordered(self, m: int, part: slice, order: Integers, sums: SumDistributions, found: Probabilities) -> None:
        arms, groups = self._choices.arms, self._groups
        _ordered_probabilities(m, part.start, part.stop, self._is_sparse, order, arms, groups, sums, found)

    def _prepared(self, m: int) -> tuple[SumDistributions, Probabilities, int]:
        """Distributions of sums, room for the chances, and the lattice points to sum over."""
        if m * (self._rollouts.largest + int(np.abs(self._groups.prefixes).max())) > _MAX_SUM:
            raise NoLatticeError(f"the sum of {m:,} returns may not fit in 64 bits")
        sums = self._rollouts.sums(m)
        missing, error = np.zeros((2, self._choices.num_choices))
        points = int(np.diff(sums.starts)[self._groups.distributions].sum())
        return sums, Probabilities(np.zeros(self._choices.following.shape), missing, error), points


@compiled
def _success_recursion(
    following: Integers, chances: Floats, missing: Floats, error: Floats, low: Floats, high: Floats, begin: int,
    end: int,
) -> None:  # fmt: skip
    """Success at the choices begin .. end - 1, from that at later ones."""
    for choice in range(end - 1, begin - 1, -1):  # later choices have higher numbers
        for action in range(following.shape[1]):
            after = following[choice, action]
            if after >= -1:
                low[choice] += chances[choice, action] * (low[after] if after >= 0 else 1.0)
                high[choice] += chances[choice, action] * (high[after] if after >= 0 else 1.0)
        low[choice] = max(0.0, low[choice] - error[choice])
        high[choice] = min(1.0, high[choice] + missing[choice] + error[choice])


@compiled
def failing_chances(following: Integers, chances: Floats, out: Floats) -> None:
    """Chance to reach each choice by optimal actions and to leave them there."""
    reach = np.zeros(len(following))
    reach[0] = 1.0
    for choice in range(len(following)):
        for action in range(following.shape[1]):
            after = following[choice, action]
            if after >= 0:
                reach[after] += reach[choice] * chances[choice, action]
            elif after == -2:
                out[choice] += reach[choice] * chances[choice, action]


@compiled
def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@compiled
def _next_point(x: int, beyond: int, low: Integers, high: Integers, own_strides: Integers) -> int:
    """The next point after x that is one of the sums low, low + stride, ..., high of some group; else `beyond`."""
    for i in range(len(low)):
        if high[i] > x:
            beyond = min(beyond, low[i] + ((x - low[i]) // own_strides[i] + 1) * own_strides[i])
    return beyond


@compiled_parallel
def _probabilities(
    m: int, sparse: bool, arms: Arms, groups: _Groups, sums: SumDistributions, out: Probabilities
) -> None:
    group_starts, arm_starts, arm_groups, arm_actions, arm_counts = arms
    distributions, shifts, counts = groups
    starts, firsts, strides, masses, cdf, errors = sums
    chances = out.chances
    missing = out.missing
    error = out.error
    for choice in prange(len(group_starts) - 1):
        begin, num_groups = group_starts[choice], group_starts[choice + 1] - group_starts[choice]
        low = np.empty(num_groups, np.int64)
        high = np.empty(num_groups, np.int64)
        floor = -(1 << 62)
        for i in range(num_groups):
            own = distributions[begin + i]
            low[i] = firsts[own] + m * shifts[begin + i]
            high[i] = low[i] + strides[own] * (starts[own + 1] - starts[own] - 1)
            floor = max(floor, low[i])
            error[choice] += counts[begin + i] * (errors[own] + 4 * ROUNDING)
        active = np.empty(num_groups, np.int64)
        n, top, step = 0, floor, 0
        for i in range(num_groups):
            if high[i] >= floor:
                active[n] = i
                top = max(top, high[i])
                step = _gcd(step, abs(floor - low[i]))
                step = _gcd(step, strides[distributions[begin + i]])
                n += 1
        chance = np.zeros(num_groups)
        if n == 1:
            chance[active[0]] = 1.0 / counts[begin + active[0]]
        else:
            own_counts = np.empty(n)
            mass = np.empty(n)
            below = np.empty(n)
            wins = np.zeros(n)
            for j in range(n):
                own_counts[j] = counts[begin + active[j]]
            own_strides = strides[distributions[begin : begin + num_groups]]
            x, visited = floor, 0
            while x <= top:
                for j in range(n):
                    i = active[j]
                    mass[j], below[j] = _at_point(x - low[i], distributions[begin + i], starts, strides, masses, cdf)
                win_at_point(n, own_counts, mass, below, wins)
                visited += 1
                x = _next_point(x, top + 1, low, high, own_strides) if sparse else x + max(step, 1)
            error[choice] += ROUNDING * visited
            for j in range(n):
                chance[active[j]] = wins[j]
        total = 0.0
        for arm in range(arm_starts[choice], arm_starts[choice + 1]):
            share = arm_counts[arm] * chance[arm_groups[arm] - begin]
            chances[choice, arm_actions[arm]] += share
            total += share
        missing[choice] = max(0.0, 1.0 - total)


@compiled
def _at_point(
    offset: int, own: int, starts: Integers, strides: Integers, masses: Floats, cdf: Floats
) -> tuple[float, float]:
    """P(S = x) and P(S < x) for a sum whose first point is `offset` below x."""
    stride, length = strides[own], starts[own + 1] - starts[own]
    if offset > stride * (length - 1):
        return 0.0, 1.0
    place = offset // stride if stride else 0
    if stride == 0 or offset == place * stride:
        return masses[starts[own] + place], cdf[starts[own] + place - 1] if place > 0 else 0.0
    return 0.0, cdf[starts[own] + place]


@compiled_parallel
def _ordered_probabilities(
    m: int, first: int, last: int, sparse: bool, order: Integers, arms: Arms, groups: _Groups, sums: SumDistributions,
    out: Probabilities,
) -> None:  # fmt: skip
    """The chances of each action at the choices first .. last - 1, where ties go by the order of actions [O, A]."""
    group_starts, arm_starts, arm_groups, arm_actions, arm_counts = arms
    distributions, shifts, counts = groups
    starts, firsts, strides, masses, cdf, errors = sums
    chances = out.chances
    missing = out.missing
    error = out.error
    for choice in prange(first, last):
        begin, end = group_starts[choice], group_starts[choice + 1]
        low = np.empty(end - begin, np.int64)
        high = np.empty(end - begin, np.int64)
        floor = -(1 << 62)  # some sum is never below it
        for i in range(end - begin):
            own = distributions[begin + i]
            low[i] = firsts[own] + m * shifts[begin + i]
            high[i] = low[i] + strides[own] * (starts[own + 1] - starts[own] - 1)
            floor = max(floor, low[i])
            error[choice] += counts[begin + i] * (errors[own] + 4 * ROUNDING)
        top, step = floor, 0
        for i in range(end - begin):
            if high[i] >= floor:
                top = max(top, high[i])
                step = _gcd(step, abs(floor - low[i]))
                step = _gcd(step, strides[distributions[begin + i]])
        mass = np.empty(end - begin)
        below = np.empty(end - begin)
        action_below = np.empty(order.shape[1])
        action_reached = np.empty(order.shape[1])
        own_strides = strides[distributions[begin:end]]
        x, visited = floor, 0
        while x <= top:
            for i in range(end - begin):
                mass[i], below[i] = _at_point(x - low[i], distributions[begin + i], starts, strides, masses, cdf)
            action_below[:] = 1.0
            action_reached[:] = 1.0
            for arm in range(arm_starts[choice], arm_starts[choice + 1]):
                i, action, count = arm_groups[arm] - begin, arm_actions[arm], arm_counts[arm]
                if x <= high[i]:
                    reached = min(1.0, below[i] + mass[i])
                    action_below[action] *= below[i] if count == 1.0 else below[i] ** count
                    action_reached[action] *= reached if count == 1.0 else reached**count
            first_at_point(order[choice], action_below, action_reached, chances[choice])
            visited += 1
            x = _next_point(x, top + 1, low, high, own_strides) if sparse else x + max(step, 1)
        error[choice] += ROUNDING * visited * order.shape[1]
        missing[choice] = max(0.0, 1.0 - chances[choice].sum())
