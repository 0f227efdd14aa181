"""What random play shows: its returns and lengths, how often it is rewarded at all, how early, and its best return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from efhorizon.diagnose.samples import Between, Sample, mean_between, widened

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class RandomPlay:
    """Statistics of random episodes; intervals are 90%."""

    episodes: int
    mean_return: Between
    worst_return: float
    best_return: float
    return_quantiles: tuple[float, ...]  # 5%, 25%, 50%, 75%, 95%
    mean_length: Between
    length_quantiles: tuple[float, ...]
    rewarded: Between  # share of episodes with any reward that is not 0
    median_first_reward: float | None  # the step at which it comes, in episodes that have one
    returns: tuple[tuple[float, int], ...]  # distinct returns and how often each came, at most `MOST_SHOWN`


MOST_SHOWN = 200


def random_play(returns: Sequence[float], lengths: Sequence[int], first_rewards: Sequence[int]) -> RandomPlay:
    """The statistics of some episodes; a first reward at 0 means none."""
    sample = Sample.of(returns)
    rewarded = [step for step in first_rewards if step]
    lengths_seen = Sample.of(map(float, lengths))
    shown = sorted(sample.counts.items()) if len(sample.counts) <= MOST_SHOWN else _binned(returns)
    return RandomPlay(
        episodes=sample.size,
        mean_return=mean_between(sample, *widened(sample.low, sample.high)),
        worst_return=sample.low,
        best_return=sample.high,
        return_quantiles=_quantiles(returns),
        mean_length=mean_between(lengths_seen, lengths_seen.low, lengths_seen.high),
        length_quantiles=_quantiles(lengths),
        rewarded=mean_between(Sample.of([float(step > 0) for step in first_rewards]), 0.0, 1.0),
        median_first_reward=float(np.median(rewarded)) if rewarded else None,
        returns=tuple((float(value), count) for value, count in shown),
    )


def chance_of(returns: Sequence[float], target: float) -> float:
    """The share of episodes that reach a return; of those that never did, what is likely at most a half of one."""
    reached = sum(each >= target - 1e-9 * max(1.0, abs(target)) for each in returns)
    return max(reached, 0.5) / max(1, len(returns))


def _quantiles(values: Sequence[float] | Sequence[int]) -> tuple[float, ...]:
    return tuple(float(each) for each in np.quantile(np.array(values, float), _QUANTILES, method="inverted_cdf"))


def _binned(returns: Sequence[float]) -> list[tuple[float, int]]:
    """Middles of equal bins."""
    counts, edges = np.histogram(returns, bins=min(MOST_SHOWN, 2 * math.isqrt(len(returns))))
    return [(float(middle), int(count)) for middle, count in zip((edges[1:] + edges[:-1]) / 2, counts, strict=True)]
