"""Measures of hardness: numbers that say which environment is harder, but not how many timesteps it takes.

A measure has a direction in the place of a unit. Table 2 can ask of it whether it puts environments in the right order
(Spearman, concordance, AUROC, accuracy), and not by what factor it is off. An estimate from a sample has an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

Harder = Literal["larger", "smaller"]  # which values mean a harder environment
LEVEL = 0.95  # of the intervals of estimates


@dataclass(frozen=True)
class Measured:
    """What a measure gives for one table; `low` and `high` are the interval of an estimate."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None  # why there is no value
    note: str | None = None  # how an estimate was made


@dataclass(frozen=True)
class Measure(Measured):
    """The same with its direction."""

    harder: Harder = "larger"

    @classmethod
    def of(cls, found: Measured, harder: Harder) -> Measure:
        return cls(found.value, found.low, found.high, found.reason, found.note, harder)

    @property
    def hardness(self) -> float | None:
        """The value, turned around where smaller ones mean harder: only its order counts."""
        if self.value is None:
            return None
        return self.value if self.harder == "larger" else -self.value


def checked_measure(found: Any) -> Measured:
    """What somebody's own measure has returned; anything but a finite number is refused."""
    if found is None:
        return Measured(None, reason="it does not apply")
    if not isinstance(found, Measured):
        return Measured(_finite(found))
    if found.value is None and not found.reason:
        raise ValueError("a measure without a value needs a reason")
    return Measured(_finite(found.value), _finite(found.low), _finite(found.high), found.reason, found.note)


def _finite(number: Any) -> float | None:
    if number is None:
        return None
    if isinstance(number, bool | np.bool_) or not isinstance(number, Real) or not math.isfinite(number):
        raise ValueError(f"{str(number)[:60]} is not a finite number")
    return float(number)
