"""The interval of a share."""

from __future__ import annotations

from scipy import stats

from efhorizon.bounds.measures import LEVEL


def share_interval(hits: int, count: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share: never narrower than its level."""
    tail = (1 - LEVEL) / 2
    low = 0.0 if hits == 0 else float(stats.beta.ppf(tail, hits, count - hits + 1))
    high = 1.0 if hits == count else float(stats.beta.ppf(1 - tail, hits + 1, count - hits))
    return low, high
