"""Sentences about one MDP, composed from its figures: how hard it is, why, and what each bound hangs on."""

from __future__ import annotations

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.evaluation.formulas import SIMPLE_HORIZON
from efhorizon.render import numbers
from efhorizon.render.html.analysis import ActionLaw, Analysis, Deciding, Figure, Interval

_NAMES_SHOWN = 3


def figure(value: Figure, digits: int = 3) -> str:
    """A figure for people, an interval as its two ends."""
    if isinstance(value, Interval):
        high = numbers.INFINITE if value.high is None else figure(value.high, digits)
        return f"{figure(value.low, digits)} to {high}"
    if isinstance(value, int):
        return numbers.steps(value) if value >= 0 else str(value)
    return numbers.significant(value, digits)


def horizon_text(analysis: Analysis) -> str:
    """H with its sign: = 2.86, ≤ 4.1, or an interval."""
    value = analysis.effective_horizon
    if value is None:
        return "unknown"
    if isinstance(value, Interval):
        return f"{numbers.decimal(value.low)} to {numbers.decimal(value.high)}"
    return numbers.decimal(value) if analysis.effective_kind == "exact" else f"≤ {numbers.decimal(value)}"


def why_hard(analysis: Analysis) -> list[str]:
    """A few sentences."""
    if not analysis.is_complete:
        return [
            "The search for this MDP's states was stopped, so every figure below is an interval that holds whatever "
            "the unexplored states do."
        ]
    if analysis.figures.get("optimal_return") == analysis.figures.get("worst_return"):
        return ["There is nothing to learn: every action sequence has the same return."]
    sentences = (_verdict(analysis), _planning(analysis), _gap(analysis), _episodes(analysis), _chance(analysis))
    return [sentence for sentence in sentences if sentence]


def _verdict(analysis: Analysis) -> str:
    needed = analysis.sample_complexity.get("effective_horizon")
    if analysis.effective_horizon is None or not isinstance(needed, int | float):
        return f"The effective horizon is not known: {analysis.reasons.get('effective_horizon', 'no bound applies')}."
    sign = "is" if analysis.effective_kind == "exact" else "is at most"
    ease = "within" if needed <= PAPER_STEPS else "beyond"
    return (
        f"The effective horizon {sign} {figure(analysis.effective_horizon)} of {analysis.horizon}: GORP with "
        f"k = {analysis.effective_k} and m = {numbers.steps(analysis.effective_m)} finds an optimal policy in "
        f"{numbers.steps(needed)} timesteps, {ease} the {numbers.short_steps(PAPER_STEPS)} that the paper gave "
        "deep RL."
    )


def _planning(analysis: Analysis) -> str | None:
    min_k = analysis.figures.get("min_k")
    if min_k == 1:
        return "Acting greedily on the values of random play is optimal, so the rewards point the way."
    if isinstance(min_k, int):
        return f"Acting greedily on the values of random play fails: it takes {min_k} steps of planning first."
    return None


def _gap(analysis: Analysis) -> str | None:
    """How far apart the actions of the deciding state are, and what that costs."""
    if analysis.deciding is None:
        return None
    ordered = sorted(analysis.deciding.actions, key=lambda law: -law.q)
    if len(ordered) < 2 or ordered[0].q == ordered[1].q:
        return None
    lower = [law for law in ordered if law.q < ordered[0].q]
    best, second = ordered[0], next((law for law in lower if not law.is_optimal), lower[0])
    high, low = numbers.significant(best.q), numbers.significant(second.q)
    against = f"against {low} for" if low != high else f"only {numbers.significant(best.q - second.q)} more than"
    return (
        f"In the deciding state, at time {analysis.deciding.time}, {_action(best)} is worth {high} "
        f"{_play(analysis.deciding)}, {against} {_action(second)}.{_harmless(analysis, analysis.deciding)}"
    )


def _play(deciding: Deciding) -> str:
    """What follows an action, for the worth that Q^k gives it."""
    if deciding.k == 1:
        return "under random play"
    best = "the best action follows" if deciding.k == 2 else f"the {deciding.k - 1} best actions follow"
    return f"if {best} and random play after that"


def _harmless(analysis: Analysis, deciding: Deciding) -> str:
    if not all(law.is_optimal for law in deciding.actions):
        return ""
    if _without_theorem(analysis):
        return " It is the smallest gap, but every action is still optimal there, so a wrong choice would cost nothing."
    return " There every action is still optimal: Theorem 5.4 counts the gap, but a wrong choice would cost nothing."


def _episodes(analysis: Analysis) -> str | None:
    """What GORP must average to choose rightly."""
    m = analysis.effective_m
    if m is None:
        return None
    many = "A single episode" if m == 1 else f"An average over {numbers.steps(m)} episodes"
    bound = "is enough" if analysis.effective_kind == "exact" else "is certainly enough"
    each = "action" if analysis.effective_k == 1 else f"sequence of {analysis.effective_k} actions"
    return f"{many} of each {each} {bound} for GORP to choose rightly all the way, half of the time."


def _action(law: ActionLaw) -> str:
    shown = ", ".join(law.names[:_NAMES_SHOWN])
    more = len(law.names) - _NAMES_SHOWN
    return f"“{shown}”" + (f" (and {more} more)" if more > 0 else "")


def _chance(analysis: Analysis) -> str | None:
    chance = analysis.figures.get("optimal_return_probability")
    if isinstance(chance, Interval) or chance is None or chance <= 0:
        return None
    return f"A random episode is optimal with chance {numbers.significant(chance)}."


def witness(bound: str, analysis: Analysis) -> str:
    """What a bound hangs on: the figure, state or reason behind its number."""
    if bound in analysis.reasons:
        return analysis.reasons[bound]
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
    return explained(analysis) if explained else ""


def undecided(analysis: Analysis) -> str:
    """Why no state can be named that decides."""
    if not analysis.is_complete:
        return "No state decides: the table is unfinished."
    reason = _without_theorem(analysis)
    return (
        f"No state can be named: {reason}." if reason else "No state decides: no gap between actions limits this MDP."
    )


def _without_theorem(analysis: Analysis) -> str:
    """Why Theorem 5.4, whose gaps name the state that decides, says nothing; empty where it says something."""
    reasons = [entry.theorem_reason for entry in analysis.by_k]
    return reasons[0] or "" if reasons and all(reasons) else ""


def _worst_case(analysis: Analysis) -> str:
    return f"half of all {numbers.power(analysis.num_actions, analysis.horizon)} action sequences are tried"


def _ucb(analysis: Analysis) -> str:
    total = analysis.sample_complexity.get("ucb")
    if not isinstance(total, int):
        return "S A T"
    states = total // (analysis.num_actions * analysis.horizon)
    return f"{numbers.count(states)} states can be reached before the horizon, {analysis.num_actions} actions in each"


def _covering_length(analysis: Analysis) -> str:
    rarest = analysis.figures.get("min_state_action_occupancy")
    low, high = analysis.figures.get("covering_length_lower"), analysis.figures.get("covering_length")
    return (
        f"random play takes the rarest action with chance {figure(rarest)} at best; "
        f"between {figure(low)} and {figure(high)} episodes visit all"
    )


def _planning_window(analysis: Analysis) -> str:
    window = figure(analysis.figures.get("epw"))
    return f"planning {window} steps ahead finds the optimal action; later rewards are ignored"


def _effective_horizon(analysis: Analysis) -> str:
    chosen = f"k = {analysis.effective_k}, m = {numbers.steps(analysis.effective_m)}"
    method = next((entry.method for entry in analysis.by_k if entry.k == analysis.effective_k), None)
    if analysis.failures is None:
        return f"{chosen}, by {method}" if method else chosen
    where = f"state {analysis.failures.state} at time {analysis.failures.time}"
    return (
        f"{chosen}; GORP first errs most often in {where} (chance {numbers.significant(analysis.failures.probability)})"
    )


def _theorem(analysis: Analysis) -> str:
    where = analysis.theorem_state
    if where is None:
        return _without_theorem(analysis)
    gap = "" if where.gap is None else f", gap {numbers.significant(where.gap)}"
    return f"state {where.state} at time {where.time}{gap}"


def _goal(analysis: Analysis) -> str:
    chance = numbers.significant(analysis.goal_p)
    return f"from any pair that can reach the goal, random play does with chance {chance} or more"
