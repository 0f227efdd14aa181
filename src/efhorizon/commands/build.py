"""`efhorizon build`: one table, with progress, budgets and resumption."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhorizon.commands import _arguments, _exit, _types
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.build.explore import Progress
    from efhorizon.build.pipeline import BuildResult, Options
    from efhorizon.build.target import Target

HELP = "turn an environment into an exact table"
DESCRIPTION = """\
Explores every state of a deterministic environment, merges states that behave
alike, compares the result with a fresh environment, and writes the table to
DIR/NAME. A search that was stopped continues when the same command is run
again.
"""
EXAMPLE = """\
efhorizon build pong_20_fs30 --max-minutes 30
  efhorizon build --env FrozenLake-v1 --env-arg is_slippery=false"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    name = parser.add_argument("name", nargs="?", metavar="NAME", help="a name from `efhorizon list`")
    _arguments.completed(name, _arguments.environment_names)
    parser.add_argument("--env", metavar="ID", help="instead of NAME: any deterministic Gymnasium environment")
    parser.add_argument(
        "--env-arg",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=_env_argument,
        help="with --env: an argument of the environment; the value is read as JSON (may be repeated)",
    )
    _arguments.add_horizon(parser, "that of the name or id")
    parser.add_argument(
        "--out",
        type=Path,
        default=_arguments.TABLES,
        metavar="DIR",
        help=f"the folder of tables (default: {_arguments.TABLES})",
    )
    _arguments.add_workers(parser)
    parser.add_argument(
        "--ignore-screens", action="store_true", help="merge states that look different but behave alike"
    )
    parser.add_argument(
        "--merge",
        choices=("paper", "coarsest", "none"),
        default="paper",
        help="merge states by the paper's rule; by the coarsest partition, which also merges cycles; or not at all "
        "(default: paper)",
    )
    parser.add_argument("--max-states", type=_types.count(), metavar="N", help="stop after this many states")
    parser.add_argument(
        "--max-minutes", type=_types.minutes, metavar="TIME", help="stop after this time: 90 (minutes), 1h30m or 45s"
    )
    parser.add_argument("--max-memory", type=_types.size, metavar="SIZE", help="stop at this much memory: 500M or 8G")
    if_stopped = parser.add_mutually_exclusive_group()
    if_stopped.add_argument(
        "--keep-partial",
        dest="if_stopped",
        action="store_const",
        const="shorter",
        default="nothing",
        help="if a budget stops the search, write the table of the longest horizon that is complete",
    )
    if_stopped.add_argument(
        "--keep-unfinished",
        dest="if_stopped",
        action="store_const",
        const="unfinished",
        help="if a budget stops the search, write all that is known; its analysis gives intervals",
    )
    parser.add_argument(
        "--episodes",
        type=_types.count(least=0, most=_arguments.MAX_RUNS),
        default=20,
        metavar="N",
        help="episodes to verify the table with, besides its pairs; 0 skips all verification (default: 20)",
    )
    _arguments.add_pairs(parser)
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return _exit.kept_in(options.out / "searches", "the states found so far are kept")


def run(options: argparse.Namespace) -> int:
    from efhorizon.build.explore import Budget
    from efhorizon.build.pipeline import Options
    from efhorizon.commands import _terminal
    from efhorizon.io.machine import num_cores
    from efhorizon.render.terminal.building import build_result

    result = _built(
        _target(options),
        Options(
            out=options.out,
            num_workers=options.workers or num_cores(),
            rule=options.merge,
            ignore_screens=options.ignore_screens,
            budget=Budget(options.max_states, options.max_minutes, options.max_memory),
            if_stopped=options.if_stopped,
            verify_episodes=options.episodes,
            verify_pairs=options.pairs,
        ),
    )
    if options.json:
        _terminal.print_json(_content(result))
    else:
        _terminal.show(build_result(result))
    return _exit.DONE if result.outcome.stopped_by is None else _exit.BUDGET


def _target(options: argparse.Namespace) -> Target:
    from efhorizon.build.target import catalogue_target, gymnasium_target

    if (options.name is None) == (options.env is None):
        raise UsageError("give either a NAME or --env ID (for help: efhorizon build --help)")
    if options.name is None:
        return gymnasium_target(options.env, dict(options.env_arg), options.horizon)
    if options.env_arg:
        raise UsageError("--env-arg goes with --env")
    return catalogue_target(options.name, options.horizon)


def _built(target: Target, options: Options) -> BuildResult:
    """Build, with one live line on stderr; plain lines where that is no terminal."""
    from rich.progress import SpinnerColumn

    from efhorizon.build.outlook import progress_line
    from efhorizon.build.pipeline import build
    from efhorizon.commands import _terminal

    with _terminal.bars(SpinnerColumn(), _terminal.LineColumn("{task.description}")) as bar:
        task = bar.add_task(f"{target.id}: starting")
        lines = _terminal.SlowLines()

        def on_line(line: str) -> None:
            bar.update(task, description=line)
            lines.say(line)

        def on_progress(progress: Progress) -> None:
            on_line(progress_line(target, progress))

        def on_message(message: str) -> None:
            bar.update(task, description=message)
            if not _terminal.is_live():
                _terminal.say(message)

        return build(target, options, on_progress=on_progress, on_message=on_message, on_verify=on_line)


def _content(result: BuildResult) -> dict[str, Any]:
    """A build as JSON."""
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
        "verification": mdp.metadata["verification"] if mdp else None,
        "fingerprint": mdp.fingerprint() if mdp else None,
    }


def _env_argument(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE; write it as is_slippery=false")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value  # a plain word is a string
