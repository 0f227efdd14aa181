"""Rewards as the numbers that dynamic programming adds up, so that ties between values are exact.

Where rewards have a unit and there is no discount, optimal values are integers. All other values (averages over a
policy, discounted sums, rewards without a unit) are rational numbers: each is kept as a float and a *residue*, the same
sum in the field of the integers modulo the prime 2^61 - 1. Equal numbers have equal residues however they were rounded;
different ones share a residue by a chance of one in 2^61. The float gives the order, within a proven rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP

PRIME = 2**61 - 1
ROUNDING = 2.0**-53  # the largest relative error of one float64 operation
_MAX_EXACT_SUM = 2**53  # integers below are exact in float64 too


class InvalidDiscountError(EfhorizonError, ValueError):
    """A discount outside [0, 1]."""


@dataclass(frozen=True)
class RewardScale:
    """Rewards of a table in units: reward = units[code] * unit. R distinct rewards."""

    units: NDArray[Any]  # [R], int64 where sums are exact, else float64
    unit: Fraction
    residues: NDArray[np.uint64]  # [R], of the units
    discount: float
    discount_residue: np.uint64

    @property
    def exact(self) -> bool:
        """Whether sums of rewards are integers."""
        return self.units.dtype == np.int64 and self.discount == 1.0

    @property
    def sum_units(self) -> NDArray[Any]:
        """The units in the type in which sums of rewards are kept."""
        return self.units if self.exact else self.units.astype(np.float64)

    def reward(self, value: Any) -> float:
        """A value in units as a reward."""
        if isinstance(value, int | np.integer):
            return float(int(value) * self.unit)
        return float(value) * float(self.unit)


def reward_scale(mdp: TabularMDP, *, gamma: float = 1.0) -> RewardScale:
    """The rewards of a table as units and residues, with a discount gamma in [0, 1]."""
    if not 0.0 <= gamma <= 1.0:
        raise InvalidDiscountError(f"the discount must lie between 0 and 1, got {gamma!r}")
    gamma = float(gamma)
    integers = mdp.reward_units()
    units: NDArray[Any] = mdp.reward_values
    unit = Fraction(1)
    if integers is not None and int(np.abs(integers[0]).max()) * mdp.horizon < _MAX_EXACT_SUM:
        units, unit = integers[0].astype(np.int64), integers[1]
    exact = [Fraction(int(value)) if units.dtype == np.int64 else Fraction(float(value)) for value in units]
    return RewardScale(
        units=units,
        unit=unit,
        residues=np.array([residue(fraction) for fraction in exact], np.uint64),
        discount=gamma,
        discount_residue=np.uint64(residue(Fraction(repr(gamma)))),  # 0.99 means 99/100
    )


def residue(number: Fraction) -> int:
    """A rational number modulo the prime."""
    return number.numerator * pow(number.denominator, -1, PRIME) % PRIME
