"""An analysis: the answer, the reasons, the bounds side by side, the state of Theorem 5.4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.effective_horizon import HorizonAtK
from efhorizon.bounds.interval import Interval
from efhorizon.bounds.unfinished import AnytimeAnalysis
from efhorizon.bounds.why import ActionReturns
from efhorizon.planning.sweeps import Witness
from efhorizon.reasons.sentences import headline, percent, quoted, remainder, sentences
from efhorizon.render import forecasts, numbers
from efhorizon.render.numbers import significant, steps
from efhorizon.render.terminal.layout import Parts, bar, literal, table, warned
from efhorizon.render.tie_rules import RULES, horizon_and_m
from efhorizon.suites.seen_state import SeenState

_BAR_WIDTH = 20
_RETURNS_SHOWN = 4
_STEP_COLUMNS = ("effective_horizon", "ucb", "covering_length")
_COLUMNS = ("table", "states", "A", "T", "return", "min k", "EPW", "H", "m", "kind", "GORP steps", "UCB", "covering")


def one_analysis(
    path: Path,
    result: Analysis | AnytimeAnalysis,
    image: Path | None = None,
    seen: SeenState | None = None,
    scenes: Sequence[SeenState] = (),
) -> Parts:
    """One screen; `image` is where the picture of the first reason was saved, `scenes` what is seen in the states of
    the reasons, `seen` what is seen in the deciding state of Theorem 5.4."""
    if isinstance(result, AnytimeAnalysis):
        return _intervals(path, result)
    return _analysis(path, result, image, seen or SeenState(), scenes)


def several_analyses(results: Sequence[tuple[Path, Analysis | AnytimeAnalysis]]) -> Parts:
    """Several tables, one row each."""
    rows = table(*_COLUMNS)
    for path, result in results:
        cells = _interval_row(result) if isinstance(result, AnytimeAnalysis) else _row(result)
        rows.add_row(literal(result.id or str(path)), *cells)
    yield rows


def _analysis(path: Path, result: Analysis, image: Path | None, seen: SeenState, scenes: Sequence[SeenState]) -> Parts:
    discount = f", discount {result.gamma:g}" if result.gamma != 1 else ""
    yield (
        f"[bold]{literal(result.id or str(path))}[/bold]  {numbers.counted(result.num_states, 'state')}, "
        f"{numbers.counted(result.num_actions, 'action')}, horizon {result.horizon}{discount}"
    )
    yield ""
    yield from (f"  {line}" for line in _answer(result))
    yield ""
    yield from _why(result, image, scenes)
    yield (
        f"  returns      optimal {significant(result.optimal_return, 6)}, "
        f"exploring {significant(result.exploration_return, 4)}, worst {significant(result.worst_return, 6)}; "
        f"an exploring episode is optimal with probability {significant(result.optimal_return_probability)}"
    )
    yield from (f"  {f'GORP, k = {entry.k}':12} {_at_k(entry)}" for entry in result.effective_horizon.by_k)
    yield f"  ties         {_ties(result)}"
    yield ""
    yield from _bounds(result)
    yield from _measures(result)
    if result.deciding is not None:
        yield ""
        yield from _deciding(result.deciding, seen)


def _why(result: Analysis, image: Path | None, scenes: Sequence[SeenState]) -> Parts:
    """Where GORP loses its chance, at most three states."""
    why = result.why
    if why is None or result.optimal_return == result.worst_return:
        return
    yield f"  [bold]Why[/bold]: {literal(headline(why))}"
    for number, (reason, paragraph) in enumerate(zip(why, sentences(why), strict=True)):
        saved = f" [dim]picture saved as {literal(image)}[/dim]" if image and number == 0 else ""
        yield f"    {number + 1}. {literal(paragraph)}{saved}"
        if number < len(scenes):
            yield from _scene(scenes[number], "         ")
        for action in filter(None, (reason.right, reason.wrong)):
            role = "right" if action is reason.right else "wrong"
            yield f"         {role}: {literal(quoted(action.name))} {_returns(action)}"
    if remainder(why):
        yield f"    {literal(remainder(why))}"
    yield ""


def _scene(seen: SeenState, indent: str) -> Parts:
    if seen.observation is not None:
        yield f"{indent}observation {literal(seen.observation)}"
    if seen.drawing is not None:
        yield from (f"{indent}{literal(line)}" for line in seen.drawing.splitlines())


def _returns(action: ActionReturns) -> str:
    """The mean return after an action, and the commonest returns with their chances."""
    mean = f"returns {significant(action.q, 4)} on average"
    if not action.returns:
        return mean
    ordered = sorted(zip(action.probabilities, action.returns, strict=True), key=lambda pair: -pair[0])
    shown = ", ".join(f"{significant(value, 4)} ({percent(chance)})" for chance, value in ordered[:_RETURNS_SHOWN])
    return f"{mean}: {shown}{', ...' if len(ordered) > _RETURNS_SHOWN else ''}"


def _answer(result: Analysis) -> Parts:
    """Will PPO or DQN learn this, and how long will it take? Then what theory says, which is about GORP."""
    if result.optimal_return == result.worst_return:
        yield "[bold]Nothing to learn[/bold]: every action sequence earns the same."
        return
    found = result.forecast
    for each in found.values():
        words = forecasts.in_words(each)
        yield f"[bold]{words.verdict}[/bold]: {words.detail}."
    caveats = [*forecasts.notes(found), f"Forecast by {forecasts.model_of(found)}, from runs on other MDPs."]
    yield f"[dim]{literal(' '.join(caveats))}[/dim]"
    yield ""
    yield from _theory(result)


def _theory(result: Analysis) -> Parts:
    horizon, min_k = result.effective_horizon, result.solvability.min_k
    if horizon.value is None or horizon.sample_complexity is None:
        yield f"[bold]Effective horizon unknown[/bold]: {literal(horizon.reason)}"
    else:
        sign = "=" if horizon.kind == "exact" else "at most"
        yield (
            f"[bold]Effective horizon {sign} {horizon.value:.2f}[/bold] of {result.horizon}: GORP, a very "
            f"simple algorithm, finds an optimal policy in {steps(horizon.sample_complexity)} timesteps."
        )
    if not result.is_finished:
        yield f"{warned('Not finished')}: {literal(horizon.reason)}.{_what_is_ruled_out(result)}"
    if min_k == 1:
        yield "Acting greedily on the values of the exploration policy is optimal: the rewards show the way."
    elif min_k is not None:
        yield f"It takes k = {min_k} steps of planning before acting greedily is optimal."


def _what_is_ruled_out(result: Analysis) -> str:
    """What an unfinished search for the effective horizon has shown so far."""
    horizon = result.effective_horizon
    rounded_down = math.floor(100 * horizon.at_least) / 100
    return f" It is at least {numbers.decimal(rounded_down)}." if rounded_down > 1 else ""


def _at_k(entry: HorizonAtK) -> str:
    bound = "no upper bound" if entry.upper_m is None else f"m ≤ {steps(entry.upper_m)}"
    theorem = "does not apply" if entry.theorem_m is None else f"gives {steps(entry.theorem_m)}"
    why = f" ({literal(entry.theorem_reason)})" if entry.theorem_reason else ""
    exact = f"m = {steps(entry.exact_m)} exactly, " if entry.exact_m is not None else ""
    if not entry.is_finished and (entry.least_possible_m or 0) > 1:
        exact = f"m ≥ {steps(entry.least_possible_m)} so far, "
    return f"{exact}{bound}; Theorem 5.4 {theorem}{why}"


def _ties(result: Analysis) -> str:
    """With which rule for ties the exact figures hold, and what they are with the others."""
    if not result.by_ties:
        more = " (--ties all shows other rules)" if result.ties == "uniform" else ""
        return f"{RULES[result.ties]}, for the exact figures{more}"
    found = (
        f"{RULES[rule]} {horizon_and_m(each.value, each.k, each.m, each.kind)}" for rule, each in result.by_ties.items()
    )
    return "; ".join(found)


def _bounds(result: Analysis) -> Parts:
    yield "  bounds       timesteps to an optimal policy with probability 1/2 (bars: powers of ten)"
    known = [bound.sample_complexity for bound in result.bounds.values() if bound.sample_complexity]
    longest = max(map(math.log10, known), default=1.0) or 1.0
    width = max(len(result.titles[name]) for name in result.bounds)
    for name, bound in sorted(result.bounds.items(), key=lambda item: _order(item[1].sample_complexity)):
        needed = bound.sample_complexity
        title = f"    {literal(f'{result.titles[name]:{width}}')} {steps(needed):>12}"
        if needed is None:
            yield f"{title} [dim]{literal(bound.reason or '')}[/dim]"
        else:
            yield f"{title} {bar(math.log10(max(1, needed)) / longest, _BAR_WIDTH)}"


def _measures(result: Analysis) -> Parts:
    """Other measures of hardness: an order, no timesteps."""
    if not result.measures:
        return
    yield "  measures     by others, which order environments and promise no timesteps (estimates with their interval)"
    width = max(len(result.titles[name]) for name in result.measures)
    for name, measure in result.measures.items():
        title = f"    {literal(f'{result.titles[name]:{width}}')}"
        if measure.value is None:
            yield f"{title} {numbers.MISSING:>9} [dim]{literal(measure.reason or '')}[/dim]"
            continue
        between = "" if measure.low is None else f" {significant(measure.low, 3)} to {significant(measure.high, 3)},"
        yield f"{title} {significant(measure.value, 3):>9}{between} [dim]{measure.harder} is harder[/dim]"


def _deciding(witness: Witness, seen: SeenState) -> Parts:
    yield (
        f"  deciding state of Theorem 5.4: {witness.state} at time {witness.time} "
        f"(the paper counts from 1: {witness.time + 1})"
    )
    if seen.observation is not None:
        yield f"    observation                  {literal(seen.observation)}"
    if seen.drawing is not None:
        yield from (f"      {literal(line)}" for line in seen.drawing.splitlines())
    yield f"    Q of the exploration policy  {_values(witness.q_values, seen.actions)}"
    yield f"    optimal Q                    {_values(witness.optimal_q_values, seen.actions)}"
    if witness.margin is not None:
        yield f"    margin over a mistake        {significant(witness.margin, 4)}"
    elif witness.gap is not None:
        yield f"    gap                          {significant(witness.gap, 4)}"


def _intervals(path: Path, result: AnytimeAnalysis) -> Parts:
    """What is certain about an unfinished table."""
    unexplored = warned(f"{result.num_unexplored:,} not")
    yield (
        f"[bold]{literal(result.id or str(path))}[/bold]  {result.num_explored:,} states explored, {unexplored}, "
        f"{numbers.counted(result.num_actions, 'action')}, horizon {result.horizon}"
    )
    low, high = result.reward_bounds
    yield f"  intervals that hold for all unexplored states with rewards from {low:g} to {high:g}"
    for name, interval in result.intervals.items():
        yield f"    {name.replace('_', ' '):34} {_interval(interval)}"
    yield "  timesteps to an optimal policy with probability 1/2"
    for name, value in result.sample_complexity.items():
        yield f"    {name.replace('_', ' '):34} {_steps_or_interval(value)}"


def _row(result: Analysis) -> list[str]:
    horizon = result.effective_horizon
    return [
        numbers.count(result.num_states),
        str(result.num_actions),
        str(result.horizon),
        significant(result.optimal_return, 6),
        numbers.count(result.solvability.min_k),
        numbers.count(result.effective_planning_window.window),
        numbers.decimal(horizon.value),
        steps(horizon.m),
        horizon.kind or numbers.MISSING,
        *(steps(result.bounds[name].sample_complexity) for name in _STEP_COLUMNS),
    ]


def _interval_row(result: AnytimeAnalysis) -> list[str]:
    shown = {name: _interval(interval) for name, interval in result.intervals.items()}
    return [
        shown["num_states"],
        str(result.num_actions),
        str(result.horizon),
        *(shown[name] for name in ("optimal_return", "min_k", "epw", "effective_horizon")),
        numbers.MISSING,
        "interval",
        *(_steps_or_interval(result.sample_complexity[name]) for name in _STEP_COLUMNS),
    ]


def _steps_or_interval(value: int | Interval | None) -> str:
    return _interval(value) if isinstance(value, Interval) else steps(value)


def _interval(interval: Interval) -> str:
    if interval.high is None:
        return f"at least {_figure(interval.low)}"
    return f"{_figure(interval.low)} to {_figure(interval.high)}"


def _figure(value: float) -> str:
    return steps(int(value)) if value >= 0 and value == int(value) else significant(value, 4)


def _values(values: tuple[float, ...], actions: tuple[str, ...]) -> str:
    """Values with the names of their actions, where these have any."""
    has_names = len(actions) == len(values) and any(name != str(number) for number, name in enumerate(actions))
    names = [f"{literal(name)} " for name in actions] if has_names else [""] * len(values)
    return "  ".join(name + significant(value, 4) for name, value in zip(names, values, strict=True))


def _order(number: int | None) -> float:
    return math.inf if number is None else math.log(max(1, number))
