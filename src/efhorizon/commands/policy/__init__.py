"""`efhorizon policy`: policies to start from. Each module of this folder is one of its commands."""

from __future__ import annotations

import argparse

from efhorizon.commands import _exit, _groups

HELP = "make, tabulate and judge policies to start from"
DESCRIPTION = """\
What changes if learning starts from a policy instead of random play? These
commands make policies (from recordings of play, or by training on other
levels), turn them into tables of probabilities, and say what they are worth.
`analyze --exploration-policy`, `train --initial` and `study --policies` use
them.
"""
EXAMPLE = "efhorizon policy show freeway_10_fs30 --policy freeway.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _groups.add_commands(parser, __name__, "policy_verb")


def kept(options: argparse.Namespace) -> str:
    return str(getattr(_groups.command(__name__, options.policy_verb), "kept", lambda _: _exit.NOTHING_KEPT)(options))


def run(options: argparse.Namespace) -> int:
    return _groups.command(__name__, options.policy_verb).run(options)
