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
    sparseness: float | None  # share of the range of returns that the exploration policy misses, from 0 to 1
    optimal_chance: float | None  # that an episode of the exploration policy is optimal
    episode_length: float | None  # timesteps of an exploring episode, on average
    has_policy: bool  # whether exploration is by a given policy instead of uniform

    @property
    def has_something_to_learn(self) -> bool:
        """Whether some action sequence earns more than another."""
        return self.sparseness is not None


def features(
    analysis: Analysis, metadata: Mapping[str, Any] | None = None, *, has_policy: bool | None = None
) -> Features:
    """The features of an analysis; `metadata` is that of its table, and says what agents see and whether it is shaped.

    `has_policy` says whether exploration was by a given policy. What is left out is taken from the analysis.
    """
    raise NotImplementedError


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
        sparseness=sparseness(worst, problem.exploration.exploration_return, problem.optimal.values.reward()),
        optimal_chance=optimal_return_probability(problem.timeline, problem.optimal, problem.policy),
        episode_length=problem.occupancy_minima.length,
        has_policy=not problem.policy.is_uniform,
    )


def log10_bound(timesteps: int | float | None) -> float | None:
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
