"""The distribution of errors with censored ones, and the coverage that it gives."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from efhorizon.forecast.error_curve import error_curve, kaplan_meier


def test_kaplan_meier_by_hand() -> None:
    errors = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 5.0])
    solved = np.array([True, True, False, True, False, True])
    places, chances = kaplan_meier(errors, solved)
    assert places.tolist() == [1.0, 2.0, 3.0, 5.0]
    left = [Fraction(5, 6), Fraction(5, 6) * Fraction(4, 5), Fraction(2, 3) * Fraction(2, 3), Fraction(0)]
    np.testing.assert_allclose(chances, [float(1 - each) for each in left])


def test_without_unsolved_rows_it_is_the_share_of_errors_up_to_each() -> None:
    errors = np.random.default_rng(0).normal(size=50)
    places, chances = kaplan_meier(errors, np.ones(50, bool))
    np.testing.assert_allclose(places, np.sort(errors))
    np.testing.assert_allclose(chances, np.arange(1, 51) / 50)


def test_chance_and_quantile_are_inverse_and_rise() -> None:
    rng = np.random.default_rng(2)
    errors = rng.normal(size=120)
    curve = error_curve(errors, rng.random(120) < 0.7)
    chances = np.linspace(0.01, 0.99, 99)
    quantiles = [curve.quantile(chance) for chance in chances]
    assert all(low < high for low, high in itertools.pairwise(quantiles))
    np.testing.assert_allclose([curve.chance(error) for error in quantiles], chances, atol=1e-9)
    assert curve.chance(-100) == 0.0
    assert curve.chance(100) == pytest.approx(1.0)


def test_intervals_hold_as_often_as_they_say_although_many_rows_are_censored() -> None:
    """400 rows at a time, a third of them censored; 80% intervals for truths that are never censored."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(40):
        truths, limits = rng.normal(size=400), rng.normal(loc=0.8, size=400)
        solved = truths <= limits
        curve = error_curve(np.minimum(truths, limits), solved)
        new = rng.normal(size=500)
        held.append(((new >= curve.quantile(0.1)) & (new <= curve.quantile(0.9))).mean())
        assert 0.2 < (~solved).mean() < 0.4
    assert np.mean(held) == pytest.approx(0.8, abs=0.015)


def test_dropping_censored_rows_would_give_intervals_that_end_too_early() -> None:
    rng = np.random.default_rng(4)
    truths, limits = rng.normal(size=4000), rng.normal(loc=0.5, size=4000)
    solved = truths <= limits
    kept = error_curve(np.minimum(truths, limits), solved)
    dropped = error_curve(truths[solved], np.ones(int(solved.sum()), bool))
    assert kept.quantile(0.9) == pytest.approx(1.2816, abs=0.12)
    assert dropped.quantile(0.9) < 1.1
