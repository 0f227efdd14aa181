"""How hard a table is, as far as a quick look shows: the effective horizon, timesteps, and the forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from efhorizon.bounds.analysis import writable
from efhorizon.bounds.effective_horizon import EffectiveHorizon
from efhorizon.bounds.quick_horizon import QUICK_POINTS, quick_horizon
from efhorizon.forecast.features import problem_features
from efhorizon.forecast.prediction import Forecast, forecasts
from efhorizon.planning.problem import Problem


@dataclass(frozen=True)
class Figures:
    """Of a table. Timesteps are steps of the original environment, also where one step is several of them."""

    num_states: int
    num_actions: int
    horizon: int
    optimal_return: float
    effective_horizon: float | None
    kind: str | None  # "exact" or "upper"
    k: int | None
    m: int | None
    timesteps: int | None  # that the effective horizon promises GORP
    least_timesteps: int  # what is certain that the effective horizon asks for
    is_by_theorem: bool  # whether `timesteps` come from a theorem, not from GORP's success
    reason: str | None = None  # why there is no exact figure
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)  # by algorithm

    def as_json(self) -> dict[str, Any]:
        content = {
            **asdict(replace(self, forecasts={})),
            "forecast": {name: found.as_json() for name, found in self.forecasts.items()},
        }
        del content["forecasts"]
        for name in ("m", "timesteps", "least_timesteps"):
            content[name] = writable(content[name])
        return content


def figures(
    problem: Problem,
    *,
    steps_each: int = 1,
    is_shaped: bool = False,
    max_points: int = QUICK_POINTS,
    guess: int | None = None,
) -> Figures:
    """The figures of a problem, with at most about so many lattice points; `guess` is an m to begin near."""
    horizon = quick_horizon(problem, max_points=max_points, guess=guess)
    mdp = problem.mdp
    return Figures(
        num_states=mdp.num_states,
        num_actions=mdp.num_actions,
        horizon=mdp.horizon,
        optimal_return=problem.optimal.values.reward(),
        effective_horizon=horizon.value,
        kind=horizon.kind,
        k=horizon.k,
        m=horizon.m,
        timesteps=None if horizon.sample_complexity is None else steps_each * horizon.sample_complexity,
        least_timesteps=steps_each * _least_timesteps(problem, horizon),
        is_by_theorem=horizon.k is not None and (horizon.by_k[horizon.k - 1].method or "").startswith("Theorem"),
        reason=horizon.why_not_exact if horizon.kind != "exact" else None,
        forecasts=_forecasts(problem, horizon, steps_each, is_shaped),
    )


def _least_timesteps(problem: Problem, horizon: EffectiveHorizon) -> int:
    """T^2 times the fewest episodes A^k m that are not ruled out, in whole numbers."""
    num_actions = problem.mdp.num_actions
    possible = [(entry.k, entry.exact_m or entry.least_possible_m) for entry in horizon.by_k]
    least = [num_actions**k * m for k, m in possible if m is not None]
    least += [num_actions ** (problem.max_k + 1)] if problem.max_k < problem.mdp.horizon else []
    return int(problem.mdp.horizon**2 * min(least, default=1))


def _forecasts(problem: Problem, horizon: EffectiveHorizon, steps_each: int, is_shaped: bool) -> dict[str, Forecast]:
    """What PPO and DQN need, in steps of the original environment; nothing where there is nothing to learn."""
    known = problem_features(problem, horizon)
    if not known.has_something_to_learn:
        return {}
    if is_shaped:
        known = replace(known, is_shaped=True)
    return {name: _in_steps(each, steps_each) for name, each in forecasts(known).items()}


def _in_steps(given: Forecast, steps_each: int) -> Forecast:
    if steps_each == 1:
        return given
    needed = given.timesteps
    scaled = replace(
        needed, low=steps_each * needed.low, median=steps_each * needed.median, high=steps_each * needed.high
    )
    within = {steps_each * budget: chance for budget, chance in given.solved_within.items()}
    return replace(given, timesteps=scaled, solved_within=within)
