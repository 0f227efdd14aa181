"""The least m from complete runs of GORP: an interval for where the chance of success passes 1/2.

Each run i used m_i episodes per action sequence and either ended with the best return (s_i = 1) or did not. The chance
of success is taken to rise with m as

    P(m) = F(b (ln m - ln h) + F^-1(1/2)),    so that P(h) = 1/2,

for three shapes F: the logistic curve, 1 - exp(-exp(x)), which is one decision that waits for a rare reward, and
exp(-exp(-x)), which is many decisions each of which may fail. The least m is ceil(h). Its interval holds every h that a
likelihood-ratio test does not reject, whatever the shape and the slope b:

    { h : 2 (max log L - max_b log L(h, b)) <= c },    c the 90% point of the chi-squared distribution (1 degree).

If no m fails that test however large, the runs do not limit m, and the upper end is infinite. A normal prior on ln b,
centred on what tables show, stands for the runs that a small budget does not have.

Success need not rise with m forever: far above the least m, play by Q^k can settle on a wrong action. So runs with more
than `_FAR` times an m with which most runs succeed do not count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.9  # of every interval in this folder
_THRESHOLD = 3.2  # 92.6% of chi-squared with one degree: makes up for doses that were chosen by earlier runs
_CERTAIN = 9.0  # the same, 99.7%
_FAR = 12.0
_FEWEST_NEAR = 6
_MOST_SUCCEED = 0.7
_SLOPES = np.exp(np.linspace(math.log(0.5), math.log(8.0), 13))  # [B]
_PRIOR_MEDIAN, _PRIOR_SPREAD = math.log(1.6), 0.6  # of ln b
_STEP = 0.03  # of ln h
_LEAST, _LARGEST = math.log(0.02), math.log(1e9)


@dataclass(frozen=True)
class Interval:
    """An estimate and the 90% interval around it; `high` can be infinite."""

    low: float
    estimate: float
    high: float

    @property
    def width(self) -> float:
        """How many times the upper end is the lower one."""
        return self.high / self.low if self.low else math.inf


def least_episodes(
    m: Sequence[int], successes: Sequence[int], runs: Sequence[int], *, certain: bool = False
) -> Interval:
    """The least m, in whole episodes, from the successes of some runs for each m.

    The estimate is infinite where no run succeeded. `certain` asks for the wider interval that decides whether more
    runs are needed: to stop when the 90% interval happens to be narrow would make it wrong too often.
    """
    doses, won, tried = _near(np.array(m, float), np.array(successes, float), np.array(runs, float))
    places, profile = _profile(doses, won, tried)
    inside = profile >= profile.max() - (_CERTAIN if certain else _THRESHOLD) / 2
    low, high = places[inside][0], places[inside][-1]
    best = math.inf if not won.sum() else _whole(places[profile.argmax()])
    upper = math.inf if inside[-1] else _whole(high)
    return Interval(float(_whole(low)), float(best), float(upper))


def crossing(m: Sequence[int], successes: Sequence[int], runs: Sequence[int]) -> float:
    """The h that fits best, as a real number."""
    doses, won, tried = _near(np.array(m, float), np.array(successes, float), np.array(runs, float))
    places, profile = _profile(doses, won, tried)
    return math.exp(float(places[profile.argmax()]))


def _whole(log_h: float) -> float:
    """The least whole number of episodes that is at least h."""
    return max(1.0, math.ceil(math.exp(log_h) - 1e-9))


_Columns = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _near(doses: NDArray[np.float64], won: NDArray[np.float64], tried: NDArray[np.float64]) -> _Columns:
    """Without runs far above an m at which most runs succeed."""
    for dose in doses:
        close = (doses >= dose / 1.5) & (doses <= dose * 2)
        if tried[close].sum() >= _FEWEST_NEAR and won[close].sum() >= _MOST_SUCCEED * tried[close].sum():
            kept = doses <= _FAR * dose
            return doses[kept], won[kept], tried[kept]
    return doses, won, tried


def _profile(
    doses: NDArray[np.float64], won: NDArray[np.float64], tried: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values of ln h, and for each the largest log-likelihood over slopes and shapes."""
    top = min(_LARGEST, math.log(doses.max()) + math.log(1e3))
    places = np.arange(_LEAST, top, _STEP)  # [H]
    centred = np.log(doses)[None, :] - places[:, None]  # [H, D]
    prior = -(((np.log(_SLOPES) - _PRIOR_MEDIAN) / _PRIOR_SPREAD) ** 2) / 2
    best = np.full(len(places), -np.inf)
    for slope, penalty in zip(_SLOPES, prior, strict=True):
        for log_success, log_failure in _shapes(slope * centred):
            fit = log_success @ won + log_failure @ (tried - won) + penalty
            np.maximum(best, fit, out=best)
    return places, best


def _shapes(x: NDArray[np.float64]) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """ln F and ln (1 - F) of the three shapes, each of which is 1/2 at x = 0."""
    x = np.clip(x, -60, 60)
    logistic = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    rare_failure = -math.log(2) * np.exp(x)  # ln (1 - F) of 1 - exp(-ln 2 e^x)
    many_success = -math.log(2) * np.exp(-x)
    return [
        logistic,
        (np.log(-np.expm1(np.minimum(rare_failure, -1e-30))), rare_failure),
        (many_success, np.log(-np.expm1(np.minimum(many_success, -1e-30)))),
    ]
