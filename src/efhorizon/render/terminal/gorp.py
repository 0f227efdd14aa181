"""GORP on a table and on a live environment."""

from __future__ import annotations

from collections.abc import Sequence

from efhorizon.agents.live.gorp import LiveRun
from efhorizon.agents.tabular.gorp_search import GorpSearch, Trial
from efhorizon.agents.tabular.runs import Runs
from efhorizon.gorp.success import Success
from efhorizon.gorp.ties import Ties
from efhorizon.mdp import TabularMDP
from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal, warned


def gorp_runs(
    name: str,
    mdp: TabularMDP,
    k: int,
    m: int | None,
    results: Runs,
    search: GorpSearch | None,
    ties: Ties = "uniform",
    exact: Success | str | None = None,
) -> Parts:
    """Runs with a given m, or what a search for the smallest one found; `m` is None where it found none.

    `exact` is the exact chance of success, or why it is not known.
    """
    yield (
        f"[bold]{literal(name)}[/bold]  {numbers.counted(mdp.num_states, 'state')}, "
        f"{numbers.counted(mdp.num_actions, 'action')}, horizon {mdp.horizon}"
    )
    share = f"{100 * results.success_rate:.1f}% of {results.num_runs:,} runs return an optimal policy"
    if m is None and search is not None:
        yield f"  GORP, k = {k}{_rule(ties)}: no m up to {search.max_m:,} succeeds half the time ({share})"
    else:
        yield f"  GORP, k = {k}, m = {m:,}{_rule(ties)}: {share}"
    if isinstance(exact, Success):
        yield f"  exactly: with probability {exact.middle:.4f}{_within(exact)}"
    elif exact is not None:
        yield f"  the exact probability is not known: {literal(exact)}"
    if 2 * results.num_optimal >= results.num_runs:
        yield f"  sample complexity {results.timesteps:,} timesteps"
    if search is not None:
        low, high = (numbers.count(end) for end in (search.m_low, search.m_high))
        where = low if low == high else f"between {low} and {high}"
        yield f"  the smallest such m is {where} (95% confidence)"
        if not search.is_monotone:
            yield f"  {warned('some smaller m did better than a larger one, so the smallest m is uncertain')}"
    mean, best = float(results.returns.mean()), results.optimal_return
    yield f"  mean return {numbers.significant(mean, 4)} of {numbers.significant(best, 6)}"


def live_runs(results: Sequence[LiveRun]) -> Parts:
    """One line for each seed."""
    first = results[0]
    yield (
        f"[bold]{literal(first.settings.id)}[/bold]  {numbers.counted(first.num_actions, 'action')}, "
        f"horizon {first.settings.horizon:,}, live"
    )
    yield f"  GORP, k = {first.settings.k}, m = {first.settings.m:,}{_rule(first.settings.rule)}"
    for run in results:
        yield (
            f"  seed {run.settings.seed}: return {numbers.significant(run.total_reward, 6)} in "
            f"{len(run.actions):,} steps; {run.timesteps:,} timesteps as the paper counts, "
            f"{run.steps_played:,} really played"
        )
    if not all(run.is_complete for run in results):
        yield f"  {warned('not finished: --max-steps ended it')}"


def _rule(ties: Ties) -> str:
    return "" if ties == "uniform" else f", {ties} ties"


def _within(exact: Success) -> str:
    return f", within {exact.error:.2g}" if exact.error > 5e-5 else ""


def trial_line(trial: Trial) -> str:
    """Where a search for m stands."""
    return f"searching for m: {trial.num_optimal} of {trial.runs} runs succeed with m = {trial.m:,}"


def live_line(run: LiveRun) -> str:
    """Where a live run stands."""
    return (
        f"{run.settings.id}: {len(run.actions):,} of {run.settings.horizon:,} actions, "
        f"return {run.total_reward:g}, {run.steps_played:,} steps"
    )
