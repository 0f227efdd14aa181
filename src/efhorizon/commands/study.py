"""`efhorizon study`: from names to a report, with a forecast first and progress on the way."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhorizon import catalog
from efhorizon.commands import _arguments, _exit, _types
from efhorizon.commands._exit import UsageError
from efhorizon.study import sweep

if TYPE_CHECKING:
    from efhorizon.study.plan import Plan

HELP = "build, analyze and train on many environments; a report"
DESCRIPTION = """\
Builds and verifies a table of each environment, analyzes it, trains GORP, PPO
and DQN on it, and writes a report that compares every bound with what was
needed. It begins with a forecast of time, memory and disk. A study that was
stopped continues when the same command is run again. Everything is written to
DIR; the report is DIR/report/index.html.
"""
EXAMPLE = """\
efhorizon study MiniGrid-Empty-5x5-v0 freeway_10_fs30 --steps 200k
  efhorizon study my_module:MyEnv-v0 tables/FrozenLake-v1-T20 --horizon 20"""
NO_RUNS = "none"
_ALGORITHMS: tuple[sweep.Algorithm, ...] = ("gorp", "ppo", "dqn")  # in the order in which they are run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=f"environments by name, or all of {', '.join(catalog.suite_names())} or all; tables by name or path, "
        "which are used as they are; other environments as `build --env` takes them, such as FrozenLake-v1 or "
        "my_module:MyEnv-v0",
    )
    _arguments.completed(names, _names_and_suites)
    _arguments.add_horizon(parser, "that of the name, table or environment")
    _arguments.add_tables_folder(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("study"), metavar="DIR", help="folder for everything (default: study)"
    )
    parser.add_argument(
        "--algos",
        type=_algorithms,
        default=_ALGORITHMS,
        metavar="A,B",
        help=f"what to run, separated by commas, or {NO_RUNS} (default: {','.join(_ALGORITHMS)})",
    )
    _arguments.add_runs(parser)
    parser.add_argument(
        "--max-states", type=_types.count(), metavar="N", help="leave out environments with more states"
    )
    parser.add_argument(
        "--max-minutes",
        type=_types.minutes,
        metavar="TIME",
        help="leave out what takes longer to build: 90, 1h30m, 45s",
    )
    _arguments.add_max_k(parser)
    _arguments.add_workers(parser)
    _arguments.add_engine(parser)
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="EXPORT",
        help="continue from an export of `evaluate --export`: its runs count as done, its analyses are taken over",
    )
    parser.add_argument(
        "--policies",
        type=Path,
        metavar="FOLDER",
        help="also start from these policies: FOLDER/LABEL/GAME.npz or NAME.npz gives a variant NAME@LABEL",
    )
    parser.add_argument(
        "--what-if", action="store_true", help="also try changes of each table, and show on its page what would help"
    )
    parser.add_argument("--forecast", action="store_true", help="only print what time, memory and disk it would take")
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return _exit.NOTHING_KEPT if options.forecast else _exit.kept_in(options.out, "what is done is kept")


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _study, _terminal
    from efhorizon.study.forecast import forecast

    if options.forecast and options.rows is not None:
        raise UsageError("--forecast writes nothing and --rows writes rows; leave one of them out")
    plan = _plan(options)
    if not options.forecast:
        return _study.run_plan(plan, rows=options.rows, as_json=options.json)
    expected = forecast(plan)
    if options.json:
        _terminal.print_json({"out": str(plan.out), **expected.as_json()})
    else:
        _terminal.show(_study.forecast_parts(plan, expected))
    return _exit.DONE


def _plan(options: argparse.Namespace) -> Plan:
    from efhorizon.build.explore import Budget
    from efhorizon.io.machine import num_cores
    from efhorizon.study.plan import Plan, environment_names
    from efhorizon.study.tasks import RunPlan

    plan = Plan(
        out=options.out,
        names=environment_names(options.names, options.tables, options.horizon),
        runs=tuple(RunPlan(algorithm, num_seeds=options.seeds, max_steps=options.steps) for algorithm in options.algos),
        max_k=options.max_k,
        budget=Budget(options.max_states, options.max_minutes),
        num_workers=options.workers or num_cores(),
        engine=_arguments.engine_choice(options),
        policies=options.policies,
        horizon=options.horizon,
        tries_changes=options.what_if,
        given_tables=options.tables,
    )
    plan.cases()  # refuses a policy that is not there before anything is written
    return plan


def _algorithms(text: str) -> tuple[sweep.Algorithm, ...]:
    given = {name.strip() for name in text.split(",")} - {"", NO_RUNS}
    for name in sorted(given.difference(_ALGORITHMS)):
        there = f"{','.join(_ALGORITHMS)} or {NO_RUNS}"
        raise argparse.ArgumentTypeError(f"no algorithm is called {name!r}; write some of {there}")
    return tuple(algorithm for algorithm in _ALGORITHMS if algorithm in given)


def _names_and_suites(**_: Any) -> list[str]:
    return ["all", *catalog.suite_names(), *_arguments.environment_names()]
