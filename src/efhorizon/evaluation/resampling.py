"""How sure is a metric? Bootstrap intervals and paired tests, over families of MDPs.

MDPs of one family (an Atari game over horizons, the levels of a Procgen game, the sizes of a gridworld) resemble each
other, so whole families are drawn: a cluster bootstrap. Where every family comes once this is the plain bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from efhorizon.evaluation.metrics import Floats, Metric, Sample, value

LEVEL = 0.95
LEAST_FAMILIES = 5  # resampling fewer is pointless: with two families, half of all resamples have one family twice
LEAST_DEFINED = 0.5  # share of resamples in which a metric must be defined


@dataclass(frozen=True)
class Estimate:
    """A metric with its percentile interval; None with a reason if there is none."""

    value: float | None
    low: float | None
    high: float | None
    num_mdps: int  # that entered
    reason: str | None = None  # why there is no value
    interval_reason: str | None = None  # why there is no interval


@dataclass(frozen=True)
class PairedTest:
    """Two predictors on the same MDPs: the difference of a metric, first minus second."""

    first: str
    second: str
    metric: str
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None  # two-sided
    p_value_holm: float | None  # adjusted for all tests of this metric and algorithm
    p_value_all: float | None  # adjusted for all metrics, algorithms and suites that are shown together
    better: str | None  # who is ahead, significantly or not
    num_mdps: int
    reason: str | None = None


def resampled_weights(families: NDArray[np.intp], num_resamples: int, rng: np.random.Generator) -> Floats:
    """[B, N] how often each MDP is in each resample: as often as its family is drawn."""
    num_families = int(families.max(initial=-1)) + 1
    if not num_families:
        return np.zeros((num_resamples, 0))
    counts = rng.multinomial(num_families, np.full(num_families, 1 / num_families), size=num_resamples)
    return counts[:, families].astype(np.float64)


def family_indices(families: Sequence[str]) -> NDArray[np.intp]:
    """Numbers instead of names."""
    numbers = {family: number for number, family in enumerate(sorted(set(families)))}
    return np.array([numbers[family] for family in families], np.intp)


def estimate(metric: Metric, sample: Sample, values: Floats, num_families: int) -> Estimate:
    """A metric and its interval; `values` [B] are those of the resamples."""
    num_used = metric.num_used(sample)
    reason = metric.reason(sample)
    if reason is not None:
        return Estimate(None, None, None, num_used, reason)
    low, high, interval_reason = _interval(values, num_families)
    return Estimate(value(metric, sample), low, high, num_used, None, interval_reason)


def paired_test(
    names: tuple[str, str],
    metric: Metric,
    samples: tuple[Sample, Sample],
    values: tuple[Floats, Floats],
    num_families: int,
) -> PairedTest:
    """Whether two predictors of the same outcomes differ: the share of resamples in which the other one is ahead.

    `values` are those of the same resamples, [B] for each.
    """
    first, second = names
    num_used = metric.num_used(samples[0])
    reason = metric.reason(samples[0]) or metric.reason(samples[1])
    if reason is None and num_families < LEAST_FAMILIES:
        reason = _too_few(num_families)
    if reason is not None:
        return PairedTest(first, second, metric.name, None, None, None, None, None, None, None, num_used, reason)
    one, other = (np.array([value(metric, sample)], np.float64) for sample in samples)
    difference = float(_differences(one, other)[0])
    differences = _differences(*values)
    low, high, reason = _interval(differences, num_families)
    defined = differences[~np.isnan(differences)]
    tail = min(int((defined <= 0).sum()), int((defined >= 0).sum()))
    ahead = first if (difference > 0) == metric.higher_is_better else second
    return PairedTest(
        first,
        second,
        metric.name,
        difference,
        low,
        high,
        p_value=None if reason else min(1.0, 2 * (tail + 1) / (len(defined) + 1)),
        p_value_holm=None,
        p_value_all=None,
        better=ahead if difference else None,
        num_mdps=num_used,
        reason=reason,
    )


def holm_adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment of p-values for testing several at once."""
    tested = sorted((p_value, place) for place, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p_value, place) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p_value))
        adjusted[place] = largest
    return adjusted


def adjusted_within(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """Tests of one metric and algorithm, adjusted for each other."""
    p_values = holm_adjusted([test.p_value for test in tests])
    return [replace(test, p_value_holm=p_value) for test, p_value in zip(tests, p_values, strict=True)]


def adjusted_together(groups: Sequence[Sequence[PairedTest]]) -> list[tuple[PairedTest, ...]]:
    """All tests that are shown together, adjusted for each other."""
    p_values = iter(holm_adjusted([test.p_value for group in groups for test in group]))
    return [tuple(replace(test, p_value_all=next(p_values)) for test in group) for group in groups]


def _interval(values: Floats, num_families: int) -> tuple[float | None, float | None, str | None]:
    """The middle of the values that are defined; its ends are values themselves, for some may be infinite."""
    defined = np.sort(values[~np.isnan(values)])
    if num_families < LEAST_FAMILIES:
        return None, None, _too_few(num_families)
    if len(defined) < max(1, LEAST_DEFINED * len(values)):
        return None, None, f"defined in only {len(defined):,} of {len(values):,} resamples"
    num_outside = round((1 - LEVEL) / 2 * len(defined))  # on each side
    return float(defined[num_outside]), float(defined[-1 - num_outside]), None


def _too_few(num_families: int) -> str:
    return f"{num_families} {'family is' if num_families == 1 else 'families are'} too few to resample"


def _differences(first: Floats, second: Floats) -> Floats:
    """First minus second; two infinite values are equal."""
    both = np.isinf(first) & np.isinf(second)
    return np.where(both, 0.0, np.where(both, 0.0, first) - np.where(both, 0.0, second))
