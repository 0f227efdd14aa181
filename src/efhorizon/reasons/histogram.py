"""Distributions of returns short enough to be shown and stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from efhorizon.planning.return_units import NoLatticeError
from efhorizon.reasons.decision import Decision, Distribution

MAX_BINS = 60

Histogram = tuple[tuple[float, ...], tuple[float, ...]]  # returns and their probabilities


def histograms(decision: Decision, actions: Sequence[int]) -> list[Histogram]:
    """Of the returns after some actions; empty where there are none, and with a discount, where units differ."""
    empty: Histogram = ((), ())
    if decision.problem.gamma != 1.0:
        return [empty] * len(actions)
    try:
        found = [decision.distribution(action) for action in actions]
    except NoLatticeError:
        return [empty] * len(actions)
    unit = float(decision.problem.scale.unit)
    rewards = [(unit * returns.astype(np.float64), mass) for returns, mass in found]
    low = min(float(returns[0]) for returns, _ in rewards)
    high = max(float(returns[-1]) for returns, _ in rewards)
    return [histogram(distribution, low, high) for distribution in rewards]


def histogram(distribution: Distribution, low: float, high: float) -> Histogram:
    """Returns and their probabilities. Too many are merged into bins from `low` to `high`, each shown at its mean."""
    returns, mass = distribution
    if len(returns) > MAX_BINS:
        place = np.minimum((returns - low) / (high - low) * MAX_BINS, MAX_BINS - 1).astype(np.int64)
        total = np.bincount(place, mass, MAX_BINS)
        used = total > 0
        means = np.bincount(place, mass * returns, MAX_BINS)[used] / total[used]
        return tuple(means.tolist()), tuple(total[used].tolist())
    return tuple(returns.tolist()), tuple(mass.tolist())
