"""`efhorizon analyze`: how hard a table is for RL, and why."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from efhorizon.bounds.analysis import Analysis, analyze
from efhorizon.bounds.interval import Interval
from efhorizon.bounds.unfinished import AnytimeAnalysis
from efhorizon.cli import EXIT_USAGE, messages, print_json
from efhorizon.errors import EfhorizonError
from efhorizon.io.png import write_png
from efhorizon.io.tables import load, table_path
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import load_policy
from efhorizon.suites.drawing import picture

DEEP_RL_STEPS = 5_000_000  # what the paper gave PPO and DQN (section 6)
_BAR_WIDTH = 20
_FILE_WIDTH = 200  # of a table that no terminal has to show
_STEP_COLUMNS = ("effective_horizon", "ucb", "covering_length")


def run(options: argparse.Namespace) -> int:
    if options.max_k < 1:
        messages.print(f"efhorizon: --max-k must be at least 1, got {options.max_k}", style="red", markup=False)
        return EXIT_USAGE
    policy = None if options.exploration_policy is None else load_policy(options.exploration_policy)
    rows = []
    for given in options.paths:
        path = table_path(given)
        mdp = load(path, horizon=options.horizon)
        with messages.status(f"analyzing {path}"):
            result = analyze(
                mdp,
                gamma=options.gamma,
                exploration_policy=policy,
                max_k=options.max_k,
                reward_bounds=None if options.reward_bounds is None else tuple(options.reward_bounds),
            )
        image = _saved_picture(mdp, result, path, options.image) if len(options.paths) == 1 else None
        rows.append((path, mdp, result, image))
    if options.json:
        contents = [_content(path, result, image) for path, _, result, image in rows]
        print_json(contents[0] if len(contents) == 1 else contents)
    elif len(rows) > 1:
        print_table([(path, result) for path, _, result, _ in rows])
    elif isinstance(rows[0][2], AnytimeAnalysis):
        print_intervals(rows[0][0], rows[0][2])
    else:
        path, mdp, result, image = rows[0]
        assert isinstance(result, Analysis)
        print_analysis(path, mdp, result, image)
    return 0


def print_analysis(path: Path, mdp: TabularMDP, result: Analysis, image: Path | None) -> None:
    """One screen: the answer, the reasons, the bounds side by side, the state that decides."""
    console = Console(highlight=False)
    console.print(
        f"[bold]{result.id or path}[/bold]  {mdp.num_states:,} states, {mdp.num_actions} actions, "
        f"horizon {mdp.horizon}" + (f", discount {result.gamma:g}" if result.gamma != 1 else "")
    )
    console.print()
    for line in _verdict(result):
        console.print(f"  {line}", soft_wrap=True)
    console.print()
    console.print(
        f"  returns      optimal {result.optimal_return:g}, exploring {result.exploration_return:.4g}, "
        f"worst {result.worst_return:g}; an exploring episode is optimal with chance "
        f"{result.optimal_return_probability:.3g}",
        soft_wrap=True,
    )
    for entry in result.effective_horizon.by_k:
        console.print(f"  {f'GORP, k = {entry.k}':12} {_at_k(entry)}", soft_wrap=True)
    console.print()
    _print_bounds(console, result)
    witness = result.deciding
    if witness is not None:
        console.print()
        console.print(
            f"  deciding state: {witness.state} at time {witness.time} (the paper counts from 1: {witness.time + 1})"
            + (f", picture saved as {image}" if image else ""),
            soft_wrap=True,
        )
        console.print(f"    Q of the exploration policy  {_numbers(witness.q_values)}", soft_wrap=True)
        console.print(f"    optimal Q                    {_numbers(witness.optimal_q_values)}", soft_wrap=True)
        if witness.margin is not None:
            console.print(f"    margin over a mistake        {witness.margin:.4g}")
        elif witness.gap is not None:
            console.print(f"    gap                          {witness.gap:.4g}")
    fails = result.most_failures
    if fails is not None:
        console.print(
            f"  GORP fails most often in state {fails.state} at time {fails.time} "
            f"(chance {fails.failure_probability:.3g})",
            soft_wrap=True,
        )


def print_intervals(path: Path, result: AnytimeAnalysis) -> None:
    """What is certain about an unfinished table."""
    console = Console(highlight=False)
    console.print(
        f"[bold]{result.id or path}[/bold]  {result.num_explored:,} states explored, "
        f"[yellow]{result.num_unexplored:,} not[/yellow], {result.num_actions} actions, horizon {result.horizon}",
        soft_wrap=True,
    )
    low, high = result.reward_bounds
    console.print(
        f"  intervals, whatever the unexplored states do with rewards from {low:g} to {high:g}", soft_wrap=True
    )
    for name, interval in result.intervals.items():
        console.print(f"    {name.replace('_', ' '):34} {_interval(interval)}", soft_wrap=True)
    console.print("  steps to an optimal policy with chance 1/2")
    for name, value in result.sample_complexity.items():
        shown = _interval(value) if isinstance(value, Interval) else "-" if value is None else _steps(value)
        console.print(f"    {name.replace('_', ' '):34} {shown}", soft_wrap=True)


def print_table(rows: list[tuple[Path, Analysis | AnytimeAnalysis]]) -> None:
    """Several tables, one row each."""
    columns = ("table", "states", "A", "T", "return", "min k", "EPW", "H", "m", "kind", "GORP steps", "UCB", "covering")
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for path, result in rows:
        if isinstance(result, AnytimeAnalysis):
            table.add_row(*_interval_row(path, result))
            continue
        horizon = result.effective_horizon
        table.add_row(
            result.id or str(path),
            f"{result.num_states:,}",
            str(result.num_actions),
            str(result.horizon),
            f"{result.optimal_return:g}",
            _optional(result.solvability.min_k),
            _optional(result.effective_planning_window.window),
            "-" if horizon.value is None else f"{horizon.value:.2f}",
            _steps(horizon.m),
            horizon.kind or "-",
            *(_steps(result.bounds[name].sample_complexity) for name in _STEP_COLUMNS),
        )
    is_terminal = Console().is_terminal
    Console(highlight=False, width=None if is_terminal else _FILE_WIDTH).print(table)


def _interval_row(path: Path, result: AnytimeAnalysis) -> list[str]:
    shown = {name: _interval(interval) for name, interval in result.intervals.items()}
    steps = [result.sample_complexity[name] for name in _STEP_COLUMNS]
    return [
        result.id or str(path),
        shown["num_states"],
        str(result.num_actions),
        str(result.horizon),
        *(shown[name] for name in ("optimal_return", "min_k", "epw", "effective_horizon")),
        "-",
        "interval",
        *(_interval(value) if isinstance(value, Interval) else _steps(value) for value in steps),
    ]


def _verdict(result: Analysis) -> list[str]:
    horizon, min_k = result.effective_horizon, result.solvability.min_k
    if result.optimal_return == result.worst_return:
        return ["[bold]Nothing to learn[/bold]: every action sequence has the same return."]
    lines = []
    if horizon.value is None or horizon.sample_complexity is None:
        lines.append(f"[bold]Effective horizon unknown[/bold]: {horizon.reason}")
    else:
        sign = "=" if horizon.kind == "exact" else "at most"
        ease = "within" if horizon.sample_complexity <= DEEP_RL_STEPS else "beyond"
        lines.append(
            f"[bold]Effective horizon {sign} {horizon.value:.2f}[/bold] of {result.horizon}: GORP finds an optimal "
            f"policy in {_steps(horizon.sample_complexity)} steps, {ease} the {_steps(DEEP_RL_STEPS)} that the paper "
            "gave deep RL."
        )
    if min_k == 1:
        lines.append("Acting greedily on the exploration policy's Q-function is optimal: rewards point the way.")
    elif min_k is not None:
        lines.append(f"It takes k = {min_k} steps of planning before acting greedily is optimal.")
    return lines


def _at_k(entry: Any) -> str:
    bound = "no upper bound" if entry.upper_m is None else f"m <= {_steps(entry.upper_m)}"
    theorem = "does not apply" if entry.theorem_m is None else f"gives {_steps(entry.theorem_m)}"
    why = f" ({entry.theorem_reason})" if entry.theorem_reason else ""
    exact = f"m = {_steps(entry.exact_m)} exactly, " if entry.exact_m is not None else ""
    return f"{exact}{bound}; Theorem 5.4 {theorem}{why}"


def _print_bounds(console: Console, result: Analysis) -> None:
    console.print("  bounds       steps to an optimal policy with chance 1/2 (bars: powers of ten)", soft_wrap=True)
    known = [bound.sample_complexity for bound in result.bounds.values() if bound.sample_complexity]
    longest = max((math.log10(steps) for steps in known), default=1.0) or 1.0
    width = max(len(title) for title in result.titles.values())
    for name, bound in sorted(result.bounds.items(), key=lambda item: _order(item[1].sample_complexity)):
        title = f"    {result.titles[name]:{width}}"
        if bound.sample_complexity is None:
            console.print(f"{title} {'-':>12} [dim]{bound.reason or ''}[/dim]", soft_wrap=True)
        else:
            length = max(1, round(_BAR_WIDTH * math.log10(max(1, bound.sample_complexity)) / longest))
            console.print(f"{title} {_steps(bound.sample_complexity):>12} [cyan]{'█' * length}[/cyan]")


def _content(path: Path, result: Analysis | AnytimeAnalysis, image: Path | None) -> dict[str, Any]:
    return {**result.as_json(), "path": str(path), "image": str(image) if image else None}


def _saved_picture(mdp: TabularMDP, result: Analysis | AnytimeAnalysis, path: Path, image: Path | None) -> Path | None:
    if mdp.screens is None or isinstance(result, AnytimeAnalysis) or result.deciding is None:
        return None
    try:
        screen = picture(mdp, result.deciding.state)
    except EfhorizonError:
        if image is not None:
            raise
        return None  # an observation that is no picture, or a suite that is not installed
    name = mdp.metadata.get("id") or (path.parent.name if path.suffix == ".npz" else path.stem)
    return write_png(image or Path(f"{name}-deciding.png"), screen)


def _steps(number: float | None) -> str:
    """An integer for people: exact while it is short, else its power of ten."""
    if number is None:
        return "-"
    number = int(number)
    if number < 10**9:
        return f"{number:,}"
    exponent = math.floor(math.log10(number))
    return f"{number / 10**exponent:.1f}e{exponent}" if exponent < 300 else f"1e{exponent}"


def _interval(interval: Interval) -> str:
    low, high = (
        None if end is None else _steps(end) if end == int(end) else f"{end:.4g}" for end in interval.as_json()
    )
    return f"{low} .. {high}" if high is not None else f"at least {low}"


def _numbers(values: tuple[float, ...]) -> str:
    return "  ".join(f"{value:.4g}" for value in values)


def _optional(number: int | None) -> str:
    return "-" if number is None else str(number)


def _order(number: int | None) -> float:
    return math.inf if number is None else math.log(max(1, number))
