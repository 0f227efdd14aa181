"""Forecasts: will PPO or DQN learn this, and how long will it take?"""

from __future__ import annotations

from pathlib import Path

from numpy.typing import ArrayLike

from efhorizon.bounds.analysis import Analysis, analyze
from efhorizon.errors import InvalidTableError
from efhorizon.forecast.features import Features
from efhorizon.forecast.features import features as features_of
from efhorizon.forecast.prediction import Algorithm, Forecast, forecasts
from efhorizon.library.building import as_table
from efhorizon.mdp import TabularMDP


def forecast(
    mdp: TabularMDP | Analysis | Features | str | Path,
    *,
    exploration_policy: ArrayLike | None = None,
    max_minutes: float | None = None,
) -> dict[Algorithm, Forecast]:
    """Whether PPO and DQN learn an optimal policy, and after how many timesteps: `ef.forecast(mdp)["ppo"].timesteps`.

    A table is analyzed first, for which `max_minutes` is a time budget; an analysis has its forecast already, as
    `analysis.forecast`. docs/forecast.md says how good forecasts are, and what they do not know.
    """
    if isinstance(mdp, Features):
        return forecasts(mdp)
    if isinstance(mdp, Analysis):
        return forecasts(features_of(mdp))
    found = analyze(as_table(mdp), exploration_policy=exploration_policy, max_minutes=max_minutes)
    if not isinstance(found, Analysis):
        raise InvalidTableError("the table is unfinished; a forecast needs a complete one")
    return forecasts(features_of(found))
