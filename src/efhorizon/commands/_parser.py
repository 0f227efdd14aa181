"""The parser of the whole command line, made from the modules of this folder."""

from __future__ import annotations

import argparse
from typing import NoReturn

from efhorizon._version import __version__
from efhorizon.commands import _groups
from efhorizon.commands._exit import UsageError
from efhorizon.commands._groups import Command

# The order of `efhorizon --help`: from an environment to a report. Commands that are not named follow.
_ORDER = (
    *("list", "build", "verify", "show", "export"),
    *("analyze", "what-if", "diagnose", "gorp", "sqirl", "train", "policy"),
    *("study", "sticky", "evaluate", "report", "serve", "dataset", "demo"),
    "completion",
)

_DESCRIPTION = """\
How hard is this environment for deep RL, why, and what should I change?

efhorizon turns an environment (Atari, Procgen, MiniGrid, or your own) into an
exact table of its states. From the table it computes the effective horizon and
the other sample-complexity bounds of Laidlaw, Russell and Dragan (2023), and
says which states make the environment hard. It also trains PPO, DQN and GORP on
the table, so that you can compare theory with practice. Where no table can be
had, it estimates the same by playing.

start here:
  efhorizon build freeway_10_fs30      makes the table tables/freeway_10_fs30
  efhorizon analyze freeway_10_fs30    says how hard it is, and why
  efhorizon demo                       a small study with a report, in minutes

commands:
"""

_EPILOG = """\
`efhorizon COMMAND --help` explains a command. Results go to stdout (with --json
for programs), progress and errors to stderr. Exit codes: 0 done, 1 an error,
2 wrong usage, 3 a budget ended the work early, 130 interrupted.
Tab completion: efhorizon completion --help
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, which `main` prints."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.removeprefix('argument ')} (for help: {self.prog} --help)")


def verbs() -> list[str]:
    """The commands: every module of this folder that is not private."""
    return _groups.verbs(__package__, _ORDER)


def command(verb: str) -> Command:
    return _groups.command(__package__, verb)


def parser() -> argparse.ArgumentParser:
    """The parser; `options.verb` is the command that was given."""
    made = _Parser(
        prog="efhorizon",
        usage="efhorizon [--help] [--version] COMMAND ...",
        description=_DESCRIPTION + _groups.listed(__package__, _ORDER),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"efhorizon {__version__}")
    _groups.add_commands(made, __package__, "verb", _ORDER, prog="efhorizon")
    return made
