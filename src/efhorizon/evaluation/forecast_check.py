"""How good are forecasts? Each family of MDPs is left out, a model is fitted on the rest, and its forecasts compared.

What is left out is left out of everything: of the regression, of the errors that intervals are made from, and of what
counts as familiar. So this is the procedure that made the model that is shipped, on MDPs that it has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from efhorizon.evaluation.forecast_rows import RULE, forecast_rows
from efhorizon.evaluation.leave_one_out import best_threshold
from efhorizon.evaluation.metrics import AUROC, MEDIAN_RATIO, Sample, value
from efhorizon.evaluation.source import StudyData
from efhorizon.forecast.fitting import Outcome, algorithm_model
from efhorizon.forecast.prediction import LEVEL, Algorithm, Prediction

FORECAST = "forecast"
_CHANCES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # bins of the calibration


@dataclass(frozen=True)
class LeftOut:
    """The forecast for an MDP whose family was left out, and what came out."""

    outcome: Outcome
    suite: str
    bounds: Mapping[str, float]  # log10 of timesteps
    low: float  # timesteps
    median: float
    high: float
    chance: float  # to be solved within the budget that it had

    @property
    def is_covered(self) -> bool:
        """Whether the interval holds what came out; an unsolved run contradicts it only if it had more timesteps."""
        if self.outcome.is_solved:
            return self.low <= self.outcome.timesteps <= self.high
        return self.outcome.budget <= self.high


@dataclass(frozen=True)
class Coverage:
    """How often the intervals held."""

    num_mdps: int
    num_covered: int
    num_solved: int
    num_solved_covered: int

    @staticmethod
    def of(tested: Sequence[LeftOut]) -> Coverage:
        solved = [each for each in tested if each.outcome.is_solved]
        return Coverage(len(tested), sum(t.is_covered for t in tested), len(solved), sum(t.is_covered for t in solved))

    @property
    def share(self) -> float:
        return self.num_covered / self.num_mdps


@dataclass(frozen=True)
class Classified:
    """Solved within one budget or not: how well a forecast or a bound tells."""

    name: str
    brier: float
    auroc: float | None


@dataclass(frozen=True)
class AtBudget:
    """All MDPs whose runs had the same budget."""

    budget: float
    num_mdps: int
    num_solved: int
    predictors: tuple[Classified, ...]  # the forecast first


@dataclass(frozen=True)
class Bin:
    """MDPs with similar chances, and how many were solved."""

    low: float
    high: float
    num_mdps: int
    mean_chance: float
    num_solved: int


@dataclass(frozen=True)
class ForecastCheck:
    """One algorithm."""

    algorithm: Algorithm
    tested: tuple[LeftOut, ...]
    num_families: int
    factors: dict[str, float]  # log10 of the median factor, of the forecast and of each bound
    coverage: Coverage
    by_suite: dict[str, Coverage]
    budgets: tuple[AtBudget, ...]
    calibration: tuple[Bin, ...]
    level: float = LEVEL


def forecast_checks(data: StudyData, on_family: Callable[[str], None] = lambda _: None) -> tuple[ForecastCheck, ...]:
    """Both algorithms; `on_family` receives the name of each family as it is left out."""
    suites = {each.name: each.origin for each in data.summaries}
    bounds = {each.name: each.bounds for each in data.summaries}
    found = []
    for algorithm, rows in forecast_rows(data, RULE).items():
        tested = tuple(_tested(rows, suites, bounds, on_family))
        found.append(_check(algorithm, tested))
    return tuple(found)


def _tested(
    rows: Sequence[Outcome],
    suites: Mapping[str, str],
    bounds: Mapping[str, Mapping[str, float]],
    on_family: Callable[[str], None],
) -> Iterator[LeftOut]:
    for family in sorted({row.family for row in rows}):
        on_family(family)
        fitted = algorithm_model([row for row in rows if row.family != family])
        for row in rows:
            if row.family == family:
                prediction = Prediction.of(row.features, fitted)
                low, median, high = (prediction.quantile(q) for q in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2))
                chance = prediction.chance(row.budget)
                yield LeftOut(row, suites[row.name], bounds[row.name], low, median, high, chance)


def _check(algorithm: Algorithm, tested: tuple[LeftOut, ...]) -> ForecastCheck:
    names = sorted({name for each in tested for name in each.bounds})
    by_suite = {
        suite: Coverage.of([each for each in tested if each.suite == suite])
        for suite in sorted({each.suite for each in tested})
    }
    return ForecastCheck(
        algorithm=algorithm,
        tested=tested,
        num_families=len({each.outcome.family for each in tested}),
        factors={name: _factor(tested, name) for name in (FORECAST, *names)},
        coverage=Coverage.of(tested),
        by_suite=by_suite,
        budgets=tuple(_at_budgets(tested, names)),
        calibration=tuple(_calibration(tested)),
    )


def _factor(tested: Sequence[LeftOut], name: str) -> float:
    """log10 of the median over solved MDPs of the factor between a prediction and what was needed."""
    found = value(MEDIAN_RATIO, _sample(tested, name))
    return math.nan if found is None else found


def _sample(tested: Sequence[LeftOut], name: str) -> Sample:
    def prediction(each: LeftOut) -> float:
        return math.log10(max(1.0, each.median)) if name == FORECAST else each.bounds.get(name, math.inf)

    return Sample(
        np.array([prediction(each) for each in tested]),
        np.array([each.outcome.log10 if each.outcome.is_solved else math.inf for each in tested]),
        np.array([math.log10(each.outcome.budget) for each in tested]),
    )


def _at_budgets(tested: Sequence[LeftOut], names: Sequence[str]) -> Iterator[AtBudget]:
    for budget in sorted({each.outcome.budget for each in tested}, reverse=True):
        chosen = [each for each in tested if each.outcome.budget == budget]
        solved = np.array([each.outcome.is_solved for each in chosen])
        predictors = []
        for name in (FORECAST, *names):
            sample = _sample(chosen, name)
            if name == FORECAST:
                chances = np.array([each.chance for each in chosen])
                sample = Sample(-chances, sample.outcomes, sample.budgets)
            else:
                threshold = best_threshold(sample.predictions, solved)
                is_below = np.array([threshold.is_solved(each) for each in sample.predictions])
                chances = np.empty(len(chosen))
                for side in (is_below, ~is_below):  # the share that is solved on this side of the threshold
                    if side.any():
                        chances[side] = solved[side].mean()
            brier = float(((chances - solved) ** 2).mean())
            predictors.append(Classified(name, brier, value(AUROC, sample)))
        yield AtBudget(budget, len(chosen), int(solved.sum()), tuple(predictors))


def _calibration(tested: Sequence[LeftOut]) -> Iterator[Bin]:
    for low, high in pairwise(_CHANCES):
        chosen = [each for each in tested if low <= each.chance < high or each.chance == high == 1.0]
        if chosen:
            mean = sum(each.chance for each in chosen) / len(chosen)
            yield Bin(low, high, len(chosen), mean, sum(each.outcome.is_solved for each in chosen))
