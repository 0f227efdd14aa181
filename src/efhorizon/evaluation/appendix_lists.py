"""The three lists of the paper's Appendix G: properties, bounds and sample complexities, returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from efhorizon.evaluation.formulas import COVERING_LENGTH
from efhorizon.evaluation.records import EXPLORATION, MdpSummary


@dataclass(frozen=True)
class Properties:
    """One MDP of the first list."""

    name: str
    num_states: int
    num_actions: int
    horizon: int
    k_min: int | None
    effective_horizon: float | None
    effective_horizon_kind: str | None
    covering_length_log10: float | None  # episodes
    epw: int | None


@dataclass(frozen=True)
class Complexities:
    """One MDP of the second list: what bounds say and algorithms needed."""

    name: str
    bounds_log10: Mapping[str, float]  # timesteps
    sample_complexities: Mapping[str, float]


@dataclass(frozen=True)
class Returns:
    """One MDP of the third list."""

    name: str
    exploration: float | None
    optimal: float | None
    of_algorithms: Mapping[str, float]


def property_list(summaries: Sequence[MdpSummary]) -> tuple[Properties, ...]:
    return tuple(
        Properties(
            name=each.name,
            num_states=each.num_states,
            num_actions=each.num_actions,
            horizon=each.horizon,
            k_min=each.k_min,
            effective_horizon=each.effective_horizon,
            effective_horizon_kind=each.effective_horizon_kind,
            covering_length_log10=_episodes(each),
            epw=each.epw,
        )
        for each in _by_name(summaries)
    )


def complexity_list(summaries: Sequence[MdpSummary]) -> tuple[Complexities, ...]:
    return tuple(
        Complexities(each.name, dict(each.bounds), dict(each.sample_complexities)) for each in _by_name(summaries)
    )


def return_list(summaries: Sequence[MdpSummary]) -> tuple[Returns, ...]:
    return tuple(
        Returns(each.name, each.reward_exploration, each.reward_optimal, dict(each.returns))
        for each in _by_name(summaries)
    )


def _episodes(summary: MdpSummary) -> float | None:
    timesteps = summary.bounds.get(COVERING_LENGTH)
    return None if timesteps is None else timesteps - math.log10(summary.horizon)


def _by_name(summaries: Sequence[MdpSummary]) -> list[MdpSummary]:
    """Every MDP; variants have a list of their own."""
    mdps = [each for each in summaries if each.type != EXPLORATION]
    return sorted(mdps, key=lambda each: (each.origin, each.name))
