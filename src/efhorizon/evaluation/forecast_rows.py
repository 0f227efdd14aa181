"""From a study to what a forecast is fitted on: the features of each MDP, and what PPO and DQN needed there."""

from __future__ import annotations

import math

from msgspec import UNSET

from efhorizon.bounds.interval import Interval
from efhorizon.evaluation.rules import RULES, Rule, under
from efhorizon.evaluation.source import StudyData
from efhorizon.evaluation.theory import has_something_to_learn
from efhorizon.forecast.features import Features, bound_kind, log10_bound, sparseness
from efhorizon.forecast.fitting import Outcome
from efhorizon.forecast.prediction import ALGORITHMS, Algorithm
from efhorizon.study.analysis_record import UNIFORM, AnalysisRecord, CompleteFigures, is_complete
from efhorizon.suites.registry import suite

RULE: Rule = RULES[0]  # trained networks, on MDPs that random play does not solve


def record_features(analysis: AnalysisRecord[CompleteFigures]) -> Features:
    """The features of an analysis as a study stores it."""
    figures = analysis.figures
    timesteps = figures.sample_complexity.get("effective_horizon")
    assert not isinstance(timesteps, Interval)  # those of a complete analysis are numbers
    worst, exploring, optimal = figures.worst_return, figures.exploration_return, figures.optimal_return
    known = worst is not None and exploring is not None and optimal is not None
    plays = suite(analysis.suite)
    return Features(
        bound=log10_bound(timesteps),
        bound_kind=bound_kind(figures.effective_horizon.kind),
        min_k=figures.min_k,
        num_states=figures.num_states,
        window=figures.epw,
        horizon=figures.horizon,
        num_actions=figures.num_actions,
        is_image=plays.network(analysis.game or analysis.id) == "image" if plays.has_names else _told(analysis),
        is_shaped=analysis.unshaped is not None,
        is_goal=figures.goal_mdp is not None and figures.goal_mdp.is_goal_mdp,
        can_lose=worst is not None and worst < 0,
        sparseness=sparseness(worst, exploring, optimal) if known else 1.0,  # type: ignore[arg-type]
        optimal_chance=figures.optimal_return_probability,
        has_policy=analysis.policy != UNIFORM,
    )


def _told(analysis: AnalysisRecord[CompleteFigures]) -> bool | None:
    """Whether agents see images, where the environment is not listed; earlier analyses do not tell."""
    return None if analysis.sees_images is UNSET else analysis.sees_images


def forecast_rows(data: StudyData, rule: Rule = RULE) -> dict[Algorithm, list[Outcome]]:
    """Every MDP on which an algorithm was run, where that counts by a rule."""
    rows: dict[Algorithm, list[Outcome]] = {algorithm: [] for algorithm in ALGORITHMS}
    for summary in under(rule, data.summaries):
        analysis = data.analyses.get(summary.name)
        if analysis is None or not is_complete(analysis) or not has_something_to_learn(analysis.figures):
            continue
        for algorithm in ALGORITHMS:
            timesteps, budget = summary.sample_complexities.get(algorithm), summary.budgets.get(algorithm)
            if timesteps is not None and budget is not None and math.isfinite(budget):
                rows[algorithm].append(
                    Outcome(summary.name, summary.family, record_features(analysis), timesteps, budget)
                )
    return rows
