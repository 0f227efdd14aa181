"""A forecast in words: will PPO or DQN learn this, and how long will it take?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.forecast.prediction import LEVEL, Algorithm, Forecast
from efhorizon.render import numbers

_VERDICTS = (  # the least chance within the study's longest runs, and what to say
    (0.9, "very likely learns this"),
    (0.7, "probably learns this"),
    (0.3, "may learn this, or not"),
    (0.1, "probably does not learn this"),
    (0.0, "very likely does not learn this"),
)


class Words(NamedTuple):
    """The forecast for one algorithm."""

    verdict: str  # "PPO very likely learns this"
    detail: str  # chance and timesteps

    def __str__(self) -> str:
        return f"{self.verdict}: {self.detail}."


def in_words(forecast: Forecast) -> Words:
    """One sentence in two parts."""
    name, chance = forecast.algorithm.upper(), forecast.solved_within[PAPER_STEPS]
    verdict = next(words for least, words in _VERDICTS if chance >= least)
    low, median, high = (numbers.short_steps(each) for each in _timesteps(forecast))
    return Words(
        f"{name} {verdict}",
        f"{numbers.percent(chance)} within {numbers.short_steps(PAPER_STEPS)} timesteps; it takes about {median} "
        f"({LEVEL:.0%} interval {low} to {high})",
    )


def chances(forecast: Forecast) -> str:
    """The chance for each budget: 41% within 100k, 88% within 500k."""
    found = forecast.solved_within.items()
    return ", ".join(f"{numbers.percent(chance)} within {numbers.short_steps(budget)}" for budget, chance in found)


def notes(forecasts: Mapping[Algorithm, Forecast]) -> list[str]:
    """What the forecasts do not know, each sentence once; one about a single algorithm says which."""
    found: dict[str, list[Algorithm]] = {}
    for algorithm, forecast in forecasts.items():
        for note in forecast.notes:
            found.setdefault(note, []).append(algorithm)
    is_clear = {note: len(of) == len(forecasts) or _names(note, of) for note, of in found.items()}
    return [note if is_clear[note] else f"{of[0].upper()}: {note[0].lower()}{note[1:]}" for note, of in found.items()]


def model_of(forecasts: Mapping[Algorithm, Forecast]) -> str:
    """The version of the model behind all of them."""
    return next(iter(forecasts.values())).model


def _names(note: str, algorithms: Iterable[Algorithm]) -> bool:
    return any(algorithm.upper() in note for algorithm in algorithms)


def _timesteps(forecast: Forecast) -> tuple[float, float, float]:
    return forecast.timesteps.low, forecast.timesteps.median, forecast.timesteps.high
