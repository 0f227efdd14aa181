"""GORP's success with the exact distributions of its rollouts, backward over all its choices.

    P(success | t, s) = sum_{a optimal} P(a chosen | t, s) P(success | t + 1, f(s, a))

The chance of each action to be chosen is that of its sequences to have the largest sum of returns (`winning.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from efhorizon.compiled import Floats, Integers, Numbers, compiled, compiled_parallel, prange
from efhorizon.gorp.decisions import Arms, Choices, equal_rows, merged
from efhorizon.gorp.success import Success
from efhorizon.gorp.sums import RolloutSums, SumDistributions
from efhorizon.gorp.winning import win_at_point
from efhorizon.planning.returns import ReturnDistributions
from efhorizon.planning.rewards import ROUNDING
from efhorizon.planning.threads import threads_if

_PARALLEL_FROM = 1 << 16  # groups times lattice points


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
        self._choices, kept = merged(choices, equal_rows([returns.index, choices.group_prefixes]))
        counts = np.bincount(self._choices.arm_groups, self._choices.arm_counts, len(self._choices.group_ends))
        self._groups = _Groups(returns.index[kept], self._choices.group_prefixes, counts.astype(np.float64))
        self._rollouts = RolloutSums(returns)

    def points(self, m: int) -> int:
        """Lattice points of all choices: what `success` has to sum over."""
        first, last = self._rollouts.windows(m)
        return int((last - first + 1)[self._groups.distributions].sum())

    def success(self, m: int) -> Success:
        """The success recursion: V_t(s) = sum over optimal actions of P(a | s) V_{t+1}(s'), and 1 at the end."""
        following = self._choices.following
        (chances, missing, error), points = self.probabilities(m)
        low, high, failures = np.zeros((3, self._choices.num_choices))
        _success_recursion(following, chances, missing, error, low, high)
        failing_chances(following, chances, failures)
        worst = int(failures.argmax())
        return Success(float(low[0]), float(high[0]), int(self._choices.pairs[worst]), float(failures[worst]), points)

    def probabilities(self, m: int) -> tuple[Probabilities, int]:
        """The chances of each action at each choice, and the lattice points that it took."""
        sums = self._rollouts.sums(m)
        missing, error = np.zeros((2, self._choices.num_choices))
        found = Probabilities(np.zeros(self._choices.following.shape), missing, error)
        points = int(np.diff(sums.starts)[self._groups.distributions].sum())
        with threads_if(points >= _PARALLEL_FROM):
            _probabilities(m, self._choices.arms, self._groups, sums, found)
        return found, points


@compiled
def _success_recursion(
    following: Integers, chances: Floats, missing: Floats, error: Floats, low: Floats, high: Floats
) -> None:
    for choice in range(len(following) - 1, -1, -1):  # later choices have higher numbers
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


@compiled_parallel
def _probabilities(m: int, arms: Arms, groups: _Groups, sums: SumDistributions, out: Probabilities) -> None:
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
            error[choice] += ROUNDING * ((top - floor) // max(step, 1) + 1)
            for x in range(floor, top + 1, max(step, 1)):
                for j in range(n):
                    i = active[j]
                    own = distributions[begin + i]
                    stride, offset = strides[own], x - low[i]
                    if x > high[i]:
                        mass[j], below[j] = 0.0, 1.0
                        continue
                    place = offset // stride if stride else 0
                    if stride == 0 or offset == place * stride:
                        mass[j] = masses[starts[own] + place]
                        below[j] = cdf[starts[own] + place - 1] if place > 0 else 0.0
                    else:
                        mass[j], below[j] = 0.0, cdf[starts[own] + place]
                win_at_point(n, own_counts, mass, below, wins)
            for j in range(n):
                chance[active[j]] = wins[j]
        total = 0.0
        for arm in range(arm_starts[choice], arm_starts[choice + 1]):
            share = arm_counts[arm] * chance[arm_groups[arm] - begin]
            chances[choice, arm_actions[arm]] += share
            total += share
        missing[choice] = max(0.0, 1.0 - total)
