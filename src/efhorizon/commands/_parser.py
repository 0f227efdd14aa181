"""The parser of the whole command line, made from the modules of this folder."""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from typing import NoReturn, Protocol, cast

from efhorizon._version import __version__
from efhorizon.commands._exit import UsageError

# The order of `efhorizon --help`: from an environment to a report. Commands that are not named follow.
_ORDER = (
    *("list", "build", "verify", "show", "export"),
    *("analyze", "gorp", "train"),
    *("study", "evaluate", "report", "serve", "demo"),
    "completion",
)

_DESCRIPTION = """\
How hard is this environment for deep RL, why, and what should I change?

efhorizon turns a deterministic environment (Atari, Procgen, MiniGrid, or your
own) into an exact table of its states. From the table it computes the effective
horizon and the other sample-complexity bounds of Laidlaw, Russell and Dragan
(2023), and says which state makes the environment hard. It also trains PPO, DQN
and GORP on the table, so that you can compare theory with practice.

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


class Command(Protocol):
    """What a module of this folder has."""

    HELP: str  # one line in the list of commands
    DESCRIPTION: str  # what it does, prints and writes
    EXAMPLE: str  # what to type

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it; the exit code."""
        ...


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, which `main` prints."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.removeprefix('argument ')} (for help: {self.prog} --help)")


def verbs() -> list[str]:
    """The commands: every module of this folder that is not private."""
    folder = import_module(__package__).__path__
    found = [module.name for module in pkgutil.iter_modules(folder) if not module.name.startswith("_")]
    return sorted(found, key=lambda verb: (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb))


def command(verb: str) -> Command:
    return cast(Command, import_module(f"{__package__}.{verb}"))


def parser() -> argparse.ArgumentParser:
    """The parser; `options.verb` is the command that was given."""
    described = {verb: command(verb) for verb in verbs()}
    width = max(map(len, described))
    made = _Parser(
        prog="efhorizon",
        usage="efhorizon [--help] [--version] COMMAND ...",
        description=_DESCRIPTION + "\n".join(f"  {verb:{width}}  {one.HELP}" for verb, one in described.items()),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"efhorizon {__version__}")
    listed = made.add_subparsers(
        prog="efhorizon", dest="verb", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    for verb, one in described.items():
        its_parser = listed.add_parser(
            verb,
            help=one.HELP,
            description=one.DESCRIPTION,
            epilog=f"example:\n  {one.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_arguments(its_parser)
    return made
