"""`efhorizon build`: one table, with progress, budgets and resumption."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn

from efhorizon.build.explore import Budget, Progress
from efhorizon.build.outlook import progress_line
from efhorizon.build.pipeline import BuildResult, Options, build
from efhorizon.build.target import Target, catalogue_target, gymnasium_target
from efhorizon.cli import EXIT_BUDGET, EXIT_USAGE, messages, print_json
from efhorizon.errors import EfhorizonError

_SECONDS_A_LINE = 30.0


def run(options: argparse.Namespace) -> int:
    if (options.name is None) == (options.env is None):
        messages.print("efhorizon: give either a NAME or --env ID", style="red")
        return EXIT_USAGE
    target = _target(options)
    result = _build_with_progress(
        target,
        Options(
            out=options.out,
            num_workers=_num_workers(options.workers),
            rule=options.merge,
            ignore_screens=options.ignore_screens,
            budget=Budget(options.max_states, options.max_minutes, options.max_memory),
            if_stopped=options.if_stopped,
            verify_episodes=options.episodes,
        ),
    )
    if options.json:
        print_json(as_json(result))
    else:
        print_result(result)
    return 0 if result.outcome.stopped_by is None else EXIT_BUDGET


def _build_with_progress(target: Target, options: Options) -> BuildResult:
    """Build, with one live line on stderr."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=messages, transient=True, disable=not messages.is_terminal) as bar:
        task = bar.add_task(f"{target.id}: starting")
        log = _Log()

        def on_progress(progress: Progress) -> None:
            line = progress_line(target, progress)
            bar.update(task, description=line)
            log.progress(line)

        def on_message(message: str) -> None:
            bar.update(task, description=message)
            log.message(message)

        return build(target, options, on_progress=on_progress, on_message=on_message)


class _Log:
    """Where stderr is no terminal: plain lines, one for each message and one a while for progress."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def message(self, text: str) -> None:
        if not messages.is_terminal:
            messages.print(text, markup=False, soft_wrap=True)

    def progress(self, text: str) -> None:
        if time.monotonic() - self._last > _SECONDS_A_LINE:
            self._last = time.monotonic()
            self.message(text)


def as_json(result: BuildResult) -> dict[str, Any]:
    """What programs get to know of a build."""
    progress, mdp = result.outcome.progress, result.mdp
    return {
        "id": result.id,
        "complete": result.outcome.stopped_by is None,
        "stopped_by": result.outcome.stopped_by,
        "complete_horizon": result.complete_horizon,
        "num_states_raw": mdp.metadata["num_states_raw"] if mdp else progress.num_states,
        "num_states": mdp.num_states if mdp else None,
        "num_actions": mdp.num_actions if mdp else None,
        "horizon": result.horizon,
        "num_screens": mdp.num_screens if mdp else None,
        "num_pairs_emulated": progress.num_pairs,
        "pairs_per_second": round(progress.pairs_per_second, 1),
        "seconds": round(result.seconds, 3),
        "path": str(result.path) if result.path else None,
        "degenerate": mdp.metadata["degenerate"] if mdp else None,
        "verified": bool(mdp.metadata["verification"]) if mdp else None,
        "fingerprint": mdp.fingerprint() if mdp else None,
    }


def print_result(result: BuildResult) -> None:
    """What people get to know of a build."""
    console = Console(highlight=False)
    progress, mdp = result.outcome.progress, result.mdp
    if result.outcome.stopped_by is not None:
        console.print(
            f"stopped by {result.outcome.stopped_by}: {progress.num_states:,} states found, "
            f"{progress.num_expanded:,} expanded; complete up to horizon {result.complete_horizon}. "
            "The same command goes on from here."
            + ("" if mdp else f" (--horizon {result.complete_horizon} or --keep-partial writes the table so far.)"),
            soft_wrap=True,
        )
    if mdp is None:
        return
    console.print(f"[bold]{result.id}[/bold]  horizon {mdp.horizon}, {mdp.num_actions} actions")
    console.print(
        f"  states     {mdp.num_states:,} (from {mdp.metadata['num_states_raw']:,} raw), {mdp.num_screens:,} screens"
    )
    if mdp.unexplored is not None:
        console.print(f"  unfinished [yellow]{mdp.unexplored.sum():,} states were found but not explored[/yellow]")
    else:
        _print_returns(console, *mdp.metadata["returns"])
    console.print(f"  work       {_work_line(result)}")
    console.print(f"  verified   {verification_line(mdp.metadata['verification'])}")
    console.print(f"  stored in  {result.path}")


def _print_returns(console: Console, worst: float, best: float) -> None:
    degenerate = "  [yellow]degenerate: all the same[/yellow]" if worst == best else ""
    console.print(f"  returns    {worst:g} to {best:g}{degenerate}")


def _work_line(result: BuildResult) -> str:
    """What a build had to do, in one line."""
    progress = result.outcome.progress
    if not progress.num_pairs:
        return f"nothing emulated, {result.seconds:.1f} s in all"
    rate = f"{progress.num_pairs:,} pairs emulated at {progress.pairs_per_second:,.0f} a second"
    return f"{rate}, {result.seconds:.1f} s in all"


def verification_line(verification: dict[str, Any] | None) -> str:
    """How far a table can be trusted, in one line."""
    if not verification:
        return "[yellow]no: not compared with the environment, do not take it as exact[/yellow]"
    screens = " with screens" if verification["screens_compared"] else ""
    return (
        f"[green]yes[/green]: {verification['steps']:,} steps of {verification['episodes']} episodes replayed{screens}"
    )


def _target(options: argparse.Namespace) -> Target:
    if options.name is not None:
        if options.env_arg:
            raise EfhorizonError("--env-arg goes with --env")
        return catalogue_target(options.name, options.horizon)
    return gymnasium_target(options.env, dict(_env_argument(text) for text in options.env_arg), options.horizon)


def _env_argument(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise EfhorizonError(f"--env-arg wants KEY=VALUE, got {text!r}")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value  # a plain word is a string


def _num_workers(given: int | None) -> int:
    if given is not None and given < 1:
        raise EfhorizonError(f"--workers must be at least 1, got {given}")
    return given if given is not None else len(os.sched_getaffinity(0))
