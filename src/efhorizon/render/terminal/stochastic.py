"""Stochastic tables and their analyses in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal, table
from efhorizon.stochastic.analysis import StochasticAnalysis
from efhorizon.stochastic.mdp import StochasticMDP

_GAPS_SHOWN = 8


def stochastic_analysis(path: Path, result: StochasticAnalysis) -> Parts:
    """One screen: the answer, J_k and gaps, bounds."""
    mdp = result.mdp
    chance = f", the last action repeated with probability {mdp.sticky:g}" if mdp.sticky else ""
    yield (
        f"[bold]{literal(mdp.metadata.get('id') or path)}[/bold]  {numbers.counted(result.num_states, 'state')}, "
        f"{numbers.counted(mdp.num_actions, 'action')}, horizon {mdp.horizon}{chance}"
    )
    yield ""
    found = result.effective_horizon
    if found.value is None:
        yield f"  Stochastic effective horizon: not known ({found.reason})"
    else:
        least = "" if found.is_minimum else " at most"
        gap = "no gap: every policy is optimal" if found.gap is None else f"a gap of {found.gap:.3g}"
        yield f"  Stochastic effective horizon ={least} {found.value:.2f}, with k = {found.k} and {gap}"
    if result.min_k is not None:
        yield f"  Acting greedily on Q^{result.min_k} of random play is optimal (least k = {result.min_k})."
    yield f"  Planning {result.epw} steps ahead is enough (planning window {result.epw})."
    yield (
        f"  Returns: optimal {result.optimal_return:.6g}, random {result.random_return:.6g}, "
        f"worst {result.worst_return:.6g}"
    )
    yield ""
    rows = table("k", "greedy return", "optimal?", "least gap", "H_k")
    for each in result.as_json()["gaps"][:_GAPS_SHOWN]:
        rows.add_row(*_gap_row(each))
    yield rows
    yield ""
    yield "  Other bounds"
    order = result.ucb.order
    yield f"  UCB: {'none, ' + str(result.ucb.reason) if order is None else f'of the order of {order:.2g} timesteps'}"
    cover = result.covering_length
    yield (
        f"  Covering length: {cover.reason}"
        if cover.upper is None
        else f"  Covering length: {cover.lower:,.0f} to {cover.upper:,} episodes meet every pair; that is not learning"
    )
    yield "  [dim]GORP's horizon, S A T and the worst case are bounds for deterministic MDPs; they do not apply.[/dim]"


def _gap_row(each: dict[str, Any]) -> list[str]:
    gap = "undecided" if each["undecided"] else "none" if each["gap"] is None else f"{each['gap']:.3g}"
    horizon = "" if each["effective_horizon"] is None else f"{each['effective_horizon']:.2f}"
    solved = "exactly" if each["strictly_solvable"] else "within 1e-4" if each["solvable"] else "no"
    return [str(each["k"]), f"{each['greedy_return']:.6g}", solved, gap, horizon]


def described_stochastic(content: dict[str, Any], mdp: StochasticMDP, path: Path) -> Parts:
    """A table at a glance."""
    yield f"[bold]{literal(content['id'] or path)}[/bold]  a table with chance"
    yield (
        f"  {numbers.counted(mdp.num_states, 'state')}, {numbers.counted(mdp.num_actions, 'action')}, horizon "
        f"{mdp.horizon}; {mdp.num_outcomes:,} outcomes, at most {content['most_outcomes']} for one pair"
    )
    probabilities = ", ".join(content["probabilities"][:8]) + (", ..." if len(content["probabilities"]) > 8 else "")
    yield f"  probabilities: {probabilities}{'' if content['exact'] else ' (not all are fractions)'}"
    yield f"  rewards: {', '.join(f'{value:g}' for value in content['rewards'][:8])}"
    yield f"  {numbers.counted(len(mdp.initial_states), 'initial state')}"
    yield (
        f"  returns: optimal {content['optimal_return']:.6g}, random {content['random_return']:.6g}, "
        f"worst {content['worst_return']:.6g}"
    )


def live_sqirl(content: dict[str, Any]) -> Parts:
    """Runs of SQIRL in an environment."""
    chance = f", sticky actions {content['sticky']:g}" if content["sticky"] else ""
    how = "a network" if content["regression"] == "network" else "exact means"
    yield f"[bold]{literal(content['id'])}[/bold]  SQIRL with {how}, k = {content['k']}, m = {content['m']:,}{chance}"
    for run in content["runs"]:
        worth = f"return {run['value']:.6g}, computed exactly"
        if run["episodes"]:
            worth = f"return {run['value']:.4g} ({run['low']:.4g} to {run['high']:.4g}, {run['episodes']:,} episodes)"
        if run["optimal_return"] is None:
            verdict = "nobody knows whether that is optimal: give --known TABLE or --optimal R"
        else:
            words = {True: "within 1% of", False: "not within 1% of", None: "perhaps within 1% of"}
            verdict = f"{words[run['success']]} optimal ({run['optimal_return']:.6g})"
        yield f"  seed {run['seed']}: {run['timesteps']:,} timesteps, {worth}; {verdict}"
