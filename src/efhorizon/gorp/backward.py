"""Exact chances of GORP's choices: which of several sums of returns is the largest, ties drawn at random.

Let G_i(x + z) = P(S_i < x) + z P(S_i = x) for lattice points x and 0 <= z <= 1. Drawing uniformly among the largest
sums is the same as comparing S_i + U_i with independent uniform U_i, so a sequence j is chosen with probability

    P_j = sum_x P(S_j = x) integral_0^1 prod_{i != j} G_i(x + z) dz.

The integrand is a polynomial in z, of degree one less than the number of sums that can equal x, with positive
derivatives: Gauss-Legendre quadrature errs only downward, on panels that halve towards z = 1 if there are many sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray
from scipy.special import roots_legendre

from efhorizon.gorp.decisions import Choices, equal_rows, merged
from efhorizon.gorp.success import Success
from efhorizon.gorp.sums import RolloutLaws, SumLaws
from efhorizon.gorp.threads import threads_if
from efhorizon.planning.returns import ReturnLaws
from efhorizon.planning.rewards import ROUNDING

_MOST_NODES = 16
_NEGLIGIBLE = 1e-30  # chance of a sum that is not looked at; all of them stay far below other errors
_PARALLEL_FROM = 1 << 16  # groups times lattice points


def _gauss_table() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on [0, 1]: row n holds the rule with n nodes, whose error is F^(2n) n!^4 / ((2n + 1) (2n)!^3).

    Also the rates r up to which that is at most 1e-16 if F^(2n) is r^(2n).
    """
    nodes, weights = np.zeros((2, _MOST_NODES + 1, _MOST_NODES))
    rates = np.zeros(_MOST_NODES + 1)
    for n in range(1, _MOST_NODES + 1):
        x, w = roots_legendre(n)
        nodes[n, :n], weights[n, :n] = (x + 1) / 2, w / 2
        error = math.factorial(n) ** 4 / ((2 * n + 1) * math.factorial(2 * n) ** 3)
        rates[n] = (1e-16 / error) ** (1 / (2 * n))
    return nodes, weights, rates


NODES, WEIGHTS, RATES = _gauss_table()


class GreedyChoices:
    """GORP's choices with the exact laws of its rollouts."""

    def __init__(self, choices: Choices, laws: ReturnLaws) -> None:
        choices, kept = merged(choices, equal_rows([laws.index, choices.group_prefixes]))
        self._choices = choices
        self._rollouts = RolloutLaws(laws)
        self._laws = laws.index[kept]
        counts = np.bincount(choices.arm_groups, choices.arm_counts, len(choices.group_ends))
        self._counts = counts.astype(np.float64)

    def points(self, m: int) -> int:
        """Lattice points of all choices: what `success` has to sum over."""
        first, last = self._rollouts.windows(m)
        return int((last - first + 1)[self._laws].sum())

    def success(self, m: int) -> Success:
        """The success recursion: V_t(s) = sum over optimal actions of P(a | s) V_{t+1}(s'), and 1 at the end."""
        following = self._choices.following
        chances, missing, error, points = self.probabilities(m)
        low, high, failures = np.zeros((3, self._choices.num_choices))
        _success_recursion(following, chances, missing, error, low, high)
        failing_chances(following, chances, failures)
        worst = int(failures.argmax())
        return Success(float(low[0]), float(high[0]), int(self._choices.pairs[worst]), float(failures[worst]), points)

    def probabilities(self, m: int) -> _Probabilities:
        """Chance [O, A] of each action at each choice, the chance left out [O], a bound on rounding [O], the work."""
        choices = self._choices
        return _all_probabilities(
            m, self._rollouts.sums(m), self._laws, self._counts, choices.group_starts, choices.group_prefixes,
            choices.arm_starts, choices.arm_groups, choices.arm_actions, choices.arm_counts, choices.following.shape[1],
        )  # fmt: skip


_Probabilities = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], int]


def _all_probabilities(
    m: int, sums: SumLaws, laws: NDArray[np.int64], counts: NDArray[np.float64],
    group_starts: NDArray[np.int64], prefixes: NDArray[Any],
    arm_starts: NDArray[np.int64], arm_groups: NDArray[np.int64], arm_actions: NDArray[np.int32],
    arm_counts: NDArray[np.float64], num_actions: int,
) -> _Probabilities:  # fmt: skip
    num_choices = len(group_starts) - 1
    chances = np.zeros((num_choices, num_actions))
    missing, error = np.zeros((2, num_choices))
    points = int(np.diff(sums.starts)[laws].sum())
    with threads_if(points >= _PARALLEL_FROM):
        _probabilities(
            m, group_starts, laws, prefixes, counts, arm_starts, arm_groups, arm_actions, arm_counts,
            sums.starts, sums.firsts, sums.strides, sums.mass, sums.cdf, sums.errors,
            NODES, WEIGHTS, RATES, ROUNDING, chances, missing, error,
        )  # fmt: skip
    return chances, missing, error, points


@njit(cache=True)
def _success_recursion(following, chances, missing, error, low, high):  # type: ignore[no-untyped-def]
    for choice in range(len(following) - 1, -1, -1):  # later choices have higher numbers
        for action in range(following.shape[1]):
            after = following[choice, action]
            if after >= -1:
                low[choice] += chances[choice, action] * (low[after] if after >= 0 else 1.0)
                high[choice] += chances[choice, action] * (high[after] if after >= 0 else 1.0)
        low[choice] = max(0.0, low[choice] - error[choice])
        high[choice] = min(1.0, high[choice] + missing[choice] + error[choice])


@njit(cache=True)
def failing_chances(following, chances, out):  # type: ignore[no-untyped-def]
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


@njit(cache=True)
def _gcd(a, b):  # type: ignore[no-untyped-def]
    while b:
        a, b = b, a % b
    return a


@njit(cache=True)
def win_at_point(n, counts, mass, below, nodes, weights, rates, out):  # type: ignore[no-untyped-def]
    """Add the chance of each active group's single sequence to win with the sum x.

    The integrand F and its derivatives are positive, F^(j) <= rate^j F(1): n Gauss nodes fall short by at most 1e-16 of
    F(1) if the rate is below rates[n].
    """
    base, top = 1.0, 1.0  # chances that sums which cannot equal x are below it, and the others not above
    tied = rate = 0.0
    all_at_least = True
    for i in range(n):
        if mass[i] == 0.0:
            if below[i] == 0.0:
                return
            base *= below[i] ** counts[i]
        else:
            reached = below[i] + mass[i]
            top *= reached if counts[i] == 1.0 else reached ** counts[i]
            tied += counts[i]
            rate += counts[i] * mass[i] / reached
            all_at_least &= below[i] == 0.0
    if tied == 0.0 or base * top < _NEGLIGIBLE:
        return
    if all_at_least:  # G = z P(S = x) for all of them
        for i in range(n):
            if mass[i] > 0.0:
                out[i] += base * top / tied
        return
    panels = 1
    if tied > 2 * _MOST_NODES:
        while rate > 4.0 and panels < 60:
            rate *= 0.5
            panels += 1
    num_nodes = 1 if panels == 1 else _MOST_NODES
    while num_nodes < _MOST_NODES and 2 * num_nodes < tied and rate > rates[num_nodes]:
        num_nodes += 1
    left, width = 0.0, 1.0
    for panel in range(panels):
        if panel < panels - 1:
            width *= 0.5
        for node in range(num_nodes):
            z = left + width * nodes[num_nodes, node]
            product = base * width * weights[num_nodes, node]
            for i in range(n):
                if mass[i] > 0.0:
                    g = below[i] + z * mass[i]
                    product *= g if counts[i] == 1.0 else g ** counts[i]
            for i in range(n):
                if mass[i] > 0.0:
                    out[i] += product * mass[i] / (below[i] + z * mass[i])
        left += width


@njit(cache=True, parallel=True)
def _probabilities(  # type: ignore[no-untyped-def]
    m, group_starts, laws, shifts, counts, arm_starts, arm_groups, arm_actions, arm_counts,
    starts, firsts, strides, masses, cdf, errors, nodes, weights, rates, rounding, out, missing, error,
):  # fmt: skip
    """out[i, a]: the chance that choice i takes action a; missing[i]: what truncation left out; error[i]: rounding."""
    for choice in prange(len(group_starts) - 1):
        begin, num_groups = group_starts[choice], group_starts[choice + 1] - group_starts[choice]
        low = np.empty(num_groups, np.int64)
        high = np.empty(num_groups, np.int64)
        floor = -(1 << 62)
        for i in range(num_groups):
            law = laws[begin + i]
            low[i] = firsts[law] + m * shifts[begin + i]
            high[i] = low[i] + strides[law] * (starts[law + 1] - starts[law] - 1)
            floor = max(floor, low[i])
            error[choice] += counts[begin + i] * (errors[law] + 4 * rounding)
        active = np.empty(num_groups, np.int64)
        n, top, step = 0, floor, 0
        for i in range(num_groups):
            if high[i] >= floor:
                active[n] = i
                top = max(top, high[i])
                step = _gcd(step, abs(floor - low[i]))
                step = _gcd(step, strides[laws[begin + i]])
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
            error[choice] += rounding * ((top - floor) // max(step, 1) + 1)
            for x in range(floor, top + 1, max(step, 1)):
                for j in range(n):
                    i = active[j]
                    law = laws[begin + i]
                    stride, offset = strides[law], x - low[i]
                    if x > high[i]:
                        mass[j], below[j] = 0.0, 1.0
                        continue
                    place = offset // stride if stride else 0
                    if stride == 0 or offset == place * stride:
                        mass[j] = masses[starts[law] + place]
                        below[j] = cdf[starts[law] + place - 1] if place > 0 else 0.0
                    else:
                        mass[j], below[j] = 0.0, cdf[starts[law] + place]
                win_at_point(n, own_counts, mass, below, nodes, weights, rates, wins)
            for j in range(n):
                chance[active[j]] = wins[j]
        total = 0.0
        for arm in range(arm_starts[choice], arm_starts[choice + 1]):
            share = arm_counts[arm] * chance[arm_groups[arm] - begin]
            out[choice, arm_actions[arm]] += share
            total += share
        missing[choice] = max(0.0, 1.0 - total)
