"""The forecast for PPO and DQN from a diagnosis: as from an analysis, but m and the number of states are uncertain.

The model's features are filled in three times: with everything at the easy end, in the middle and at the hard end. The
number of states, which is unknown without a table, is then 100, 10,000 and 1,000,000. The interval reaches from the low
end of the easy case to the high end of the hard one; chances are the means of the three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from efhorizon.diagnose.least_episodes import Interval
from efhorizon.forecast.features import Features, log10_bound, sparseness
from efhorizon.forecast.prediction import ALGORITHMS, BUDGETS, Algorithm, Forecast, Timesteps, forecast

STATES = (100, 10_000, 1_000_000)


@dataclass(frozen=True)
class Known:
    """What a diagnosis knows that a forecast depends on."""

    sample_complexity: Interval | None
    min_k: int | None
    horizon: int
    num_actions: int
    is_image: bool | None
    returns: tuple[float, ...]  # distinct returns of random play
    mean_return: float
    best_return: float
    optimal_chance: float


def outlook(known: Known) -> dict[Algorithm, Forecast]:
    """The forecasts, with the wider interval that the uncertainty asks for."""
    return {algorithm: _forecast(known, algorithm) for algorithm in ALGORITHMS}


def _forecast(known: Known, algorithm: Algorithm) -> Forecast:
    easy, middle, hard = (forecast(each, algorithm) for each in _cases(known))
    low = min(easy.timesteps.low, middle.timesteps.low)
    high = max(middle.timesteps.high, hard.timesteps.high)
    chances = {
        budget: round(sum(each.solved_within[budget] for each in (easy, middle, hard)) / 3, 4) for budget in BUDGETS
    }
    notes = [note for note in middle.notes if "nothing to learn" not in note or known.best_return == min(known.returns)]
    notes.append("The number of states is not known without a table, and m only by an interval: both widen this one.")
    return replace(
        middle,
        solved_within=chances,
        timesteps=Timesteps(low, middle.timesteps.median, high),
        notes=tuple(notes),
    )


def _cases(known: Known) -> list[Features]:
    needed = known.sample_complexity or Interval(math.inf, math.inf, math.inf)
    worst = min(known.returns)
    is_goal = worst == 0 and len({*known.returns, known.best_return}) <= 2
    return [
        Features(
            bound=log10_bound(timesteps),
            bound_kind="upper" if math.isfinite(timesteps) else "none",
            min_k=known.min_k,
            num_states=states,
            window=None,
            horizon=known.horizon,
            num_actions=known.num_actions,
            is_image=known.is_image,
            is_shaped=False,
            is_goal=is_goal,
            can_lose=worst < 0,
            sparseness=sparseness(worst, known.mean_return, known.best_return),
            optimal_chance=known.optimal_chance,
            has_policy=False,
        )
        for timesteps, states in zip((needed.low, needed.estimate, needed.high), STATES, strict=True)
    ]
