"""`efhorizon verify`: a table against its environment."""

from __future__ import annotations

import argparse

from efhorizon.commands import _arguments, _exit, _types

HELP = "replay a table against a fresh environment"
DESCRIPTION = """\
Plays random episodes in a freshly started environment and compares every
reward, end and screen with the table. Prints the first difference, if there is
one, and then exits with code 1.
"""
EXAMPLE = "efhorizon verify freeway_10_fs30 --episodes 100"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    parser.add_argument(
        "--episodes",
        type=_types.count(most=_arguments.MAX_RUNS),
        default=30,
        metavar="N",
        help="episodes to replay (default: 30)",
    )
    name = parser.add_argument("--id", metavar="NAME", help="the environment, where the file does not name it")
    _arguments.completed(name, _arguments.environment_names)
    _arguments.add_seed(parser, "the episodes")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.build.target import table_spec
    from efhorizon.build.verify import verify
    from efhorizon.commands import _terminal
    from efhorizon.errors import StoreError
    from efhorizon.io import store
    from efhorizon.io.tables import load, table_path
    from efhorizon.render.terminal.building import verification_report

    path = table_path(options.table, options.tables)
    if path.is_dir() and (damage := store.damage(path)):
        raise StoreError(damage)
    mdp = load(path)
    spec = table_spec(mdp, options.id)
    with _terminal.waiting(f"replaying {options.episodes} episodes"):
        report = verify(mdp, spec, num_episodes=options.episodes, seed=options.seed)
    name = mdp.metadata.get("id", options.id)
    if options.json:
        _terminal.print_json({"id": name, "path": str(path), **report.as_json()})
    else:
        _terminal.show(verification_report(name, report))
    return _exit.DONE if report.is_exact else _exit.ERROR
