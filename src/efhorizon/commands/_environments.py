"""How an environment is named on the command line: its name, arguments and wrappers."""

from __future__ import annotations

import argparse
import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhorizon.commands import _types
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.mdp import TabularMDP
    from efhorizon.suites.specification import SimulatorSpec

_MAX_SEED = 2**31 - 1


def add_environment(parser: argparse.ArgumentParser, text: str) -> None:
    """The options that name an environment outside the catalogue."""
    parser.add_argument("--env", metavar="ENV", help=text)
    add_environment_arguments(parser)


def add_environment_arguments(parser: argparse.ArgumentParser, when: str = "") -> None:
    """How an environment is made that another option names."""
    parser.add_argument(
        "--env-arg",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=env_argument,
        help=f"{when}an argument of the environment, in Python or JSON: is_slippery=False, size=8, goal=[3,4] (may be "
        "repeated)",
    )
    parser.add_argument(
        "--wrapper",
        metavar="WRAPPER",
        action="append",
        default=[],
        help=f"{when}module:Wrapper or file.py:Wrapper, applied to the environment (may be repeated: in this order)",
    )


def add_image(parser: argparse.ArgumentParser, of: str) -> None:
    """A picture to be saved, and the environment that draws it where the table has no pictures."""
    parser.add_argument("--image", type=Path, metavar="FILE.png", help=f"save a picture of {of}")
    add_environment(
        parser, "with --image: your environment, to draw states of a table that keeps no pictures (over 2,000 states)"
    )


def drawing_environment(options: argparse.Namespace, mdp: TabularMDP) -> SimulatorSpec | None:
    """The environment that is to draw a picture, if the user names one."""
    if options.env is not None and options.image is None:
        raise UsageError("--env goes with --image: it draws states of which the table keeps no pictures")
    return given_environment(options, mdp)


def given_environment(options: argparse.Namespace, mdp: TabularMDP) -> SimulatorSpec | None:
    """The environment of a table as the user names it, if they do."""
    from efhorizon.build.target import given_spec

    if options.env is None:
        if options.env_arg or options.wrapper:
            raise UsageError("--env-arg and --wrapper go with --env")
        return None
    return given_spec(mdp, options.env, dict(options.env_arg), options.wrapper)


def env_argument(text: str) -> tuple[str, Any]:
    """KEY=VALUE; a value that is neither Python nor JSON is a text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE; write it as is_slippery=False")
    return key.strip(), _value(value.strip())


def seeds(text: str) -> list[int]:
    """One seed, or several with commas between them."""
    return [_types.count(least=0, most=_MAX_SEED)(part) for part in text.split(",")]


def _value(text: str) -> Any:
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return text
