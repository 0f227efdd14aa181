"""The regression behind forecasts: its likelihood against scipy, and what it learns from censored outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from efhorizon.forecast.survival import log_likelihood, regression, survival


def test_the_likelihood_is_that_of_students_t_with_two_degrees_of_freedom() -> None:
    rng = np.random.default_rng(0)
    location, outcomes, solved = rng.normal(size=200), 5 * rng.normal(size=200), rng.random(200) < 0.6
    found = log_likelihood(location, 0.7, outcomes, solved)
    student = stats.t(df=2, loc=location, scale=0.7)
    expected = np.where(solved, student.logpdf(outcomes), student.logsf(outcomes))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_survival_far_out_is_exact() -> None:
    z = np.array([-1e9, -3.0, 0.0, 3.0, 1e6])
    np.testing.assert_allclose(survival(z)[:4], [1.0, 0.5 + 3 / (2 * 11**0.5), 0.5, 0.5 - 3 / (2 * 11**0.5)])
    assert survival(z)[4] == pytest.approx(1 / (2 * 1e12), rel=1e-9)  # 1 / (2 z^2): no cancellation


def test_without_columns_that_vary_the_location_is_the_middle_of_symmetric_outcomes() -> None:
    outcomes = np.array([3.0, 4.0, 4.5, 5.0, 6.0])
    fit = regression(np.ones((5, 1)), outcomes, np.ones(5, bool), [0])
    assert fit.coefficients.tolist() == [0.0]
    assert fit.intercept == pytest.approx(4.5, abs=1e-6)


def simulated(rows: int, budget: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    design = rng.uniform(3, 9, size=(rows, 1))
    outcomes = 1.0 + 0.6 * design[:, 0] + 0.2 * rng.standard_t(2, size=rows)
    solved = outcomes <= budget
    return design, np.minimum(outcomes, budget), solved


def test_unsolved_rows_are_censored_not_dropped() -> None:
    design, outcomes, solved = simulated(2000, budget=5.0)
    assert 0.3 < solved.mean() < 0.8
    censored = regression(design, outcomes, solved, [1], ridge=0.0)
    dropped = regression(design[solved], outcomes[solved], solved[solved], [1], ridge=0.0)
    assert censored.coefficients[0] == pytest.approx(0.6, abs=0.02)
    assert censored.intercept == pytest.approx(1.0, abs=0.1)
    assert dropped.location(np.array([[9.0]]))[0] < censored.location(np.array([[9.0]]))[0] - 0.05


def test_the_fit_is_a_maximum_of_the_penalised_likelihood() -> None:
    design, outcomes, solved = simulated(300, budget=5.0)
    fit = regression(design, outcomes, solved, [1], ridge=2.0)

    def loss(intercept: float, slope: float, scale: float) -> float:
        likelihood = log_likelihood(intercept + slope * design[:, 0], scale, outcomes, solved).sum()
        return float(-likelihood + (slope * design.std()) ** 2)  # ridge / 2 of the standardised coefficient

    slope, best = fit.coefficients[0], loss(fit.intercept, fit.coefficients[0], fit.scale)
    for step in (-1e-3, 1e-3):
        assert loss(fit.intercept + step, slope, fit.scale) > best
        assert loss(fit.intercept, slope + step, fit.scale) > best
        assert loss(fit.intercept, slope, fit.scale + step) > best


def test_a_coefficient_that_must_not_be_negative_is_not() -> None:
    design, outcomes, solved = simulated(300, budget=9.0)
    assert regression(-design, outcomes, solved, [0]).coefficients[0] < -0.5
    assert regression(-design, outcomes, solved, [1]).coefficients[0] == 0.0
