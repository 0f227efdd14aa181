"""How good forecasts are, on families that were left out."""

from __future__ import annotations

import math
from dataclasses import replace

import forecast_model
import pytest
from usual_features import USUAL

from efhorizon.evaluation import forecast_check
from efhorizon.evaluation.forecast_check import FORECAST, Coverage, LeftOut, forecast_checks
from efhorizon.evaluation.source import study_data
from efhorizon.forecast.fitting import Outcome
from efhorizon.forecast.model import shipped_model
from efhorizon.render.markdown.forecast_page import forecast_page


def left_out(timesteps: float, chance: float = 0.5, budget: float = 1000.0, **bounds: float) -> LeftOut:
    outcome = Outcome("name", "family", USUAL, timesteps, budget)
    return LeftOut(outcome, "minigrid", bounds, low=100.0, median=300.0, high=900.0, chance=chance)


def test_an_interval_is_contradicted_by_a_solved_run_outside_or_an_unsolved_one_that_was_longer() -> None:
    assert [left_out(each).is_covered for each in (99.0, 100.0, 900.0, 901.0)] == [False, True, True, False]
    assert not left_out(math.inf).is_covered
    assert left_out(math.inf, budget=900.0).is_covered
    coverage = Coverage.of([left_out(99.0), left_out(500.0), left_out(math.inf)])
    assert (coverage.num_mdps, coverage.num_covered, coverage.num_solved, coverage.num_solved_covered) == (3, 1, 2, 1)


def test_brier_scores_and_auroc_by_hand() -> None:
    rows = (
        left_out(10.0, 0.9, b=2.0),
        left_out(20.0, 0.6, b=4.0),
        left_out(math.inf, 0.2, b=3.0),
        left_out(math.inf, 0.4, b=5.0),
    )
    (at,) = forecast_check._check("ppo", rows).budgets
    by_name = {each.name: each for each in at.predictors}
    assert by_name[FORECAST].brier == pytest.approx((0.01 + 0.16 + 0.04 + 0.16) / 4)
    assert by_name[FORECAST].auroc == 1.0
    assert by_name["b"].auroc == 0.75
    assert by_name["b"].brier == pytest.approx((0 + 3 * (1 / 3) * (2 / 3)) / 4)  # solved at 2; a third of the others


def test_the_factor_is_over_solved_mdps() -> None:
    rows = (left_out(30.0, b=2.0), left_out(300.0, b=3.0), left_out(3000.0, b=6.0), left_out(math.inf, b=9.0))
    found = forecast_check._check("dqn", rows).factors
    assert found[FORECAST] == pytest.approx(1.0)
    assert found["b"] == pytest.approx(math.log10(10 / 3), abs=0.1)


@pytest.mark.slow
def test_the_published_check_and_what_it_must_show() -> None:
    data = study_data(forecast_model.ROWS)
    checks = forecast_checks(data)
    assert forecast_page(shipped_model(), checks, data.titles) == forecast_model.PAGE.read_text()
    for check, first_try in zip(checks, (2.1, 1.8), strict=True):
        assert 0.72 <= check.coverage.share <= 0.88
        assert 10 ** check.factors[FORECAST] <= first_try
        assert all(check.factors[FORECAST] < log10 for name, log10 in check.factors.items() if name != FORECAST)
        for at in check.budgets:
            forecast, *bounds = at.predictors
            assert all(forecast.brier < each.brier for each in bounds)


def test_an_mdp_is_tested_by_a_model_that_has_not_seen_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []
    real = forecast_check.algorithm_model

    def spy(rows: list[Outcome]) -> object:
        seen.append({row.family for row in rows})
        return real(rows)

    monkeypatch.setattr(forecast_check, "algorithm_model", spy)
    rows = [
        Outcome(f"{p}", f"family {p % 4}", replace(USUAL, bound=3.0 + p / 4), 1000.0 * (p + 1), 5e6) for p in range(16)
    ]
    names = {row.name: "minigrid" for row in rows}
    found = list(forecast_check._tested(rows, names, {row.name: {} for row in rows}, lambda _: None))
    families = {row.family for row in rows}
    assert seen == [families - {family} for family in sorted(families)]
    assert [each.outcome.family for each in found] == sorted(row.family for row in rows)
