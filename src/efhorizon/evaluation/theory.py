"""From an analysis to the theory's part of a summary."""

from __future__ import annotations

import math

from msgspec import UNSET

from efhorizon.agents.deep.random_play import RandomPlay
from efhorizon.bounds.interval import Interval
from efhorizon.evaluation.formulas import SIMPLE_HORIZON, SIMPLE_TITLE, horizon_bound, horizon_of, worst_case_bound
from efhorizon.evaluation.records import (
    EXPLORATION,
    ORIGINAL,
    SHAPED,
    MdpSummary,
    Measurement,
    PolicySummary,
    log10_timesteps,
)
from efhorizon.study.analysis_record import UNIFORM, AnalysisRecord, CompleteFigures
from efhorizon.study.sweep import TRAINING_WINDOW
from efhorizon.suites.registry import suite


def has_something_to_learn(figures: CompleteFigures) -> bool:
    """Whether some action sequence earns more than another, as far as the analysis says."""
    return figures.worst_return is None or figures.worst_return != figures.optimal_return


def titles_of(analysis: AnalysisRecord[CompleteFigures]) -> dict[str, str]:
    """Titles of bounds for people."""
    return {**analysis.titles, SIMPLE_HORIZON: SIMPLE_TITLE}


def theory_summary(analysis: AnalysisRecord[CompleteFigures]) -> MdpSummary:
    """A summary of a complete analysis, still without runs."""
    figures, name = analysis.figures, analysis.name
    horizon, num_actions, simple = figures.horizon, figures.num_actions, _simple_horizon(figures)
    value = figures.effective_horizon.value
    assert not isinstance(value, Interval)  # those of a complete analysis are numbers
    is_uniform = analysis.policy == UNIFORM
    return MdpSummary(
        name=name,
        origin=analysis.suite,
        type=EXPLORATION if not is_uniform else SHAPED if analysis.unshaped else ORIGINAL,
        family=suite(analysis.suite).family(analysis.game or name),
        unshaped=analysis.unshaped,
        horizon=horizon,
        num_actions=num_actions,
        num_states=figures.num_states,
        reward_min=figures.worst_return,
        reward_exploration=figures.exploration_return,
        reward_optimal=figures.optimal_return,
        reward_optimal_probability=figures.optimal_return_probability,
        reward_factor=analysis.reward_factor,
        k_min=figures.min_k,
        epw=figures.epw,
        min_state_action_occupancy=figures.min_state_action_occupancy,
        min_sum_state_action_occupancy=figures.min_sum_state_action_occupancy,
        effective_horizon=math.inf if value is None else value,
        effective_horizon_kind=figures.effective_horizon.kind,
        effective_horizon_simple=simple,
        bounds=_bounds(figures) | {SIMPLE_HORIZON: horizon_bound(horizon, num_actions, simple)},
        sample_complexities={},
        budgets={},
        returns={},
        random_play=_random_play(figures),
        effective_horizons_by_ties=_by_ties(figures),
        policy=_policy(analysis),
        measures=_measures(figures),
    )


def _measures(figures: CompleteFigures) -> dict[str, Measurement]:
    """Those that have a value. One that does not apply promises nothing, but says nothing of difficulty either."""
    found = {} if figures.measures is UNSET else figures.measures
    return {
        name: Measurement(each.value, each.harder == "smaller")
        for name, each in found.items()
        if each.value is not None
    }


def _policy(analysis: AnalysisRecord[CompleteFigures]) -> PolicySummary | None:
    explorer = analysis.explorer
    if explorer is not UNSET:
        return PolicySummary(explorer.label, explorer.title, explorer.method, explorer.noise)
    return None if analysis.policy == UNIFORM else PolicySummary(analysis.policy)


def _by_ties(figures: CompleteFigures) -> dict[str, float]:
    """The exact effective horizon with other rules for ties, as far as it is known."""
    found = {} if figures.exact_by_ties is UNSET else figures.exact_by_ties
    return {rule: each.value for rule, each in found.items() if each.kind == "exact" and each.value is not None}


def _bounds(figures: CompleteFigures) -> dict[str, float]:
    """Every registered bound. A bound of null promises nothing, so it counts as infinite."""
    found: dict[str, float] = {}
    for name, timesteps in figures.sample_complexity.items():
        found[name] = math.inf if timesteps is None else log10_timesteps(timesteps)
        if timesteps is None and name == "worst_case" and name not in figures.reasons:
            found[name] = worst_case_bound(figures.horizon, figures.num_actions)  # finite, but too long for JSON
    return found


def _random_play(figures: CompleteFigures) -> float | None:
    """What random play needs to pass PPO's rule, in timesteps; where the mean length is not known, at most."""
    if figures.optimal_return_probability is None:
        return None
    probability = min(1.0, max(0.0, figures.optimal_return_probability))
    length = min(figures.horizon, max(1.0, figures.exploration_length or figures.horizon))
    return RandomPlay(probability, length).steps_needed(TRAINING_WINDOW)


def _simple_horizon(figures: CompleteFigures) -> float:
    """Theorem 5.4's bound on the effective horizon: the least over k."""
    found = ((k, entry.theorem_m) for k, entry in figures.effective_horizon.by_k.items())
    return min((horizon_of(figures.num_actions, k, m) for k, m in found if m is not None), default=math.inf)
