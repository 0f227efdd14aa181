"""`efhorizon policy show`: what a policy is worth on a table."""

from __future__ import annotations

import argparse

from efhorizon.commands import _arguments, _exit
from efhorizon.commands.policy import _policies

HELP = "how far a policy is from random play, and where it errs"
DESCRIPTION = """\
Prints what a policy earns on a table beside random play and the optimum, how
likely one of its episodes is optimal, how far it is from random play (the ratio
of Theorems B.1 and B.2, and entropy), and the states where its episodes most
often go wrong for the first time.
"""
EXAMPLE = "efhorizon policy show maze_easy_l0_30_fs1 --policy maze.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_table(parser)
    _policies.add_policy(parser)
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.io.tables import load_table
    from efhorizon.policies.worth import policy_worth
    from efhorizon.render.terminal.policy import described

    table, found = _policies.policy_on(load_table(options.table, options.tables), options)
    worth = policy_worth(table, found)
    if options.json:
        _terminal.print_json(worth.as_json())
    else:
        _terminal.show(described(worth))
    return _exit.DONE
