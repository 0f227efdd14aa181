"""The forecast for one MDP and one algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from efhorizon.forecast.features import Features

Algorithm = Literal["ppo", "dqn"]
ALGORITHMS: tuple[Algorithm, ...] = ("ppo", "dqn")
BUDGETS = (100_000, 500_000, 1_000_000, 5_000_000, 25_000_000)  # timesteps


@dataclass(frozen=True)
class Timesteps:
    """The timesteps that an algorithm needs: the middle, and an interval that holds in 80% of all cases."""

    low: float
    median: float
    high: float  # may be infinite: no end of the interval is known


@dataclass(frozen=True)
class Forecast:
    """Whether an algorithm learns an optimal policy, and after how many timesteps."""

    algorithm: Algorithm
    solved_within: dict[int, float]  # budget in timesteps: the chance that it is enough
    timesteps: Timesteps
    model: str  # version of the model
    notes: tuple[str, ...]  # sentences on what it does not know


def forecast(features: Features, algorithm: Algorithm) -> Forecast:
    """The forecast of the model that this version of efhorizon comes with."""
    raise NotImplementedError
