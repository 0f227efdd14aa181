"""Intervals and paired tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation_data import sample

from efhorizon.evaluation.metrics import AUROC, CORRELATION, MEDIAN_RATIO, Metric, Sample
from efhorizon.evaluation.resampling import (
    PairedTest,
    adjusted_together,
    adjusted_within,
    estimate,
    family_indices,
    holm_adjusted,
    paired_test,
    resampled_weights,
)

INF = math.inf


def line(rng: np.random.Generator, noise: float, size: int = 60) -> Sample:
    outcomes = np.linspace(2, 8, size)
    predictions = outcomes + noise * rng.normal(size=size)
    return Sample(predictions, np.where(outcomes > 6.7, INF, outcomes), np.full(size, 6.7))


def test_whole_games_are_drawn(rng: np.random.Generator) -> None:
    families = family_indices(["b", "a", "b", "c"])
    assert families.tolist() == [1, 0, 1, 2]
    weights = resampled_weights(families, 500, rng)
    assert weights.shape == (500, 4)
    assert (weights[:, 0] == weights[:, 2]).all()
    assert (weights[:, [0, 1, 3]].sum(axis=1) == 3).all()  # three families are drawn, with replacement
    assert weights.mean(axis=0) == pytest.approx([1, 1, 1, 1], abs=0.15)


def test_a_seed_repeats_and_another_does_not(rng: np.random.Generator) -> None:
    families = np.arange(30)
    first, again, other = (resampled_weights(families, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_interval_is_the_percentiles_of_the_resamples(rng: np.random.Generator) -> None:
    values = np.concatenate([np.arange(1, 1001), [np.nan] * 5]).astype(float)
    rng.shuffle(values)
    found = estimate(CORRELATION, sample([1, 2, 3], [1, 2, 3]), values, 10)
    assert (found.value, found.low, found.high, found.num_mdps) == (1.0, 26.0, 975.0, 3)  # 25 of 1000 on each side


def test_infinite_values_stay_infinite() -> None:
    values = np.array([1.0] * 50 + [INF] * 50)
    found = estimate(MEDIAN_RATIO, sample([1, INF, INF], [1, 2, 3]), values, 10)
    assert (found.value, found.low, found.high) == (INF, 1.0, INF)


def test_no_interval_has_a_reason() -> None:
    given = sample([1, 2, 3], [1, 2, 3])
    few = estimate(CORRELATION, given, np.ones(10), 4)
    assert (few.value, few.low, few.interval_reason) == (1.0, None, "4 families are too few to resample")
    undefined = estimate(CORRELATION, given, np.array([1.0, np.nan, np.nan]), 9)
    assert (undefined.low, undefined.interval_reason) == (None, "defined in only 1 of 3 resamples")
    nothing = estimate(AUROC, given, np.ones(10), 9)
    assert (nothing.value, nothing.low) == (None, None)
    assert nothing.reason == "all MDPs were solved, so there is nothing to separate"


def test_intervals_cover(rng: np.random.Generator) -> None:
    """Of 95 percent intervals about nineteen in twenty contain the truth: here the AUROC of two normal laws."""
    truth, covered = 0.7602, 0  # P(X < Y) for X, Y normal with means 0 and 1 and variance 1: Phi(1 / sqrt 2)
    for _ in range(60):
        predictions = np.concatenate([rng.normal(size=40), 1 + rng.normal(size=40)])
        given = Sample(predictions, np.array([1.0] * 40 + [INF] * 40), np.ones(80))
        weights = resampled_weights(np.arange(80), 300, rng)
        found = estimate(AUROC, given, AUROC.values(given, weights), 80)
        covered += found.low <= truth <= found.high
    assert 51 <= covered <= 60


def compared(first: Sample, second: Sample, rng: np.random.Generator, metric: Metric = CORRELATION) -> PairedTest:
    weights = resampled_weights(np.arange(first.num_mdps), 1000, rng)
    values = metric.values(first, weights), metric.values(second, weights)
    return paired_test(("one", "two"), metric, (first, second), values, first.num_mdps)


def test_a_predictor_does_not_differ_from_itself(rng: np.random.Generator) -> None:
    given = line(rng, 1.0)
    found = compared(given, given, rng)
    assert (found.difference, found.p_value, found.better) == (0.0, 1.0, None)


def test_a_better_predictor_is_told(rng: np.random.Generator) -> None:
    good, bad = line(rng, 0.3), line(rng, 6.0)
    for metric in (CORRELATION, MEDIAN_RATIO, AUROC):
        ahead, behind = compared(good, bad, rng, metric), compared(bad, good, rng, metric)
        assert ahead.better == "one"
        assert behind.better == "two"
        assert ahead.p_value is not None
        assert ahead.p_value < 0.05
        assert ahead.difference == pytest.approx(-behind.difference)
        assert (ahead.difference > 0) == metric.higher_is_better


def test_two_infinite_ratios_are_equal(rng: np.random.Generator) -> None:
    given = sample([INF] * 8, list(range(8)))
    found = compared(given, given, rng, MEDIAN_RATIO)
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_no_test_has_a_reason(rng: np.random.Generator) -> None:
    given = sample([1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6])
    assert compared(given, given, rng).reason == "all predictions are equal"
    few = sample([1, 2], [1, 2])
    found = compared(few, few, rng)
    assert (found.p_value, found.reason) == (None, "2 families are too few to resample")


def test_holm_by_hand() -> None:
    adjusted = holm_adjusted([0.03, None, 0.01, 0.02, 0.9])
    # sorted 0.01 0.02 0.03 0.9 times 4 3 2 1, never decreasing: 0.04 0.06 0.06 0.9
    assert adjusted == [pytest.approx(0.06), None, pytest.approx(0.04), pytest.approx(0.06), pytest.approx(0.9)]


def test_tests_are_adjusted_within_a_metric_and_together() -> None:
    def of(p_value: float | None) -> PairedTest:
        return PairedTest("a", "b", "auroc", 0.1, 0.0, 0.2, p_value, None, None, "a", 9)

    groups = [adjusted_within([of(0.01), of(0.02)]), adjusted_within([of(0.03), of(None)])]
    assert [test.p_value_holm for group in groups for test in group] == [0.02, 0.02, 0.03, None]
    (first, second), (third, missing) = adjusted_together(groups)
    assert (first.p_value_all, second.p_value_all, third.p_value_all) == (0.03, 0.04, 0.04)
    assert (missing.p_value_all, first.p_value_holm) == (None, 0.02)
