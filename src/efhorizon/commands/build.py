"""`efhorizon build`: one table, with progress, budgets and resumption."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhorizon.commands import _arguments, _environments, _exit, _stochastic, _types
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

An environment with chance becomes a table if its probabilities are known:
Gymnasium's toy text (FrozenLake, Taxi, CliffWalking), which publishes them, and
OpenSpiel's games for one player, as in openspiel:catch.
"""
EXAMPLE = """\
efhorizon build pong_20_fs30 --max-minutes 30
  efhorizon build FrozenLake-v1 --env-arg is_slippery=False
  efhorizon build my_env.py:MyEnv --horizon 50 --seed 0,1,2
  efhorizon build FrozenLake-v1
  efhorizon build openspiel:catch
  efhorizon build pong_50_fs30 --engine ray --address auto --out /shared/tables"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    name = parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="a name from `efhorizon list`, or an environment: a Gymnasium id, module:Id, module:Class or "
        "file.py:Class, where a function that makes the environment will do for a class",
    )
    _arguments.completed(name, _arguments.environment_names)
    _environments.add_environment(parser, "instead of NAME: an environment, not a name from `efhorizon list`")
    parser.add_argument(
        "--seed",
        type=_environments.seeds,
        action="extend",
        metavar="N",
        help="the seed of the reset, for an environment with a random start; several, as in 0,1,2, build a table each "
        "(default: 0)",
    )
    parser.add_argument(
        "--fixed-noise",
        action="store_true",
        help="build an environment with chance, with the random numbers of one seed: they are then part of its states",
    )
    parser.add_argument(
        "--random-start",
        action="store_true",
        help="one table whose episodes begin in the start of one of the seeds, each equally likely",
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
    _arguments.add_engine(parser, has_owners=True)
    parser.add_argument(
        "--batched",
        action=argparse.BooleanOptionalAction,
        help="search with a simulator that steps many states at once, where there is one; the table is the same "
        "(default: where there are known to be a million states)",
    )
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
    parser.add_argument(
        "--rebuild", action="store_true", help="search again from the start, even if there is a stored search"
    )
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return _exit.kept_in(options.out / "searches", "the states found so far are kept")


def run(options: argparse.Namespace) -> int:
    from efhorizon.build.explore import Budget
    from efhorizon.build.pipeline import Options
    from efhorizon.commands import _terminal
    from efhorizon.io.machine import num_cores
    from efhorizon.render.terminal.building import build_result

    build_options = Options(
        out=options.out,
        num_workers=options.workers or num_cores(),
        engine=_arguments.engine_choice(options),
        batched=options.batched,
        rule=options.merge,
        ignore_screens=options.ignore_screens,
        budget=Budget(options.max_states, options.max_minutes, options.max_memory),
        if_stopped=options.if_stopped,
        verify_episodes=options.episodes,
        verify_pairs=options.pairs,
        rebuild=options.rebuild,
    )
    if (with_chance := _stochastic.built(options)) is not None:
        return with_chance
    results = []
    for target in _targets(options):
        results.append(_built(target, build_options))
        if not options.json:
            _terminal.show(build_result(results[-1]))
    if options.json:
        contents = [_content(result) for result in results]
        _terminal.print_json(contents[0] if len(contents) == 1 else contents)
    return _exit.DONE if all(result.outcome.stopped_by is None for result in results) else _exit.BUDGET


def _targets(options: argparse.Namespace) -> list[Target]:
    """One table for each seed."""
    from efhorizon import catalog
    from efhorizon.build.target import catalogue_target, gymnasium_target
    from efhorizon.suites.environment_source import is_environment_name

    if (options.name is None) == (options.env is None):
        raise UsageError("give either a NAME or --env ID (for help: efhorizon build --help)")
    name = options.env
    if name is None and catalog.find(options.name) is None and is_environment_name(options.name):
        name = options.name
    if name is None:
        for given in ("env_arg", "wrapper", "seed", "fixed_noise"):
            if getattr(options, given):
                option = f"--{given.replace('_', '-')}"
                raise UsageError(
                    f"{option} goes with --env: {options.name} is a name of the catalogue, which takes none"
                )
        return [catalogue_target(options.name, options.horizon)]
    return [
        gymnasium_target(
            name,
            dict(options.env_arg),
            options.horizon,
            wrappers=options.wrapper,
            seed=seed,
            fixed_noise=options.fixed_noise,
        )
        for seed in dict.fromkeys(options.seed or [0])
    ]


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

        def on_notice(notice: str) -> None:
            _terminal.say(notice, style="yellow")

        return build(
            target,
            options,
            on_progress=on_progress,
            on_message=on_message,
            on_notice=on_notice,
            on_verify=on_line,
        )


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
        "notices": list(result.notices),
    }
