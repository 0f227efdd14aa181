"""Bounds on the distribution of the mean of m returns (Appendix C), from their moments only.

A group of sequences with one distribution of returns is a row of numbers: the least return (counted from the least
that any group of the same choice can have, in reward units), the largest less the least, the mean less the least, the
largest less the mean, variance, third absolute moment, a bound on the error of the mean, the number of sequences, and
of those that begin with an optimal action. Every bound holds for any true mean within that error.

The paper's formulas hold after these corrections:
- Bernstein's lower bound of the distribution function at mean + u is 0, not 1, for u <= 0, and the denominator of the
  other tail has |u|, not u;
- Berry-Esseen takes the third absolute moment about the mean, not about 0.
Two of them are sharpened: the variance itself replaces its bound (beta - mean)(mean - alpha), and the largest
deviation to one side replaces beta - alpha (Bennett's inequality needs no more).
"""

from __future__ import annotations

import math

from efhorizon.compiled import Floats, compiled

LOW, SPAN, ABOVE, BELOW, VARIANCE, THIRD, SLACK, COUNT, OPTIMAL_COUNT = range(9)
NUM_COLUMNS = 9
_SMALL = 1e-3  # below, Bennett's exponent loses digits, and Bernstein's is as good


@compiled
def exponent(deviation: float, variance: float, bound: float) -> float:
    """Bennett: P(mean of m >= mu + u) <= exp(-m I), I = V / b^2 h(b u / V), h(x) = (1 + x) log(1 + x) - x.

    V is the variance and b the largest deviation upward. I >= u^2 / (2 V + 2 b u / 3), Bernstein's exponent.
    """
    if deviation <= 0.0:
        return 0.0
    if variance <= 0.0 or deviation > bound * (1 + 1e-12):
        return math.inf
    x = bound * deviation / variance
    if x < _SMALL:
        return deviation * deviation / (2 * variance + 2 * bound * deviation / 3)
    return variance / (bound * bound) * ((1 + x) * math.log1p(x) - x)


@compiled
def exceeds(group: Floats, u: float, m: float) -> float:
    """An upper bound of P(mean of m > u)."""
    if u >= group[LOW] + group[SPAN] + group[SLACK]:
        return 0.0
    return math.exp(-m * exponent(u - group[LOW] - group[ABOVE] - group[SLACK], group[VARIANCE], group[BELOW]))


@compiled
def reaches(group: Floats, u: float, m: float) -> float:
    """An upper bound of P(mean of m >= u)."""
    if u > group[LOW] + group[SPAN] + group[SLACK]:
        return 0.0
    return math.exp(-m * exponent(u - group[LOW] - group[ABOVE] - group[SLACK], group[VARIANCE], group[BELOW]))


@compiled
def stays_within(group: Floats, u: float, m: float) -> float:
    """An upper bound of P(mean of m <= u)."""
    if u < group[LOW] - group[SLACK]:
        return 0.0
    return math.exp(-m * exponent(group[LOW] + group[ABOVE] - group[SLACK] - u, group[VARIANCE], group[ABOVE]))


@compiled
def difference_exponent(winner: Floats, other: Floats) -> float:
    """I with P(mean of m of `other` >= mean of m of `winner`) <= exp(-m I); 0 unless the winner's mean is larger."""
    gap = winner[LOW] + winner[ABOVE] - winner[SLACK] - (other[LOW] + other[ABOVE] + other[SLACK])
    return exponent(
        gap, winner[VARIANCE] + other[VARIANCE], other[BELOW] + winner[ABOVE] + winner[SLACK] + other[SLACK]
    )


@compiled
def berry_esseen_error(group: Floats, m: float) -> float:
    """Shevtsova (2011): |P(mean of m <= u) - Phi| <= min(0.3328 (r + 0.429), 0.33554 (r + 0.415)) / sqrt(m).

    r = E|X - mu|^3 / sigma^3. 0 for a distribution on one point, whose distribution function is known.
    """
    if group[VARIANCE] <= 0.0:
        return 0.0
    ratio: float = max(group[THIRD] / group[VARIANCE] ** 1.5 * (1 + 1e-9), 1.0)
    return min(0.3328 * (ratio + 0.429), 0.33554 * (ratio + 0.415)) / math.sqrt(m)


@compiled
def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z * 0.7071067811865476)


@compiled
def distribution_bounds(group: Floats, u: float, m: float, normal_error: float) -> tuple[float, float]:
    """Lower and upper bound of P(mean of m <= u), by Bennett and, where normal_error < 1, also by Berry-Esseen."""
    low = 1.0 - exceeds(group, u, m)
    high = stays_within(group, u, m)
    if normal_error < 1.0 and group[VARIANCE] > 0.0:
        scale = math.sqrt(group[VARIANCE] / m)
        distance = u - group[LOW] - group[ABOVE]
        low = max(low, _normal((distance - group[SLACK]) / scale) - normal_error)
        high = min(high, _normal((distance + group[SLACK]) / scale) + normal_error)
    return low, high
