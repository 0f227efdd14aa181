"""`efhorizon verify`: a table against its environment."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from efhorizon.commands import _arguments, _environments, _exit, _types
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.mdp import TabularMDP
    from efhorizon.suites.specification import SimulatorSpec

HELP = "replay a table against a fresh environment"
DESCRIPTION = """\
Takes every action in every state of a freshly started environment and compares
each reward, end, screen and next state with the table; of tables with more than
a million state-action pairs, a random sample is taken. Also plays episodes from
reset. Says how much was compared: a table is called exact only if all of it
was. Prints the first difference, if there is one, and then exits with code 1.
"""
EXAMPLE = "efhorizon verify freeway_10_fs30 --pairs all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    _arguments.add_pairs(parser)
    parser.add_argument(
        "--episodes",
        type=_types.count(most=_arguments.MAX_RUNS),
        default=30,
        metavar="N",
        help="episodes to play from reset, besides the pairs (default: 30)",
    )
    name = parser.add_argument("--id", metavar="NAME", help="the environment, where the file does not name it")
    _arguments.completed(name, _arguments.environment_names)
    _environments.add_environment(
        parser, "the environment, where the file names a module: that is imported only if you name it yourself"
    )
    _arguments.add_seed(parser, "the episodes and of the pairs that are drawn")
    _arguments.add_workers(parser)
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.build.verify import verify
    from efhorizon.commands import _terminal
    from efhorizon.errors import StoreError
    from efhorizon.io import store
    from efhorizon.io.machine import num_cores
    from efhorizon.io.tables import load, table_path
    from efhorizon.render.terminal.building import verification_report

    path = table_path(options.table, options.tables)
    if path.is_dir() and (damage := store.damage(path)):
        raise StoreError(damage)
    mdp = load(path)
    spec = _spec(options, mdp)
    name = mdp.metadata.get("id", options.id)
    lines = _terminal.SlowLines()
    with _terminal.waiting(f"replaying {options.episodes} episodes") as change:

        def on_progress(line: str) -> None:
            change(line)
            lines.say(f"{name}: {line}")

        report = verify(
            mdp,
            spec,
            num_episodes=options.episodes,
            num_pairs=options.pairs,
            seed=options.seed,
            num_workers=options.workers or num_cores(),
            on_progress=on_progress,
        )
    if options.json:
        _terminal.print_json({"id": name, "path": str(path), **report.as_json()})
    else:
        _terminal.show(verification_report(name, report))
    if not report.agrees:
        _terminal.say(
            "If the environment has changed since the table was built, build it again: efhorizon build --rebuild. If "
            "not, it is not deterministic (docs/own-environment.md)."
        )
    return _exit.DONE if report.agrees else _exit.ERROR


def _spec(options: argparse.Namespace, mdp: TabularMDP) -> SimulatorSpec:
    """The environment to compare with: as the user names it, or as the file does where that imports nothing."""
    from efhorizon.build.target import table_spec

    if options.env is not None and options.id is not None:
        raise UsageError("give either --id NAME or --env ENV")
    return _environments.given_environment(options, mdp) or table_spec(mdp, options.id)
