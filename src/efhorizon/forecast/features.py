"""What a forecast is made from: the part of an analysis that PPO's and DQN's sample complexity depends on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.effective_horizon import EffectiveHorizon, effective_horizon
from efhorizon.bounds.effective_planning_window import effective_planning_window
from efhorizon.bounds.qvi_solvability import qvi_solvability
from efhorizon.planning.occupancy import optimal_return_probability
from efhorizon.planning.optimal import worst_values
from efhorizon.planning.problem import Problem
from efhorizon.suites.registry import suite

BoundKind = Literal["exact", "upper", "none"]


@dataclass(frozen=True)
class Features:
    """What is known about an MDP before anything is trained. None: unknown."""

    bound: float | None  # log10 of the timesteps that the effective horizon promises GORP; None: no finite bound
    bound_kind: BoundKind
    min_k: int | None  # the least k for which acting greedily on Q^k is optimal
    num_states: int
    window: int | None  # the effective planning window
    horizon: int
    num_actions: int
    is_image: bool | None  # whether agents see pictures; False: flat observations
    is_shaped: bool  # whether the rewards were shaped by a potential
    is_goal: bool  # whether the only reward is paid for reaching a goal (Definition B.3): the sparsest kind
    can_lose: bool  # whether the worst return is negative
    sparseness: float | None  # share of the range of returns that exploration misses; None: nothing to learn
    optimal_chance: float | None  # that an episode of the exploration policy is optimal
    has_policy: bool  # whether exploration is by a given policy instead of uniform

    @property
    def has_something_to_learn(self) -> bool:
        """Whether some action sequence earns more than another."""
        return self.sparseness is not None


def features(analysis: Analysis) -> Features:
    """The features of an analysis."""
    return Features(
        bound=log10_bound(analysis.effective_horizon.sample_complexity),
        bound_kind=bound_kind(analysis.effective_horizon.kind),
        min_k=analysis.solvability.min_k,
        num_states=analysis.num_states,
        window=analysis.effective_planning_window.window,
        horizon=analysis.horizon,
        num_actions=analysis.num_actions,
        is_image=sees_images(analysis.metadata),
        is_shaped=is_shaped(analysis.metadata),
        is_goal=analysis.goal.is_goal_mdp,
        can_lose=analysis.worst_return < 0,
        sparseness=sparseness(analysis.worst_return, analysis.exploration_return, analysis.optimal_return),
        optimal_chance=analysis.optimal_return_probability,
        has_policy=analysis.has_policy,
    )


def problem_features(problem: Problem, horizon: EffectiveHorizon | None = None) -> Features:
    """The features of a problem; `horizon` is its effective horizon, if that is known already."""
    mdp = problem.mdp
    worst = worst_values(problem.timeline, gamma=problem.gamma).reward()
    horizon = effective_horizon(problem) if horizon is None else horizon
    return Features(
        bound=log10_bound(horizon.sample_complexity),
        bound_kind=bound_kind(horizon.kind),
        min_k=qvi_solvability(problem).min_k,
        num_states=mdp.num_states,
        window=effective_planning_window(problem).window,
        horizon=mdp.horizon,
        num_actions=mdp.num_actions,
        is_image=sees_images(mdp.metadata),
        is_shaped=is_shaped(mdp.metadata),
        is_goal=problem.is_goal_mdp,
        can_lose=worst < 0,
        sparseness=sparseness(worst, problem.exploration.exploration_return, problem.optimal.values.reward()),
        optimal_chance=optimal_return_probability(problem.timeline, problem.optimal, problem.policy),
        has_policy=not problem.policy.is_uniform,
    )


def log10_bound(timesteps: float | None) -> float | None:
    """A bound as a forecast uses it."""
    return None if timesteps is None or timesteps == math.inf else math.log10(max(1, timesteps))


def bound_kind(kind: str | None) -> BoundKind:
    """Of the effective horizon."""
    return "exact" if kind == "exact" else "upper" if kind == "upper" else "none"


def sparseness(worst: float, exploring: float, optimal: float) -> float | None:
    """(optimal - exploring) / (optimal - worst): 1 if exploring never earns anything, None if all returns are equal."""
    if optimal == worst:
        return None
    return min(1.0, max(0.0, (optimal - exploring) / (optimal - worst)))


def sees_images(metadata: Mapping[str, Any]) -> bool | None:
    """Whether agents see pictures in the environment of a table; None where the table does not say which it is."""
    name = metadata.get("suite")
    return None if name is None else suite(str(name)).network_of(metadata) == "image"


def is_shaped(metadata: Mapping[str, Any]) -> bool:
    """Whether a table's rewards were shaped by a potential."""
    return metadata.get("unshaped") is not None
