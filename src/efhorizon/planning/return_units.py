"""The units in which returns are integers, with or without discount.

With a discount p / q, the return from time t on

    X_t = r_t + (p / q) r_{t+1} + (p / q)^2 r_{t+2} + ...

is a multiple of unit / q^(last - t), where `last` is the last time at which a reward can be had. In these units

    X_t = q^(last - t) r_t + p X_{t+1},

so every time has a unit of its own; without discount all of them are the unit of the rewards. With a discount of 1/2
the lattice doubles with each step: as a rule it can be held for horizons up to 20.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError
from efhorizon.planning.rewards import RewardScale
from efhorizon.planning.timeline import Timeline

_MAX_BITS = 44  # of a discounted return in units: a sum of a hundred floats then rounds to the right integer


class NoLatticeError(EfhorizonError):
    """Returns have no lattice, or one too large to hold."""


@dataclass(frozen=True)
class ReturnUnits:
    """How returns from each time on are integers."""

    rewards: NDArray[np.int64]  # [R], in units of the rewards
    discount: Fraction
    last: int  # the last time at which a reward can be had; 0 without discount, where it plays no part

    def at(self, time: int) -> NDArray[np.int64]:
        """The rewards [R] in the units of a time."""
        return self.rewards * self._factor(time)

    def after(self, num_steps: int) -> int:
        """What a return is multiplied by to be counted in the units of so many steps earlier."""
        return int(self.discount.numerator**num_steps)

    def sums(self, rewards: NDArray[Any], times: NDArray[np.int64]) -> NDArray[Any]:
        """Sums of rewards, discounted back to some times, in the units of these times."""
        if self.discount == 1:
            return rewards
        factors = np.array([self._factor(time) for time in range(int(times.max(initial=0)) + 1)], np.float64)
        rounded: NDArray[np.int64] = np.rint(rewards * factors[times]).astype(np.int64)
        return rounded

    def _factor(self, time: int) -> int:
        return int(self.discount.denominator ** max(0, self.last - time))


def return_units(timeline: Timeline, scale: RewardScale) -> ReturnUnits:
    """The units of the returns of a table; refused where rewards have no common unit, or where these are too small."""
    if scale.units.dtype != np.int64:
        raise NoLatticeError("rewards have no common unit, so returns lie on no lattice")
    discount = Fraction(repr(scale.discount))  # 0.9 means 9/10
    if discount == 1:
        return ReturnUnits(scale.units, discount, 0)
    last = _last_reward(timeline, scale.units)
    largest = max(1, int(np.abs(scale.units).max()) * timeline.mdp.horizon)
    if math.log2(largest) + last * math.log2(discount.denominator) > _MAX_BITS:
        raise NoLatticeError(
            f"discounted returns (gamma = {scale.discount}) over {last + 1} steps lie on too fine a lattice"
        )
    return ReturnUnits(scale.units, discount, last)


def _last_reward(timeline: Timeline, units: NDArray[np.int64]) -> int:
    pays = units != 0
    for time in range(timeline.mdp.horizon - 1, 0, -1):
        if pays[timeline.mdp.reward_codes[timeline.states[timeline.layer(time)]]].any():
            return time
    return 0
