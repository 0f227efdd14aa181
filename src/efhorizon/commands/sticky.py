"""`efhorizon sticky`: a study with sticky actions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon import catalog
from efhorizon.commands import _arguments, _exit, _types
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.study.sticky_tasks import Algorithm

HELP = "analyze and train with sticky actions: SQIRL, PPO and DQN"
DESCRIPTION = """\
Builds the tables that are missing, analyzes each of them with sticky actions,
and runs SQIRL, PPO and DQN on it with the paper's settings, the smallest tables
first. Each analysis and each run is kept in DIR as soon as it is finished: the
same command goes on where it was stopped. `efhorizon evaluate DIR` and
`efhorizon report DIR` show the results.
"""
EXAMPLE = """\
efhorizon sticky MiniGrid-Empty-5x5-v0 --steps 200k
  efhorizon sticky minigrid --max-minutes 5h --workers 1"""
_DEFAULT_CHANCE, _DEFAULT_MOST_STATES = 0.25, 100_000
_ALGORITHMS = ("sqirl", "ppo", "dqn", "sqirl_network")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=f"environments by name, or all of {', '.join(catalog.suite_names())}; tables by name or path",
    )
    _arguments.completed(names, _arguments.environment_names)
    _arguments.add_horizon(parser, "that of the name or table")
    _arguments.add_tables_folder(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("sticky"), metavar="DIR", help="folder for everything (default: sticky)"
    )
    parser.add_argument(
        "--sticky",
        type=_types.fraction,
        default=_DEFAULT_CHANCE,
        metavar="Q",
        help=f"chance of repeating the previous action (default: {_DEFAULT_CHANCE:g})",
    )
    parser.add_argument(
        "--algos",
        type=_algorithms,
        default=_ALGORITHMS,
        metavar="A,B",
        help=f"what to run, separated by commas, or none (default: {','.join(_ALGORITHMS)})",
    )
    _arguments.add_runs(parser)
    parser.add_argument(
        "--max-states",
        type=_types.count(),
        default=_DEFAULT_MOST_STATES,
        metavar="N",
        help=f"leave out what has more states with sticky actions (default: {_DEFAULT_MOST_STATES:,})",
    )
    parser.add_argument(
        "--max-minutes",
        type=_types.minutes,
        metavar="TIME",
        help="begin no other run after this time: 90, 1h30m, 45s (default: go on to the end)",
    )
    _arguments.add_workers(parser)
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return _exit.kept_in(options.out, "what is done is kept")


def run(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from efhorizon.commands import _terminal
    from efhorizon.io.machine import num_cores
    from efhorizon.study.plan import Plan, environment_names
    from efhorizon.study.sticky_study import StickyPlan
    from efhorizon.study.sticky_study import run as run_study

    if not 0 < options.sticky < 1:
        raise UsageError(f"--sticky must be above 0 and below 1, got {options.sticky:g}")
    names = environment_names(options.names, options.tables, options.horizon)
    study = StickyPlan(
        plan=Plan(out=options.out, names=names, horizon=options.horizon, given_tables=options.tables),
        chance=options.sticky,
        algorithms=options.algos,
        num_seeds=options.seeds,
        max_steps=options.steps,
        max_states=options.max_states,
    )
    seconds = float("inf") if options.max_minutes is None else 60 * options.max_minutes
    lines = _terminal.SlowLines()
    with _terminal.waiting("reading tables") as wait:

        def on_progress(text: str) -> None:
            wait(text)
            lines.say(text)

        workers = options.workers or num_cores()
        done = run_study(study, seconds=seconds, num_workers=workers, say=_terminal.say, on_progress=on_progress)
    for failure in done.failures:
        _terminal.say(f"not run: {failure}", style="yellow")
    if options.json:
        _terminal.print_json({"path": str(options.out), **asdict(done)})
    else:
        state = "everything is done" if done.is_complete else "time is up: run the same command to go on"
        _terminal.show([f"{options.out}: {done.num_tables} tables, {done.num_rows} new rows; {state}"])
    return _exit.DONE if done.is_complete else _exit.BUDGET


def _algorithms(text: str) -> tuple[Algorithm, ...]:
    from efhorizon.study.sticky_tasks import ALGORITHMS

    given = {name.strip() for name in text.split(",")} - {"", "none"}
    for name in sorted(given.difference(ALGORITHMS)):
        raise argparse.ArgumentTypeError(f"no algorithm is called {name!r}; write some of {','.join(ALGORITHMS)}")
    return tuple(algorithm for algorithm in ALGORITHMS if algorithm in given)
