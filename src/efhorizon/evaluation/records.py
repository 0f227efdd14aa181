"""One MDP as evaluation sees it: what theory says and what practice needed. One line of summary.csv."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from efhorizon.study.analysis_record import SEPARATOR

DEEP_RL = ("ppo", "dqn")  # the algorithms whose sample complexity is to be predicted
GORP = "gorp"

ORIGINAL, SHAPED, EXPLORATION = "original", "shaped", "exploration"  # types of MDPs


@dataclass(frozen=True)
class PolicySummary:
    """The policy that a variant starts from: which one, and where it comes from."""

    label: str
    title: str | None = None
    method: str | None = None
    noise: float | None = None  # of the demonstrator that was cloned

    @property
    def name(self) -> str:
        """For people."""
        return self.title or self.label


@dataclass(frozen=True)
class Measurement:
    """A measure of hardness of one MDP."""

    value: float
    is_easiness: bool = False  # larger values mean an easier MDP

    @property
    def hardness(self) -> float:
        """Larger means harder; only the order counts."""
        return -self.value if self.is_easiness else self.value


@dataclass(frozen=True)
class MdpSummary:
    """One MDP. None: a figure is unknown; math.inf: it is infinite."""

    name: str
    origin: str  # the suite
    type: str  # ORIGINAL, SHAPED, EXPLORATION, or another word from somebody else's file
    family: str  # MDPs that resemble each other: see `Suite.family`
    unshaped: str | None  # name of the MDP whose rewards were shaped
    horizon: int
    num_actions: int
    num_states: int
    reward_min: float | None
    reward_exploration: float | None
    reward_optimal: float | None
    reward_optimal_probability: float | None
    reward_factor: float | None
    k_min: int | None
    epw: int | None
    min_state_action_occupancy: float | None
    min_sum_state_action_occupancy: float | None
    effective_horizon: float | None
    effective_horizon_kind: str | None  # "exact" or "upper"
    effective_horizon_simple: float | None  # Theorem 5.4
    bounds: Mapping[str, float]  # name: log10 of timesteps, for A^T overflows
    sample_complexities: Mapping[str, float]  # algorithm: timesteps; infinite = run, not reached; absent = not run
    budgets: Mapping[str, float]  # algorithm: timesteps per run, at most
    returns: Mapping[str, float]  # algorithm: final return, median over the seeds of the best setting
    random_play: float | None = None  # timesteps until random play passes PPO's rule on training episodes
    learnt: Mapping[str, float] | None = None  # sample complexities of trained networks only: see `rules.py`
    effective_horizons_by_ties: Mapping[str, float] = field(default_factory=dict)  # exact ones, by another rule
    policy: PolicySummary | None = None  # of a variant
    measures: Mapping[str, Measurement] = field(default_factory=dict)  # of hardness, by name; absent = not known

    @property
    def base_name(self) -> str:
        """The name without the exploration policy."""
        return self.name.rpartition(SEPARATOR)[0] if self.type == EXPLORATION else self.name

    @property
    def label(self) -> str:
        """The exploration policy's part of the name."""
        return self.name.rpartition(SEPARATOR)[2] if self.type == EXPLORATION else ""


def is_main(summary: MdpSummary) -> bool:
    """Whether the MDP counts in Tables 1 and 2: rewards as they are, exploration uniform."""
    return summary.type not in (SHAPED, EXPLORATION)


def has_solved(summary: MdpSummary, algorithm: str) -> bool | None:
    """Whether the algorithm found an optimal policy; None where it was not run."""
    complexity = summary.sample_complexities.get(algorithm)
    return None if complexity is None else math.isfinite(complexity)


def log10_timesteps(timesteps: float) -> float:
    """Sample complexities and bounds are compared as logarithms. Nothing takes less than one timestep."""
    return math.log10(max(1, timesteps)) if timesteps < math.inf else math.inf
