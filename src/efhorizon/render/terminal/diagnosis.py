"""A diagnosis for the terminal: the answer first, then what it rests on."""

from __future__ import annotations

import math

from efhorizon.diagnose.diagnosis import STEPS, Diagnosis, ForK
from efhorizon.diagnose.least_episodes import Interval
from efhorizon.diagnose.samples import Between
from efhorizon.render import forecasts, numbers
from efhorizon.render.terminal.layout import Parts, heading, literal, table

_CLOSE_SHOWN = 5
_UNKNOWN = "-"
_CHANCE = {"none": "deterministic", "start": "random start", "steps": "random steps"}


def diagnosis_parts(found: Diagnosis) -> Parts:
    """Everything, in the order of importance."""
    yield (
        f"[bold]{literal(found.id)}[/bold]  {numbers.counted(found.num_actions, 'action')}, horizon {found.horizon}, "
        f"{_CHANCE[found.chance]}; {found.steps_played:,} steps played"
    )
    yield f"  {_verdict(found)}"
    yield from _by_k(found)
    yield from _random_play(found)
    yield from _path(found)
    yield from heading("What to expect")
    for each in found.forecast.values():
        yield f"  {literal(forecasts.in_words(each))}"
    yield from heading("What to try")
    for advice in found.what_to_try:
        yield f"  {literal(advice)}"
    yield from heading("What this assumes")
    for sentence in found.assumptions:
        yield f"  {literal(sentence)}"


def _verdict(found: Diagnosis) -> str:
    best = found.best_k
    if best is None or best.effective_horizon is None or best.sample_complexity is None:
        return "Effective horizon: not known; no run of GORP reached the best return within this budget"
    return (
        f"Effective horizon = {_spread(best.effective_horizon)} of {found.horizon} (k = {best.k}): GORP needs "
        f"{_spread(best.sample_complexity)} timesteps"
    )


def _by_k(found: Diagnosis) -> Parts:
    yield from heading("Episodes per action sequence (90% intervals)")
    rows = table("k", "m", "H_k", "greedy return", "runs", "", left=0)
    for each in found.by_k.values():
        returned = _UNKNOWN if each.greedy_return is None else numbers.significant(each.greedy_return.estimate)
        note = literal(each.reason or ("rough: from the steps seen" if each.m_from == STEPS else ""))
        rows.add_row(str(each.k), _spread(each.m), _spread(each.effective_horizon), returned, str(each.num_runs), note)
    yield rows
    given = "as given" if found.best_return_is_given else "the best found"
    yield f"  best return {numbers.significant(found.best_return)} ({given})"


def _random_play(found: Diagnosis) -> Parts:
    play = found.random_play
    yield from heading(f"Random play, {numbers.counted(play.episodes, 'episode')}")
    worst, best = numbers.significant(play.worst_return), numbers.significant(play.best_return)
    yield f"  mean return {_between(play.mean_return)}; from {worst} to {best}"
    share = numbers.percent(play.rewarded.estimate)
    yield f"  mean length {_between(play.mean_length)}; {share} of the episodes have any reward{_first(found)}"


def _first(found: Diagnosis) -> str:
    first = found.random_play.median_first_reward
    return "" if first is None else f", the first at step {first:g} (median)"


def _path(found: Diagnosis) -> Parts:
    """The closest choices on the path."""
    from efhorizon.diagnose.film import shown_path

    shown = shown_path(found)
    if shown is None:
        return
    yield from heading(f"Greedy play on Q^{shown.k}: {numbers.counted(len(shown.decisions), 'step')}{_signal(shown)}")
    rows = table("step", "action", "gap to the next best", "m that decides it", left=1)
    with_signal = [
        (step, each) for step, each in enumerate(shown.decisions) if each.has_signal and each.gap.estimate > 0
    ]
    for step, each in sorted(with_signal, key=lambda pair: -pair[1].m.estimate)[:_CLOSE_SHOWN]:
        rows.add_row(str(step), literal(action_name(found, each.action)), _between(each.gap), _spread(each.m))
    if with_signal:
        yield rows


def _signal(shown: ForK) -> str:
    if not any(each.has_signal for each in shown.decisions):
        return "; random play gives no signal at all"
    if shown.no_signal_from is None:
        return ""
    return f"; from step {shown.no_signal_from} on random play gives no signal"


def action_name(found: Diagnosis, action: int) -> str:
    return found.action_names[action] if action < len(found.action_names) else str(action)


def _spread(each: Interval | None) -> str:
    """An estimate with its interval: 5 (4 to 8)."""
    if each is None:
        return _UNKNOWN
    low, middle, high = (_short(value) for value in (each.low, each.estimate, each.high))
    if not math.isfinite(each.high):
        return f"at least {low}" if not math.isfinite(each.estimate) else f"{middle} (at least {low})"
    return middle if low == high else f"{middle} ({low} to {high})"


def _between(each: Between) -> str:
    low, middle, high = (numbers.significant(value) for value in (each.low, each.estimate, each.high))
    return f"{middle} ({low} to {high})"


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "?"
    return f"{value:,.0f}" if value == int(value) else numbers.decimal(value)
