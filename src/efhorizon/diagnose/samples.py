"""Samples of returns, and intervals for their means and for the gap between two actions.

Returns of random play are often all 0 but a few, so the sample's own variance says too little. As Agresti and Coull do
for a proportion, and Agresti and Caffo for a difference of two, some imagined returns are added at both ends of the
range [lo, hi] of all returns seen in the environment: z^2 / 2 at each end for a mean, z^2 / 4 for a difference. For
returns that are 0 or 1 these are their intervals.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scipy.stats import norm

from efhorizon.diagnose.least_episodes import LEVEL

Z = float(norm.ppf((1 + LEVEL) / 2))


@dataclass(frozen=True)
class Between:
    """An estimate of a number and its 90% interval."""

    low: float
    estimate: float
    high: float


@dataclass(frozen=True)
class Sample:
    """Returns by how often each was seen."""

    counts: Mapping[float, int]

    @staticmethod
    def of(returns: Iterable[float]) -> Sample:
        return Sample(Counter(returns))

    @property
    def size(self) -> int:
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        return math.fsum(value * count for value, count in self.counts.items()) / self.size

    @property
    def low(self) -> float:
        return min(value for value, count in self.counts.items() if count)

    @property
    def high(self) -> float:
        return max(value for value, count in self.counts.items() if count)

    def variance_with(self, at_each_end: float, lo: float, hi: float) -> tuple[float, float]:
        """Mean and variance of the mean, with so many imagined returns at each end of the range."""
        size = self.size + 2 * at_each_end
        total = math.fsum(value * count for value, count in self.counts.items()) + at_each_end * (lo + hi)
        mean = total / size
        squares = math.fsum((value - mean) ** 2 * count for value, count in self.counts.items())
        squares += at_each_end * ((lo - mean) ** 2 + (hi - mean) ** 2)
        return mean, squares / size / size


def united(samples: Iterable[Sample]) -> Sample:
    """All returns of several samples."""
    counts: Counter[float] = Counter()
    for sample in samples:
        counts.update(sample.counts)
    return Sample(counts)


def widened(lo: float, hi: float) -> tuple[float, float]:
    """The range of returns; where all that were seen are equal, one more unit: that none differed proves nothing."""
    return (lo, hi) if lo < hi else (lo, lo + 1.0)


def mean_between(sample: Sample, lo: float, hi: float) -> Between:
    """The mean return and its interval."""
    mean, variance = sample.variance_with(Z * Z / 2, lo, hi)
    half = Z * math.sqrt(variance)
    return Between(max(lo, mean - half), sample.mean, min(hi, mean + half))


def gap_between(better: Sample, other: Sample, lo: float, hi: float) -> Between:
    """By how much the mean of one sample is above that of the other."""
    (one, spread_one), (two, spread_two) = (each.variance_with(Z * Z / 4, lo, hi) for each in (better, other))
    half = Z * math.sqrt(spread_one + spread_two)
    return Between(max(lo - hi, one - two - half), better.mean - other.mean, min(hi - lo, one - two + half))
