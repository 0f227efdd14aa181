"""Changes that were tried on a table: what to try first, and all of them in a table, best first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, heading, literal, table, warned
from efhorizon.what_if.figures import Figures
from efhorizon.what_if.trial import Trial, WhatIf

_HEADINGS = {
    "helps": "These help",
    "only on paper": "These help on paper only",
    "makes no difference": "These make no difference",
    "hurts": "These make it harder",
    "cannot be optimal": "With these, optimal behaviour is impossible",
    "unknown": "These could not be compared",
}
_SHORT_NEEDS = {"nothing": "nothing", "a function of the state": "the state", "the graph": "the graph"}


def what_if_screen(result: WhatIf) -> Parts:
    """One screen: the answer first, then the tables, no wider than 100 columns."""
    before = result.before
    yield f"[bold]{literal(result.id or 'table')}[/bold]  {len(result.trials)} of {result.num_planned} changes tried"
    yield ""
    yield f"  {_answer(result)}"
    if before.timesteps is None:
        yield f"  {warned('Nothing to compare with')}: {literal(before.reason or 'the effective horizon is unknown')}."
    yield f"  As it is: H {_horizon(before)}{_forecast(before)}."
    for verdict, title in _HEADINGS.items():
        trials = [trial for trial in result.trials if trial.verdict == verdict]
        if trials:
            yield from heading(title)
            yield (
                _with_reasons(trials)
                if verdict in ("only on paper", "cannot be optimal", "unknown")
                else _with_forecasts(trials)
            )
    yield ""
    yield (
        "[dim]  H: effective horizon (≤: an upper bound). steps: of the environment, that GORP needs; "
        f"{numbers.TIMES}: of those before.[/dim]"
    )
    yield (
        "[dim]  PPO, DQN: medians of the forecasts. optimal: are the optimal policies of the changed MDP optimal?[/dim]"
    )


def _answer(result: WhatIf) -> str:
    best, before = result.best, result.before
    if best is None or best.after is None:
        return (
            "[bold]Nothing to try first[/bold]: no change helps GORP, PPO and DQN alike without knowing the solution "
            "or changing what is optimal."
        )
    after = best.after
    return (
        f"[bold]Try first: {literal(best.title)}.[/bold] GORP needs {_timesteps(after)} timesteps instead of "
        f"{_timesteps(before)}{_medians(before, after)}. Optimal behaviour stays optimal. "
        f"You need {'no knowledge of the solution' if best.needs == 'nothing' else literal(best.needs)} for it."
    )


def _timesteps(figures: Figures) -> str:
    return ("at most " if figures.kind == "upper" else "") + numbers.steps(figures.timesteps)


def _medians(before: Figures, after: Figures) -> str:
    parts = [
        f"{name.upper()} from {numbers.short_steps(before.forecasts[name].timesteps.median)} to "
        f"{numbers.short_steps(found.timesteps.median)}"
        for name, found in after.forecasts.items()
        if name in before.forecasts
    ]
    return f"; forecast: {', '.join(parts)}" if parts else ""


def _with_forecasts(trials: Sequence[Trial]) -> Table:
    rows = table("change", "H", "steps", numbers.TIMES, "PPO", "DQN", "optimal", "takes")
    for trial in trials:
        rows.add_row(*_figures(trial), _median(trial, "ppo"), _median(trial, "dqn"), _optimal(trial), _takes(trial))
    return rows


def _with_reasons(trials: Sequence[Trial]) -> Table:
    rows = table("change", "H", "steps", numbers.TIMES, "why")
    rows.columns[-1].justify = "left"
    for trial in trials:
        why = "; ".join(trial.caveats) or trial.reason or ""
        rows.add_row(*_figures(trial), literal(_shortened(why)))
    return rows


def _figures(trial: Trial) -> list[str]:
    after = trial.after
    title = literal(trial.title)
    if after is None:
        return [title, numbers.MISSING, numbers.MISSING, numbers.MISSING]
    return [title, _horizon(after), numbers.steps(after.timesteps), numbers.significant(trial.factor, 2)]


def _horizon(figures: Figures) -> str:
    sign = "≤ " if figures.kind == "upper" else ""
    return sign + numbers.decimal(figures.effective_horizon)


def _median(trial: Trial, algorithm: str) -> str:
    found = None if trial.after is None else trial.after.forecasts.get(algorithm)
    return numbers.MISSING if found is None else numbers.short_steps(found.timesteps.median)


def _forecast(figures: Figures) -> str:
    parts = [
        f"{name.upper()} {numbers.short_steps(found.timesteps.median)} "
        f"({numbers.short_steps(found.timesteps.low)} to {numbers.short_steps(found.timesteps.high)})"
        for name, found in figures.forecasts.items()
    ]
    return f"; forecast with 80% intervals: {', '.join(parts)}" if parts else ""


def _optimal(trial: Trial) -> str:
    if trial.kept is None:
        return numbers.MISSING
    return "yes" if trial.kept.every else "partly" if trial.kept.some else "no"


def _takes(trial: Trial) -> str:
    return _SHORT_NEEDS.get(trial.needs, "the solution")


def _shortened(text: str, longest: int = 44) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."
