"""`efhorizon dataset show`: one MDP of a data set."""

from __future__ import annotations

import argparse

from efhorizon.commands import _arguments, _exit
from efhorizon.commands.dataset import _shared

HELP = "describe an MDP of a data set: its parts, sizes and licences"
DESCRIPTION = """\
Prints what the data set has of one MDP: each part with its format, size and
licence, and whether it is in the cache. Nothing but the list of files is
downloaded.
"""
EXAMPLE = "efhorizon dataset show freeway_10_fs30"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the MDP")
    _shared.add_remote(parser)
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.dataset.cache import asked, entry
    from efhorizon.dataset.remote import needed

    remote = needed(options.remote)
    dataset = asked(remote)
    mdp = entry(dataset.registry, options.name, remote.given)
    content = _shared.entry_as_json(options.name, mdp, dataset.registry, dataset.parts(options.name))
    if options.json:
        _terminal.print_json({**_shared.dataset_as_json(dataset.registry, remote.given), **content})
        return _exit.DONE
    value = content["effective_horizon"]
    lines = [
        f"{options.name}: {mdp.suite}, {mdp.num_states or '?'} states, {mdp.num_actions} actions, "
        f"horizon {mdp.horizon}",
        f"  effective horizon  {'-' if value is None else f'{value:.2f}'}",
        f"  verified           {'yes' if mdp.verified else 'no' if mdp.verified is False else 'not known'}",
        f"  runs               {mdp.num_runs:,}",
    ]
    lines += [
        f"  {kind:17}  {part['format']}, {_shared.files(part['files'])}, {_shared.megabytes(part['bytes'])}, "
        f"{part['licence']}" + (", in the cache" if part["cached"] else "")
        for kind, part in content["parts"].items()
    ]
    _terminal.show([line.replace("[", r"\[") for line in lines])
    return _exit.DONE
