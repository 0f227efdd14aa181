"""`efhorizon dataset list`: what a data set has."""

from __future__ import annotations

import argparse

from efhorizon.commands import _arguments, _exit
from efhorizon.commands.dataset import _shared

HELP = "list the MDPs of a data set"
DESCRIPTION = """\
Lists the MDPs of the data set: states, horizon, effective horizon H, which
parts there are, and which of them are in the cache. With --cached it lists what
is in the cache and needs no network.
"""
EXAMPLE = "efhorizon dataset list --suite atari"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _shared.add_remote(parser)
    parser.add_argument("--suite", metavar="NAME", help="only this suite")
    parser.add_argument("--cached", action="store_true", help="only what is in the cache, of all data sets")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from rich.table import Table
    from rich.text import Text

    from efhorizon.commands import _terminal
    from efhorizon.dataset.cache import asked, cached_sets
    from efhorizon.dataset.remote import needed
    from efhorizon.errors import StoreError
    from efhorizon.render import numbers
    from efhorizon.render.terminal.layout import printable

    if options.cached:
        sets = [("cache", each) for each in cached_sets()]
    else:
        remote = needed(options.remote)
        with _terminal.waiting(f"asking {remote.given}"):
            sets = [(remote.given, asked(remote))]
    suites = sorted({mdp.suite for _, dataset in sets for mdp in dataset.registry.mdps.values()})
    if sets and options.suite not in (None, *suites):
        raise StoreError(f"--suite {options.suite}: the data set has no such suite, but {', '.join(suites)}")
    shown = []
    for place, dataset in sets:
        registry = dataset.registry
        rows = [
            _shared.entry_as_json(name, mdp, registry, dataset.parts(name))
            for name, mdp in sorted(registry.mdps.items())
            if (options.suite in (None, mdp.suite)) and (not options.cached or dataset.parts(name))
        ]
        shown.append({**_shared.dataset_as_json(registry, place), "mdps": rows})
    if options.json:
        _terminal.print_json(shown if options.cached else shown[0])
        return _exit.DONE
    for each in shown:
        table = Table(box=None, pad_edge=False)
        for title in ("name", "suite", "states", "actions", "T", "H", "runs", "parts"):
            table.add_column(title, justify="left" if title in ("name", "suite", "parts") else "right")
        for row in each["mdps"]:
            horizon = row["effective_horizon"]
            parts = " ".join(f"{kind}*" if part["cached"] else kind for kind, part in row["parts"].items())
            cells = (
                *(row["name"], row["suite"], _count(row["num_states"]), _count(row["num_actions"])),
                *(_count(row["horizon"]), "-" if horizon is None else f"{horizon:.2f}", f"{row['num_runs']:,}", parts),
            )
            table.add_row(*(Text(printable(cell)) for cell in cells))
        count = numbers.counted(len(each["mdps"]), "MDP")
        head = f"{each['dataset']} {each['version']} at {each['remote']}: {count}; * in the cache"
        _terminal.show([head.replace("[", r"\["), table])
    if options.cached and not shown:
        _terminal.say("the cache is empty")
    return _exit.DONE


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
