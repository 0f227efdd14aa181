"""The errors of forecasts for MDPs that were left out: how far off, in powers of ten, the truth was.

Forecasts get their intervals and chances from these, not from the model's own idea of its errors (conformal
prediction). Errors of runs that were not solved are censored: the truth lies further up, nobody knows how far. The
Kaplan-Meier estimate of their distribution takes that into account.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from efhorizon.forecast.survival import Flags, Floats

LEAST_AT_RISK = 10  # errors from which on fewer are left the estimate is too rough, and an exponential tail takes over
STEP = 0.025  # between two chances of the curve that is kept
BELOW = 0.3  # powers of ten below the least error where the curve begins: a factor of two
_ROUNDING = 1e-12


@dataclass(frozen=True)
class ErrorCurve:
    """The distribution of errors: a line through points, and beyond the last one an exponential tail."""

    errors: tuple[float, ...]  # ascending
    chances: tuple[float, ...]  # that an error is at most so large; the first is 0
    tail: float  # mean of what lies beyond the last error

    def chance(self, error: float) -> float:
        """That an error is at most so large."""
        if error >= self.errors[-1]:
            left = 1 - self.chances[-1]
            return float(1 - left * np.exp(-(error - self.errors[-1]) / self.tail))
        return float(np.interp(error, self.errors, self.chances))

    def quantile(self, chance: float) -> float:
        """The error that is not exceeded with this chance."""
        if chance >= self.chances[-1]:
            return float(self.errors[-1] + self.tail * np.log((1 - self.chances[-1]) / (1 - chance)))
        return float(np.interp(chance, self.chances, self.errors))


def kaplan_meier(errors: Floats, solved: Flags) -> tuple[Floats, Floats]:
    """The distinct errors of solved rows, ascending, and the chance of an error up to each.

    P(error > e) is the product over errors e' <= e of 1 - (number at e') / (number at or above e'); an unsolved row is
    among those at or above every error up to its own.
    """
    places = np.unique(errors[solved])
    at_risk = (errors[None, :] >= places[:, None]).sum(axis=1)
    hits = ((errors[None, :] == places[:, None]) & solved[None, :]).sum(axis=1)
    chances: Floats = 1 - np.cumprod(1 - hits / at_risk)
    return places, chances


def error_curve(errors: Floats, solved: Flags) -> ErrorCurve:
    """The curve of some errors. The tail is the exponential one that fits best to what lies above the median."""
    places, chances = kaplan_meier(errors, solved)
    at_risk = (errors[None, :] >= places[:, None]).sum(axis=1)
    trusted = max(1, int((at_risk >= LEAST_AT_RISK).sum()))
    places, chances = places[:trusted], chances[:trusted]
    middle = float(places[min(int(np.searchsorted(chances, 0.5)), len(places) - 1)])
    above = errors > middle
    tail = float((errors[above] - middle).sum() / max(1, (above & solved).sum()))
    levels = [*np.arange(STEP, chances[-1], STEP).tolist(), float(chances[-1])]
    reached = {float(places[np.searchsorted(chances, level - _ROUNDING)]): level for level in levels}
    points = {float(places[0]) - BELOW: 0.0, **reached}  # of several levels that one error reaches, the last
    return ErrorCurve(tuple(points), tuple(points.values()), tail)
