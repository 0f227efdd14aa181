"""Fitting the model to the rows of a study. Needs nothing but numpy and scipy; the same rows give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.forecast.columns import COMPARED, FLAGS, USED, compared, design
from efhorizon.forecast.error_curve import error_curve
from efhorizon.forecast.features import Features
from efhorizon.forecast.model import AlgorithmModel, Content, Model, versioned
from efhorizon.forecast.prediction import Algorithm
from efhorizon.forecast.survival import Flags, Floats, Regression, regression

LEAST_FAMILIES = 3  # one to leave out, and two to learn from
REACH = 0.95  # share of the study's MDPs that are within reach of those of other families
FLAG_SPREAD = 0.5  # a flag that differs counts as two spreads
LEAST_SPREAD = 0.3  # of other columns, in powers of ten: a factor of two
_DIGITS = 4  # of every number in the model: further ones are noise, and differ between machines
_SMALLEST_REACH = 0.1


@dataclass(frozen=True)
class Outcome:
    """One MDP of a study, and what an algorithm needed there."""

    name: str
    family: str  # whole families are left out together
    features: Features
    timesteps: float  # infinite: not solved
    budget: float  # timesteps of a run, at most

    @property
    def is_solved(self) -> bool:
        return math.isfinite(self.timesteps)

    @property
    def log10(self) -> float:
        """Of the timesteps, or of the budget that was not enough."""
        return math.log10(max(1.0, self.timesteps if self.is_solved else self.budget))


def fitted_model(outcomes: Mapping[Algorithm, Sequence[Outcome]], *, rule: str, num_runs: int) -> Model:
    """The model of a study."""
    algorithms = {algorithm: algorithm_model(rows) for algorithm, rows in outcomes.items()}
    return versioned(Content(rule=rule, num_runs=num_runs, algorithms=algorithms))


def algorithm_model(outcomes: Sequence[Outcome]) -> AlgorithmModel:
    """The model of one algorithm; its errors are those for families that were left out."""
    rows = sorted(outcomes, key=lambda row: row.name)
    families = np.array([row.family for row in rows])
    if len(set(families)) < LEAST_FAMILIES or not any(row.is_solved for row in rows):
        raise EfhorizonError(
            f"a forecast needs solved MDPs of at least {LEAST_FAMILIES} families, and there are {len(set(families))}"
        )
    finite = [row.features.bound for row in rows if row.features.bound is not None]
    typical = round(float(np.median(finite)), _DIGITS) if finite else 0.0
    matrix = np.array([design(row.features, typical) for row in rows])
    found, solved = np.array([row.log10 for row in rows]), np.array([row.is_solved for row in rows])
    fit = _regression(matrix, found, solved)
    errors = np.zeros(len(rows))
    for family in sorted(set(families)):
        out = families == family
        errors[out] = found[out] - _regression(matrix[~out], found[~out], solved[~out]).location(matrix[out])
    curve = error_curve(np.round(errors, _DIGITS), solved)
    seen = np.round([compared(row.features) for row in rows], _DIGITS)
    spreads = _spreads(seen)
    return AlgorithmModel(
        num_mdps=len(rows),
        num_solved=int(solved.sum()),
        num_families=len(set(families)),
        budget=int(max(row.budget for row in rows)),
        typical_bound=typical,
        intercept=_rounded(fit.intercept),
        coefficients={column.name: _rounded(each) for column, each in zip(USED, fit.coefficients, strict=True)},
        errors=[_rounded(error) for error in curve.errors],
        chances=[_rounded(chance) for chance in curve.chances],
        tail=_rounded(curve.tail),
        spreads=spreads,
        reach=_rounded(_reach(seen, families, np.array(list(spreads.values())))),
        seen=[list(row) for row in sorted({tuple(row) for row in seen.tolist()})],
    )


def _regression(matrix: Floats, found: Floats, solved: Flags) -> Regression:
    return regression(matrix, found, solved, [column.sign for column in USED])


def _spreads(seen: Floats) -> dict[str, float]:
    """In what unit each column is compared."""
    found = dict(zip((column.name for column in COMPARED), seen.std(axis=0), strict=True))
    return {name: FLAG_SPREAD if name in FLAGS else max(LEAST_SPREAD, _rounded(each)) for name, each in found.items()}


def _reach(seen: Floats, families: np.ndarray[tuple[int], np.dtype[np.str_]], spreads: Floats) -> float:
    """How far from the nearest MDP of another family most MDPs of the study are."""
    distances = np.sqrt((((seen[:, None] - seen[None, :]) / spreads) ** 2).sum(axis=2))
    distances[families[:, None] == families[None, :]] = np.inf
    return max(_SMALLEST_REACH, float(np.quantile(distances.min(axis=1), REACH)))


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS) + 0.0
