"""The forecast for one MDP: whether PPO and DQN learn an optimal policy, and after how many timesteps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.forecast.columns import COMPARED, FLAGS, LARGEST_BOUND, compared, design
from efhorizon.forecast.features import Features
from efhorizon.forecast.model import AlgorithmModel, Model, shipped_model

Algorithm = Literal["ppo", "dqn"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
BUDGETS = (100_000, 500_000, 1_000_000, PAPER_STEPS, 25_000_000)  # timesteps
LEVEL = 0.8  # of the interval
WIDEST = 3.0  # how many times wider than usual an interval gets at most
OFTEN_OPTIMAL = 1 / 3  # random episodes so often optimal pass the rule of the paper without learning

_UNSEEN = {  # what to say about a flag that no MDP of the study has
    "image": "No {algorithm} run of the study was on pictures.",
    "goal": "No {algorithm} run of the study was on an MDP whose only reward is for a goal.",
    "negative": "No {algorithm} run of the study was on an MDP with negative returns.",
    "policy": "No {algorithm} run of the study started from a given policy.",
}


@dataclass(frozen=True)
class Timesteps:
    """The timesteps that an algorithm needs: the middle, and an interval that holds in 80% of all cases."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """Whether an algorithm learns an optimal policy, and after how many timesteps."""

    algorithm: Algorithm
    solved_within: dict[int, float]  # budget in timesteps: the chance that it is enough
    timesteps: Timesteps
    model: str  # version of the model
    notes: tuple[str, ...]  # sentences on what it does not know

    def as_json(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "solved_within": {str(budget): chance for budget, chance in self.solved_within.items()},
            "timesteps": {
                "low": self.timesteps.low,
                "median": self.timesteps.median,
                "high": self.timesteps.high,
            },
            "model": self.model,
            "notes": list(self.notes),
        }


def forecasts(features: Features, model: Model | None = None) -> dict[Algorithm, Forecast]:
    """The forecasts for PPO and DQN."""
    return {algorithm: forecast(features, algorithm, model) for algorithm in ALGORITHMS}


def forecast(features: Features, algorithm: Algorithm, model: Model | None = None) -> Forecast:
    """The forecast of a model: the one that this version of efhorizon comes with, unless another is given."""
    model = model or shipped_model()
    if not features.has_something_to_learn:
        notes = ("There is nothing to learn: every action sequence earns the same.",)
        return Forecast(algorithm, dict.fromkeys(BUDGETS, 1.0), Timesteps(0.0, 0.0, 0.0), model.version, notes)
    fitted = model.content.algorithms[algorithm]
    prediction = Prediction.of(features, fitted)
    return Forecast(
        algorithm=algorithm,
        solved_within={budget: prediction.chance(budget) for budget in BUDGETS},
        timesteps=Timesteps(*(prediction.quantile(chance) for chance in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2))),
        model=model.version,
        notes=tuple(_notes(features, algorithm, fitted, prediction)),
    )


@dataclass(frozen=True)
class Prediction:
    """The distribution of the timesteps that are needed: the model's location plus the errors that were seen.

    An MDP unlike all that were seen gets errors that are some times as wide around their median.
    """

    location: float  # log10
    fitted: AlgorithmModel
    width: float  # 1: as usual

    @staticmethod
    def of(features: Features, fitted: AlgorithmModel) -> Prediction:
        values = design(features, fitted.typical_bound)
        location = fitted.intercept + float(np.dot(list(fitted.coefficients.values()), values))
        return Prediction(location, fitted, min(WIDEST, max(1.0, _distance(features, fitted) / fitted.reach)))

    def chance(self, timesteps: float) -> float:
        """That so many timesteps are enough."""
        curve = self.fitted.curve
        middle = curve.quantile(0.5)
        error = float(np.log10(timesteps)) - self.location
        return round(curve.chance(middle + (error - middle) / self.width), 4)

    def quantile(self, chance: float) -> float:
        """The timesteps that are enough with this chance."""
        curve = self.fitted.curve
        middle = curve.quantile(0.5)
        error = middle + (curve.quantile(chance) - middle) * self.width
        return float(f"{10 ** (self.location + error):.3g}")


def _distance(features: Features, fitted: AlgorithmModel) -> float:
    """To the nearest MDP that was seen."""
    spreads = np.array(list(fitted.spreads.values()))
    differences = (np.array(fitted.seen) - np.array(compared(features))) / spreads
    return float(np.sqrt((differences**2).sum(axis=1)).min())


def _notes(features: Features, algorithm: Algorithm, fitted: AlgorithmModel, prediction: Prediction) -> list[str]:
    notes = []
    if prediction.width > 1:
        notes.append(
            f"It is unlike the MDPs that {algorithm.upper()} was seen on, so the interval is "
            f"{prediction.width:.1f} times as wide as usual, in powers of ten."
        )
        notes += _beyond(features, algorithm, fitted)
    if features.is_image is None:
        notes.append("What agents see is not known; flat observations are assumed.")
    if features.bound is None:
        notes.append("No finite bound on the effective horizon is known, so the forecast rests on everything else.")
    elif features.bound > LARGEST_BOUND:
        notes.append(f"The bound is beyond 1e{LARGEST_BOUND:.0f} timesteps, where nothing was ever solved.")
    if (features.optimal_chance or 0.0) > OFTEN_OPTIMAL:
        whose = "the policy's" if features.has_policy else "random"
        notes.append(
            f"{features.optimal_chance:.0%} of {whose} episodes are optimal already: by the paper's rule a run can "
            "count as solved before anything is learnt."
        )
    if prediction.quantile((1 + LEVEL) / 2) > fitted.budget:
        notes.append(
            f"The study's runs ended at {fitted.budget:,} timesteps; what lies beyond is an extrapolation, and it may "
            "never be learnt."
        )
    return notes


def _beyond(features: Features, algorithm: Algorithm, fitted: AlgorithmModel) -> list[str]:
    """In what the MDP lies outside everything that was seen."""
    found, values, seen = [], compared(features), np.array(fitted.seen)
    for place, column in enumerate(COMPARED):
        low, high = seen[:, place].min(), seen[:, place].max()
        if low <= round(values[place], 4) <= high:
            continue
        if column.name in FLAGS:
            if values[place]:
                found.append(_UNSEEN[column.name].format(algorithm=algorithm.upper()))
        else:
            seen_there = _rounded(low) if low == high else f"{_rounded(low)} to {_rounded(high)}"
            found.append(f"Its {column.title} is {_rounded(values[place])}; those seen had {seen_there}.")
    return found


def _rounded(log10: float) -> str:
    return f"{float(f'{10**log10:.3g}'):,.0f}"
