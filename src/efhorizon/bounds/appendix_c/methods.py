"""The four methods of Appendix C that bound the chance of a sequence to have the largest mean.

Each writes p_low <= P(strictly largest) and p_high >= P(at least all others) for one sequence of each group, and
returns a bound on P(some sequence that begins with an action that is not optimal is at least all that begin with
optimal ones).

With H(u) = prod over the other sequences of P(their mean <= u), increasing in u, and F the distribution function of a
sequence's own mean, integrals of H dF lie between sums over any grid u_0 < u_1 < ...:

    sum_i H_lower(u_{i-1}) (F_upper(u_i) - F_upper(u_{i-1}))  <=  P(strictly largest)
    P(at least all others)  <=  sum_i H_upper(u_i) (F_lower(u_i) - F_lower(u_{i-1}))

for a smaller F means a larger variable; the paper states the two orders the other way round. The grid is common to all
sequences, so A^k times fewer distribution functions are evaluated than with one grid for each.
"""

from __future__ import annotations

import math

import numpy as np

from efhorizon.bounds.appendix_c.tails import (
    ABOVE,
    BELOW,
    COUNT,
    LOW,
    OPTIMAL_COUNT,
    SLACK,
    SPAN,
    VARIANCE,
    berry_esseen_error,
    difference_exponent,
    distribution_bounds,
    reaches,
    stays_within,
)
from efhorizon.compiled import Floats, compiled
from efhorizon.gorp.sums import binomial_distribution
from efhorizon.gorp.winning import win_at_point

_WINDOW_EXPONENT = 42.0  # exp(-42) < 1e-18 is left out of a binomial distribution on each side
_ROUNDING = 1e-15
UNUSED = 2.0  # instead of a bound: the method does not apply


@compiled
def binomial(
    groups: Floats, m: float, relative_error: float, uniform_ties: bool, p_low: Floats, p_high: Floats
) -> float:
    """All returns are 0 or C: sums over all values of the largest, no grid needed: the two bounds are equalities.

    With uniform ties p_low and p_high are the chance itself (`gorp/winning.py`), up to rounding.
    """
    num_groups = len(groups)
    top = 0.0
    for i in range(num_groups):
        top = max(top, groups[i, LOW] + groups[i, SPAN])
    first = np.zeros(num_groups, np.int64)
    starts = np.zeros(num_groups + 1, np.int64)
    chances = np.empty(num_groups)
    slack = 0.0
    floor, ceiling = 0, 0
    for i in range(num_groups):
        p = 1.0 if groups[i, LOW] > 0.0 else (groups[i, ABOVE] / top if top > 0.0 else 0.0)
        q = 0.0 if groups[i, LOW] > 0.0 else (groups[i, BELOW] / top if groups[i, SPAN] > 0.0 else 1.0)
        linear = _WINDOW_EXPONENT / 3 if p > 0.0 and q > 0.0 else 0.0
        width = linear + math.sqrt(linear**2 + 2 * m * p * q * _WINDOW_EXPONENT)
        first[i] = int(max(math.floor(m * p - width), 0.0)) if q > 0.0 else int(m)
        last = int(min(math.ceil(m * p + width), m)) if p > 0.0 else 0
        chances[i] = p
        starts[i + 1] = starts[i] + last - first[i] + 1
        floor, ceiling = max(floor, first[i]), max(ceiling, last)
        slack += groups[i, COUNT] * (m * min(p, q) * relative_error + _ROUNDING * (last - first[i] + 1))
    mass = np.empty(starts[num_groups])
    for i in range(num_groups):
        binomial_distribution(m, chances[i], 1.0 - chances[i], first[i], mass[starts[i] : starts[i + 1]])
    below = np.zeros(num_groups)  # P(S < x)
    here = np.zeros(num_groups)  # P(S = x)
    for i in range(num_groups):
        for j in range(min(floor - first[i], starts[i + 1] - starts[i])):
            below[i] += mass[starts[i] + j]
        p_low[i] = p_high[i] = 0.0
    optimal_wins = 0.0
    counts = groups[:, COUNT].copy()
    for x in range(floor, ceiling + 1):
        before, after, best_before, best_after, rest = 1.0, 1.0, 1.0, 1.0, 1.0
        for i in range(num_groups):
            place = x - first[i]
            here[i] = mass[starts[i] + place] if place < starts[i + 1] - starts[i] else 0.0
            if uniform_ties:
                continue
            within = below[i] + here[i]
            count, optimal = groups[i, COUNT], groups[i, OPTIMAL_COUNT]
            before *= _power(below[i], count)
            after *= _power(within, count)
            best_before *= _power(below[i], optimal)
            best_after *= _power(within, optimal)
            rest *= _power(below[i], count - optimal)
        if uniform_ties:
            win_at_point(num_groups, counts, here, below, p_low)
        optimal_wins += (best_after - best_before) * rest
        for i in range(num_groups):
            if here[i] > 0.0 and not uniform_ties:
                p_low[i] += here[i] * (before / below[i] if below[i] > 0.0 else _others_below(i, groups, below))
                p_high[i] += here[i] * after / (below[i] + here[i])
        for i in range(num_groups):
            below[i] = min(below[i] + here[i], 1.0)
    if uniform_ties:
        slack += max(0.0, 1.0 - (p_low * counts).sum())
        optimal_wins = (p_low * groups[:, OPTIMAL_COUNT]).sum()
        p_high[:] = p_low
    for i in range(num_groups):
        p_low[i] = max(0.0, p_low[i] - slack)
        p_high[i] = min(1.0, p_high[i] + slack)
    return min(1.0, 1.0 - optimal_wins + slack)


@compiled
def _power(x: float, n: float) -> float:
    if n == 0.0:
        return 1.0
    return x if n == 1.0 else x**n


@compiled
def _others_below(own: int, groups: Floats, below: Floats) -> float:
    product = 1.0
    for i in range(len(groups)):
        product *= _power(below[i], groups[i, COUNT] - (1.0 if i == own else 0.0))
    return product


@compiled
def bennett(groups: Floats, m: float, p_low: Floats, p_high: Floats) -> float:
    """One threshold u: below it the sequences that should lose, above it one that should win.

    p_high = 1 - P(own mean < u) P(some mean of the best > u), for the best sequences B and any u; the paper asks that
    all of B exceed u, but one is enough. B: the optimal groups whose mean is above that of all groups with a sequence
    that is not optimal, if there is one; u between the two, best of several. Also P(own mean >= that of the best
    one), from the distribution of the difference, as in the proof of Theorem 5.4: so no theorem is better than this
    method.
    """
    best_other, best = -math.inf, -math.inf
    top = 0
    for i in range(len(groups)):
        p_low[i], p_high[i] = 0.0, 1.0
        mean = groups[i, LOW] + groups[i, ABOVE]
        if groups[i, COUNT] > groups[i, OPTIMAL_COUNT]:
            best_other = max(best_other, mean)
        if mean > groups[top, LOW] + groups[top, ABOVE]:
            top = i
    for i in range(len(groups)):
        if i != top:
            p_high[i] = math.exp(-m * difference_exponent(groups[top], groups[i]))
    if best_other == -math.inf:
        return 0.0
    winner = -1
    for i in range(len(groups)):
        mean = groups[i, LOW] + groups[i, ABOVE]
        if groups[i, COUNT] == groups[i, OPTIMAL_COUNT] and mean > max(best, best_other):
            best, winner = mean, i
    if winner < 0:
        return 1.0
    spread = 0.0
    for i in range(len(groups)):
        if groups[i, LOW] + groups[i, ABOVE] == best_other:
            spread = max(spread, math.sqrt(groups[i, VARIANCE]))
    ratio = spread / (spread + math.sqrt(groups[winner, VARIANCE])) if spread > 0.0 else 0.0
    cap = 1.0
    for attempt in range(6):
        weight = (0.5, ratio, 0.25, 0.75, 0.1, 0.9)[attempt]
        cap = min(cap, _threshold_bound(groups, m, best_other, best_other + weight * (best - best_other), p_high))
    total = 0.0
    for i in range(len(groups)):
        if i != winner:
            tail = math.exp(-m * difference_exponent(groups[winner], groups[i]))
            total += (groups[i, COUNT] - groups[i, OPTIMAL_COUNT]) * tail
    return min(cap, total)


@compiled
def _threshold_bound(groups: Floats, m: float, best_other: float, u: float, p_high: Floats) -> float:
    all_within = 1.0  # P(no mean of the best exceeds u)
    for i in range(len(groups)):
        if groups[i, COUNT] == groups[i, OPTIMAL_COUNT] and groups[i, LOW] + groups[i, ABOVE] > best_other:
            all_within *= stays_within(groups[i], u, m) ** groups[i, COUNT]
    any_reaches = 0.0  # P(some sequence that is not optimal has a mean of u or more), by the union bound
    for i in range(len(groups)):
        mean = groups[i, LOW] + groups[i, ABOVE]
        if mean <= best_other:
            tail = reaches(groups[i], u, m)
            any_reaches += (groups[i, COUNT] - groups[i, OPTIMAL_COUNT]) * tail
            p_high[i] = min(p_high[i], tail + all_within - tail * all_within)
    return min(1.0, any_reaches + all_within)


@compiled
def distribution(
    groups: Floats, m: float, tail_levels: Floats, normal_points: Floats, p_low: Floats, p_high: Floats
) -> float:
    """Bernstein, or Berry-Esseen with points: distribution functions at the quantiles of the likely winners."""
    num_groups = len(groups)
    errors = np.full(num_groups, 2.0)
    if len(normal_points):
        useful = False
        for i in range(num_groups):
            errors[i] = berry_esseen_error(groups[i], m)
            useful = useful or 0.0 < errors[i] < 0.5
        if not useful:
            return UNUSED
    grid = _grid(groups, m, tail_levels, normal_points)
    low, high = np.empty(num_groups), np.empty(num_groups)
    last_low, last_high = np.zeros(num_groups), np.zeros(num_groups)
    for i in range(num_groups):
        p_low[i] = p_high[i] = 0.0
    optimal_wins = 0.0
    before, zeros_before = 0.0, 2.0  # of the lower bounds at the grid point before: logarithm of the product, zeros
    rest_before, best_before = 0.0, 0.0
    if num_groups == 1 and groups[0, COUNT] == 1.0:
        zeros_before = 1.0
    for j in range(len(grid) + 1):
        within, after, zeros_within, zeros_after = 0.0, 0.0, 0.0, 0.0
        best_after, rest_after = 1.0, 1.0
        for i in range(num_groups):
            if j < len(grid):
                low[i], high[i] = distribution_bounds(groups[i], grid[j], m, errors[i])
            else:
                low[i] = high[i] = 1.0
            count, optimal = groups[i, COUNT], groups[i, OPTIMAL_COUNT]
            if high[i] > 0.0:
                within += count * math.log(high[i])
            else:
                zeros_within += count
            if low[i] > 0.0:
                after += count * math.log(low[i])
            else:
                zeros_after += count
            best_after *= _power(high[i], optimal)
            rest_after *= _power(low[i], count - optimal)
        optimal_wins += max(best_after - best_before, 0.0) * rest_before
        for i in range(num_groups):
            if low[i] > last_low[i]:
                p_high[i] += (low[i] - last_low[i]) * _without_one(within, zeros_within, high[i])
            if high[i] > last_high[i]:
                p_low[i] += (high[i] - last_high[i]) * _without_one(before, zeros_before, last_low[i])
            last_low[i], last_high[i] = low[i], high[i]
        before, zeros_before, rest_before, best_before = after, zeros_after, rest_after, best_after
    for i in range(num_groups):
        p_high[i] = min(1.0, p_high[i] + _ROUNDING * len(grid))
        p_low[i] = max(0.0, p_low[i] - _ROUNDING * len(grid))
    return min(1.0, 1.0 - optimal_wins + _ROUNDING * len(grid))


@compiled
def _without_one(log_product: float, zeros: float, factor: float) -> float:
    """A product of factors without one of them; zeros are counted apart."""
    if factor > 0.0:
        return math.exp(min(0.0, log_product - math.log(factor))) if zeros == 0.0 else 0.0
    return math.exp(min(0.0, log_product)) if zeros == 1.0 else 0.0


@compiled
def _grid(groups: Floats, m: float, tail_levels: Floats, normal_points: Floats) -> Floats:
    """Quantiles of the two largest means of each kind, optimal and not, and every return that is certain."""
    num_groups = len(groups)
    keys = np.full(4, -1, np.int64)
    for i in range(num_groups):
        mean = groups[i, LOW] + groups[i, ABOVE]
        for kind in range(2):
            present = groups[i, OPTIMAL_COUNT] if kind == 0 else groups[i, COUNT] - groups[i, OPTIMAL_COUNT]
            if present > 0.0:
                first, second = keys[2 * kind], keys[2 * kind + 1]
                if first < 0 or mean > groups[first, LOW] + groups[first, ABOVE]:
                    keys[2 * kind], keys[2 * kind + 1] = i, first
                elif second < 0 or mean > groups[second, LOW] + groups[second, ABOVE]:
                    keys[2 * kind + 1] = i
    grid = np.empty(4 * (2 * len(tail_levels) + len(normal_points) + 1) + num_groups)
    size = 0
    for i in range(num_groups):
        if groups[i, VARIANCE] <= 0.0:
            grid[size] = groups[i, LOW] + groups[i, SLACK]
            size += 1
    for key in range(4):
        i = keys[key]
        if i < 0 or groups[i, VARIANCE] <= 0.0 or (keys[:key] == i).any():
            continue
        mean, variance = groups[i, LOW] + groups[i, ABOVE], groups[i, VARIANCE] / m
        grid[size] = mean
        size += 1
        for level in tail_levels:
            for side in range(2):
                linear = (groups[i, BELOW] if side == 0 else groups[i, ABOVE]) * level / (3 * m)
                deviation = groups[i, SLACK] + linear + math.sqrt(linear * linear + 2 * variance * level)
                u = mean + deviation if side == 0 else mean - deviation
                grid[size] = min(max(u, groups[i, LOW]), groups[i, LOW] + groups[i, SPAN])
                size += 1
        for point in normal_points:
            grid[size] = mean + point * math.sqrt(variance)
            size += 1
    return np.sort(grid[:size])
