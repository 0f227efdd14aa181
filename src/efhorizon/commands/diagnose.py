"""`efhorizon diagnose`: how hard an environment is, without a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.commands import _arguments, _environments, _exit, _types
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.diagnose.subject import Subject
    from efhorizon.diagnose.survey import Findings

HELP = "say how hard an environment is, without a table"
DESCRIPTION = """\
Plays an environment of any size, with or without chance, and estimates its
effective horizon with 90% intervals: how random play fares, which actions it
can tell apart and from which step on it no longer can, how many episodes per
action GORP needs, and what PPO and DQN will probably need. A diagnosis that was
stopped continues when the same command is run again.
"""
EXAMPLE = """\
efhorizon diagnose MiniGrid-LavaGapS6-v0 --max-steps 6M
  efhorizon diagnose FrozenLake-v1 --max-minutes 10 --workers 2
  efhorizon diagnose ALE/Breakout-v5 --horizon 500 --best-return 30"""

_MAX_SEED = 2**31 - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    name = parser.add_argument(
        "name",
        nargs="?",
        metavar="ENV",
        help="a name from `efhorizon list`, or an environment: a Gymnasium id, module:Id, module:Class, file.py:Class",
    )
    _arguments.completed(name, _arguments.environment_names)
    _environments.add_environment(
        parser, "instead of ENV: an environment of Gymnasium's, even if the catalogue has its name too"
    )
    _arguments.add_horizon(parser, "that of the name or id")
    parser.add_argument(
        "--max-steps",
        "--steps",
        type=_types.count(),
        metavar="N",
        help="budget: steps of the environment (default: 1,000,000)",
    )
    parser.add_argument(
        "--max-minutes", type=_types.minutes, metavar="TIME", help="budget: time, as 90 (minutes), 1h30m or 45s"
    )
    parser.add_argument(
        "--max-k",
        type=_types.count(most=3),
        default=3,
        metavar="K",
        help="length of the action sequences, at most (default: 3)",
    )
    parser.add_argument(
        "--best-return",
        type=_types.number,
        metavar="R",
        help="the best return that is possible or known (default: the best one found)",
    )
    parser.add_argument(
        "--seed",
        type=_types.count(least=0, most=_MAX_SEED),
        default=0,
        metavar="N",
        help="random seed of the diagnosis: of actions, starts and noise (default: 0)",
    )
    parser.add_argument(
        "--fixed-start",
        type=_types.count(least=0, most=_MAX_SEED),
        metavar="N",
        help="reset with this seed always, for an environment with a random start (default: a fresh start each time)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=_arguments.RESULTS,
        metavar="DIR",
        help=f"folder for the diagnosis and its log, which report reads (default: {_arguments.RESULTS})",
    )
    _arguments.add_workers(parser)
    _arguments.add_engine(parser)
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    from efhorizon.diagnose.stored import folder_of

    return _exit.kept_in(folder_of(options.results), "what was played so far is kept")


def run(options: argparse.Namespace) -> int:
    from rich.progress import SpinnerColumn

    from efhorizon.commands import _terminal
    from efhorizon.diagnose.diagnosing import DEFAULT_STEPS, diagnosed
    from efhorizon.diagnose.film import film
    from efhorizon.diagnose.progress import progress_line
    from efhorizon.diagnose.stored import log_path, store
    from efhorizon.diagnose.survey import Settings
    from efhorizon.io.machine import num_cores
    from efhorizon.render.terminal.diagnosis import diagnosis_parts

    subject = _subject(options)
    no_budget = options.max_steps is None and options.max_minutes is None
    settings = Settings(
        horizon=subject.horizon,
        seed=options.seed,
        max_k=options.max_k,
        max_steps=DEFAULT_STEPS if no_budget else options.max_steps,
        max_minutes=options.max_minutes,
        best_return=options.best_return,
    )
    with _terminal.bars(SpinnerColumn(), _terminal.LineColumn("{task.description}")) as bar:
        task, lines = bar.add_task(f"{subject.id}: starting"), _terminal.SlowLines()

        def on_progress(findings: Findings, doing: str) -> None:
            line = progress_line(subject.id, findings, doing)
            bar.update(task, description=line)
            lines.say(line)

        found = diagnosed(
            subject,
            settings,
            workers=options.workers or num_cores(),
            engine=_arguments.engine_choice(options),
            log_path=log_path(options.results, subject.id, options.seed),
            on_progress=on_progress,
        )
        path = store(options.results, found, film(subject, found))
    if options.json:
        _terminal.print_json({**found.as_json(), "path": str(path)})
    else:
        _terminal.show(diagnosis_parts(found))
        _terminal.say(f"stored in {path}; for the page: efhorizon report {options.results}")
    return _exit.DONE


def _subject(options: argparse.Namespace) -> Subject:
    from efhorizon.diagnose.subject import subject_of

    if (options.name is None) == (options.env is None):
        raise UsageError("give either an ENV or --env ID (for help: efhorizon diagnose --help)")
    return subject_of(
        options.name or options.env,
        horizon=options.horizon,
        arguments=dict(options.env_arg),
        wrappers=options.wrapper,
        fixed_start=options.fixed_start,
        by_gymnasium=options.env is not None,
    )
