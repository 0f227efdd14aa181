"""Folders of commands: every module that is not private is one, and adding the file is all there is to it."""

from __future__ import annotations

import argparse
import keyword
import pkgutil
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast


class Command(Protocol):
    """What a module of such a folder has."""

    HELP: str  # one line in the list of commands
    DESCRIPTION: str  # what it does, prints and writes
    EXAMPLE: str  # what to type

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it; the exit code."""
        ...


def verbs(package: str, order: Sequence[str] = ()) -> list[str]:
    """The commands of a folder, in that order; others follow. `what_if.py` is the verb what-if, `import_.py` import."""
    folder = import_module(package).__path__
    modules = [module.name for module in pkgutil.iter_modules(folder) if not module.name.startswith("_")]
    found = [name.removesuffix("_").replace("_", "-") for name in modules]
    return sorted(found, key=lambda verb: (order.index(verb) if verb in order else len(order), verb))


def command(package: str, verb: str) -> Command:
    name = f"{verb}_" if keyword.iskeyword(verb) else verb.replace("-", "_")
    return cast(Command, import_module(f"{package}.{name}"))


def listed(package: str, order: Sequence[str] = ()) -> str:
    """One line for each command, for the help of the whole."""
    described = {verb: command(package, verb).HELP for verb in verbs(package, order)}
    width = max(map(len, described), default=0)
    return "\n".join(f"  {verb:{width}}  {text}" for verb, text in described.items())


def add_commands(
    parser: argparse.ArgumentParser, package: str, dest: str, order: Sequence[str] = (), prog: str | None = None
) -> None:
    """Let a parser take one of the commands; `options.<dest>` is the one that was given."""
    if prog is None:
        parser.usage = f"{parser.prog} [--help] COMMAND ..."
        parser.description = f"{parser.description}\ncommands:\n{listed(package, order)}\n"
    taken = parser.add_subparsers(
        prog=prog or parser.prog, dest=dest, required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    for verb in verbs(package, order):
        one = command(package, verb)
        its_parser = taken.add_parser(
            verb,
            help=one.HELP,
            description=one.DESCRIPTION,
            epilog=f"example:\n  {one.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_arguments(its_parser)
