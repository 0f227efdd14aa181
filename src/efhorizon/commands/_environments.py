"""How an environment is named on the command line: its name, arguments and wrappers."""

from __future__ import annotations

import argparse
import ast
import json
from typing import Any

from efhorizon.commands import _types

_MAX_SEED = 2**31 - 1


def add_environment(parser: argparse.ArgumentParser, text: str) -> None:
    """The options that name an environment outside the catalogue."""
    parser.add_argument("--env", metavar="ENV", help=text)
    parser.add_argument(
        "--env-arg",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=env_argument,
        help="an argument of the environment, in Python or JSON: is_slippery=False, size=8, goal=[3,4] (may be "
        "repeated)",
    )
    parser.add_argument(
        "--wrapper",
        metavar="WRAPPER",
        action="append",
        default=[],
        help="module:Wrapper or file.py:Wrapper, applied to the environment (may be repeated: in this order)",
    )


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
