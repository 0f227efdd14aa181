"""`efhorizon list`: the catalogue."""

from __future__ import annotations

import argparse
import dataclasses

from efhorizon import catalog
from efhorizon.commands import _arguments, _exit

HELP = "list the environments that can be built by name"
DESCRIPTION = """\
Lists the environments of the catalogue: the BRIDGE dataset (Atari, Procgen and
MiniGrid) and the suites of other packages. T in a name stands for one of the
horizons in column T. Training divides rewards by the factor. Other environments
are built with `efhorizon build --env`.
"""
EXAMPLE = "efhorizon list --suite minigrid"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", choices=catalog.suite_names(), help="only this suite")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.render.terminal.catalogue import catalogue

    entries = catalog.entries(options.suite)
    if options.json:
        _terminal.print_json(
            [{**dataclasses.asdict(entry), "id": entry.name, "gym_id": entry.gym_id} for entry in entries]
        )
    else:
        _terminal.show(catalogue(entries))
    return _exit.DONE
