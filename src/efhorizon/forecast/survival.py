"""Accelerated failure time regression with censored outcomes.

The logarithm of the timesteps that an algorithm needs is y = b0 + b x + s e, where e has Student's t distribution with
two degrees of freedom:

    f(e) = (2 + e^2)^(-3/2),    P(e > z) = 1/2 - z / (2 sqrt(2 + z^2))

A run that was not solved within its budget c tells that y > c, and enters the likelihood with P(y > c). The heavy tails
are there because a few MDPs are never solved although they look easy; a normal or logistic e lets them push up the
forecast for all others. A ridge penalty on the coefficients of standardised columns keeps a model of few rows small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

RIDGE = 5.0
_LEAST_LOG_SCALE, _FIRST_LOG_SCALE = np.log(0.05), np.log(0.5)  # powers of ten
_SMALLEST_SPREAD = 1e-9  # of a column: one that never changes has no coefficient


@dataclass(frozen=True)
class Regression:
    """A fitted model."""

    intercept: float
    coefficients: Floats  # [D]
    scale: float

    def location(self, design: Floats) -> Floats:
        """The middle of y for rows [N, D]."""
        middle: Floats = self.intercept + design @ self.coefficients
        return middle


def log_likelihood(location: Floats, scale: float, outcomes: Floats, solved: Flags) -> Floats:
    """[N] log f(y) of solved rows, log P(y > c) of the others, whose outcome is the budget c."""
    z = (outcomes - location) / scale
    density = -1.5 * np.log(2 + z**2) - np.log(scale)
    result: Floats = np.where(solved, density, np.log(survival(z)))
    return result


def survival(z: Floats) -> Floats:
    """P(e > z), also where that is tiny: with w = sqrt(2 + z^2) it is 1 / (w (w + z))."""
    root = np.sqrt(2 + z**2)
    result: Floats = np.where(z > 0, 1 / (root * (root + np.abs(z))), 0.5 - z / (2 * root))
    return result


def regression(
    design: Floats, outcomes: Floats, solved: Flags, signs: Sequence[int], *, ridge: float = RIDGE
) -> Regression:
    """The most likely model, with a penalty of ridge / 2 times the sum of squares of standardised coefficients.

    A coefficient whose sign is 1 is at least 0.
    """
    from scipy.optimize import minimize

    centre, spread = design.mean(axis=0), design.std(axis=0)
    varies = spread > _SMALLEST_SPREAD
    standard = np.where(varies, (design - centre) / np.where(varies, spread, 1.0), 0.0)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        intercept, log_scale, coefficients = parameters[0], parameters[1], parameters[2:]
        scale = float(np.exp(log_scale))
        location = intercept + standard @ coefficients
        z = (outcomes - location) / scale
        hazard = (2 + z**2) ** -1.5 / survival(z)
        slope = np.where(solved, 3 * z / (2 + z**2), hazard)  # of the log likelihood in the location, times the scale
        of_scale = z * slope - solved
        value = -log_likelihood(location, scale, outcomes, solved).sum() + ridge / 2 * coefficients @ coefficients
        by_coefficients = ridge * coefficients - standard.T @ (slope / scale)
        return float(value), np.concatenate([[-(slope / scale).sum(), -of_scale.sum()], by_coefficients])

    start = np.concatenate([[outcomes.mean(), _FIRST_LOG_SCALE], np.zeros(design.shape[1])])
    limits = [(None, None), (_LEAST_LOG_SCALE, None), *((0.0 if sign > 0 else None, None) for sign in signs)]
    options = {"maxiter": 5000, "maxfun": 50_000, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(loss, start, jac=True, bounds=limits, method="L-BFGS-B", options=options).x
    coefficients = np.where(varies, found[2:] / np.where(varies, spread, 1.0), 0.0)
    return Regression(float(found[0] - centre @ coefficients), coefficients, float(np.exp(found[1])))
