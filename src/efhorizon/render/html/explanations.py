"""Sentences about one MDP, composed from its figures: how hard it is, why, and what decides each bound."""

from __future__ import annotations

from msgspec import UNSET

from efhorizon.bounds.interval import Interval
from efhorizon.evaluation.forecast_rows import record_features
from efhorizon.evaluation.formulas import SIMPLE_HORIZON
from efhorizon.forecast.prediction import forecasts
from efhorizon.gorp.ties import Ties
from efhorizon.render import forecasts as forecast_words
from efhorizon.render import numbers
from efhorizon.render.html.action_returns import ActionReturns, action_returns
from efhorizon.render.tie_rules import RULES, horizon_and_m
from efhorizon.study.analysis_record import (
    AnyAnalysis,
    CompleteFigures,
    DecidingState,
    Figure,
    UnfinishedFigures,
    is_complete,
)

_NAMES_SHOWN = 3
_LONGEST_REASON = 2_000  # characters: an analysis may come from anybody

_Figures = CompleteFigures | UnfinishedFigures


def figure(value: Figure, digits: int = 3) -> str:
    """A figure for people, an interval as its two ends."""
    if isinstance(value, Interval):
        high = numbers.INFINITE if value.high is None else figure(value.high, digits)
        return f"{figure(value.low, digits)} to {high}"
    if isinstance(value, int):
        return numbers.steps(value) if value >= 0 else str(value)
    return numbers.significant(value, digits)


def horizon_text(figures: _Figures) -> str:
    """H with its sign: = 2.86, ≤ 4.1, or an interval."""
    horizon = figures.effective_horizon
    if horizon.value is None:
        return "unknown"
    if isinstance(horizon.value, Interval):
        return f"{numbers.decimal(horizon.value.low)} to {numbers.decimal(horizon.value.high)}"
    return numbers.decimal(horizon.value) if horizon.kind == "exact" else f"≤ {numbers.decimal(horizon.value)}"


def will_it_learn(analysis: AnyAnalysis) -> list[str]:
    """Whether PPO and DQN learn this, and how long it takes; the last entry is what the forecast does not know."""
    if not is_complete(analysis):
        return []
    features = record_features(analysis)
    if not features.has_something_to_learn:
        return []
    found = forecasts(features)
    return [
        *(str(forecast_words.in_words(each)) for each in found.values()),
        " ".join(
            [*forecast_words.notes(found), f"Forecast by {forecast_words.model_of(found)}, from runs on other MDPs."]
        ),
    ]


def why_hard(analysis: AnyAnalysis) -> list[str]:
    """A few sentences."""
    figures = analysis.figures
    if isinstance(figures, UnfinishedFigures):
        return [
            "The search for this MDP's states was stopped, so every figure below is an interval: it holds for anything "
            "that the unexplored states might do."
        ]
    if figures.optimal_return == figures.worst_return:
        return ["There is nothing to learn: every action sequence earns the same."]
    sentences = (_verdict(figures), _planning(figures), _episodes(figures), _chance(figures))
    return [sentence for sentence in sentences if sentence]


def _verdict(figures: CompleteFigures) -> str:
    horizon, needed = figures.effective_horizon, figures.sample_complexity.get("effective_horizon")
    if horizon.value is None or needed is None:
        return f"The effective horizon is unknown: {figures.reasons.get('effective_horizon', 'no bound applies')}."
    sign = "is" if horizon.kind == "exact" else "is at most"
    return (
        f"The effective horizon {sign} {figure(horizon.value)} of {figures.horizon}: GORP with "
        f"k = {horizon.k} and m = {numbers.steps(horizon.m)} finds an optimal policy in "
        f"{numbers.steps(needed)} timesteps."
    )


def _planning(figures: CompleteFigures) -> str | None:
    if figures.min_k == 1:
        return "Acting greedily on the values of random play is optimal: the rewards show the way."
    if figures.min_k is not None:
        k = figures.min_k
        return f"Acting greedily on the values of random play is not optimal: it takes k = {k} steps of planning."
    return None


def gap(analysis: AnyAnalysis) -> str:
    """How far apart the actions of the state of Theorem 5.4 are, and what that costs; empty where nothing is."""
    figures, deciding = analysis.figures, analysis.deciding
    if deciding is None or isinstance(figures, UnfinishedFigures) or figures.optimal_return == figures.worst_return:
        return ""
    ordered = sorted(action_returns(deciding), key=lambda action: -action.q)
    if len(ordered) < 2 or ordered[0].q == ordered[1].q:
        return ""
    lower = [action for action in ordered if action.q < ordered[0].q]
    best, second = ordered[0], next((action for action in lower if not action.is_optimal), lower[0])
    high, low = numbers.significant(best.q), numbers.significant(second.q)
    against = f"compared with {low} for" if low != high else f"only {numbers.significant(best.q - second.q)} more than"
    return (
        f"In this state {_action(best)} is worth {high} "
        f"{_play(deciding)}, {against} {_action(second)}.{_harmless(figures, deciding)}"
    )


def _play(deciding: DecidingState) -> str:
    """What follows an action, for the worth that Q^k gives it."""
    if deciding.k == 1:
        return "under random play"
    best = "the best action follows" if deciding.k == 2 else f"the {deciding.k - 1} best actions follow"
    return f"if {best} and random play after that"


def _harmless(figures: CompleteFigures, deciding: DecidingState) -> str:
    if not all(action.is_optimal for action in deciding.actions):
        return ""
    if _without_theorem(figures):
        return " This is the smallest gap, but every action is still optimal there, so a wrong choice costs nothing."
    return " Every action is still optimal there: Theorem 5.4 counts the gap, but a wrong choice costs nothing."


def _episodes(figures: CompleteFigures) -> str | None:
    """How many episodes GORP has to average."""
    horizon = figures.effective_horizon
    if horizon.m is None:
        return None
    many = "A single episode" if horizon.m == 1 else f"Averaging {numbers.steps(horizon.m)} episodes"
    bound = "is enough" if horizon.kind == "exact" else "is certainly enough"
    each = "action" if horizon.k == 1 else f"sequence of {horizon.k} actions"
    return f"{many} for each {each} {bound} for GORP to get every choice right at least half the time."


def _action(action: ActionReturns) -> str:
    shown = ", ".join(action.names[:_NAMES_SHOWN])
    more = len(action.names) - _NAMES_SHOWN
    return f"“{shown}”" + (f" (and {more} more)" if more > 0 else "")


def _chance(figures: CompleteFigures) -> str | None:
    chance = figures.optimal_return_probability
    if chance is None or chance <= 0:
        return None
    return f"A random episode is optimal with probability {numbers.significant(chance)}."


def witness(bound: str, figures: _Figures) -> str:
    """What decides a bound: the figure, state or reason behind its number."""
    if bound in figures.reasons:
        return figures.reasons[bound][:_LONGEST_REASON]
    explained = {
        "worst_case": _worst_case,
        "ucb": _ucb,
        "covering_length": _covering_length,
        "epw": _planning_window,
        "effective_horizon": _effective_horizon,
        SIMPLE_HORIZON: _theorem,
        "goal": _goal,
        "pg_gorp": _theorem,
        "fqi_gorp": _theorem,
    }.get(bound)
    return explained(figures) if explained else ""


def ties(figures: _Figures) -> str:
    """With which rule for ties the exact effective horizon holds, and what it is with the others."""
    rule: Ties = "uniform" if isinstance(figures, UnfinishedFigures) or figures.ties is UNSET else figures.ties
    sentence = f"Exact figures hold with ties {RULES[rule]}"
    by_ties = UNSET if isinstance(figures, UnfinishedFigures) else figures.exact_by_ties
    if by_ties is UNSET:
        return f"{sentence}."
    others = (
        f"{RULES[other]}, {horizon_and_m(found.value, found.k, found.m, found.kind)}"
        + (f" ({found.reason[:_LONGEST_REASON]})" if found.reason else "")
        for other, found in by_ties.items()
        if other != rule
    )
    return f"{sentence}. If ties go {'; '.join(others)}."


def undecided(figures: _Figures) -> str:
    """Why there is no deciding state."""
    if isinstance(figures, UnfinishedFigures):
        return "There is no deciding state: the table is unfinished."
    reason = _without_theorem(figures)
    return f"There is no deciding state: {reason or 'no gap between actions limits this MDP'}."


def _without_theorem(figures: _Figures) -> str:
    """Why Theorem 5.4, whose gaps name the deciding state, does not apply; empty if it does."""
    by_k = figures.effective_horizon.by_k
    reasons = [by_k[k].theorem_reason for k in sorted(by_k)]
    return reasons[0] or "" if reasons and all(reasons) else ""


def _worst_case(figures: _Figures) -> str:
    return f"tries half of all {numbers.power(figures.num_actions, figures.horizon)} action sequences"


def _ucb(figures: _Figures) -> str:
    total = figures.sample_complexity.get("ucb")
    if not isinstance(total, int):
        return "S A T"
    states = total // (figures.num_actions * figures.horizon)
    return f"{numbers.count(states)} states can be reached before the horizon, with {figures.num_actions} actions each"


def _covering_length(figures: _Figures) -> str:
    low = figures.covering_length_lower if isinstance(figures, CompleteFigures) else None
    return (
        f"random play takes the rarest state-action pair with probability {figure(figures.min_state_action_occupancy)} "
        f"at best; visiting all pairs takes between {figure(low)} and {figure(figures.covering_length)} episodes"
    )


def _planning_window(figures: _Figures) -> str:
    return f"planning {figure(figures.epw)} steps ahead finds an optimal action, ignoring later rewards"


def _effective_horizon(figures: _Figures) -> str:
    horizon = figures.effective_horizon
    chosen = f"k = {horizon.k}, m = {numbers.steps(horizon.m)}"
    worst = figures.most_failures if isinstance(figures, CompleteFigures) else None
    if worst is None:
        entry = None if horizon.k is None else horizon.by_k.get(horizon.k)
        return f"{chosen}, by {entry.method}" if entry is not None and entry.method else chosen
    chance = numbers.significant(worst.failure_probability)
    where = f"state {worst.state} at time {worst.time}"
    return f"{chosen}; GORP's first mistake is likeliest in {where} (probability {chance})"


def _theorem(figures: _Figures) -> str:
    where = figures.theorem_states.get(1) if isinstance(figures, CompleteFigures) else None
    if where is None:
        return _without_theorem(figures)
    gap = "" if where.gap is None else f", gap {numbers.significant(where.gap)}"
    return f"state {where.state} at time {where.time}{gap}"


def _goal(figures: _Figures) -> str:
    goal = figures.goal_mdp if isinstance(figures, CompleteFigures) else None
    chance = numbers.significant(None if goal is None else goal.p)
    return f"wherever the goal can still be reached, random play reaches it with probability {chance} or more"
