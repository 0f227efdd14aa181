"""How counts, sizes, times and shares are written on the command line: the types of its options.

Each type is a function from text to a value, as argparse wants it. What it refuses, it refuses in one line that repeats
the value and shows how to write one.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Literal

_THOUSANDS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_COUNT = re.compile(r"(?P<number>.*?)(?P<unit>[kmgb]?)", re.IGNORECASE)
_SIZE = re.compile(r"(?P<number>.*?)(?P<unit>[kmgt]?)(?:i?b)?", re.IGNORECASE)
_TIME = re.compile(
    r"(?:(?P<h>\d+(?:\.\d+)?)h)?(?:(?P<m>\d+(?:\.\d+)?)m(?:in)?)?(?:(?P<s>\d+(?:\.\d+)?)s)?", re.IGNORECASE
)
_MAX_PORT = 65_535


def count(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """A whole number from `least` to `most`: 100000, 100,000, 1e5, 200k or 5M."""

    def parsed(text: str) -> int:
        number = _scaled(text, _COUNT, _THOUSANDS)
        if number is None or number != int(number):
            raise argparse.ArgumentTypeError(
                f"{text[:60]!r} is not a whole number; write it as 100000, 1e5, 200k or 5M"
            )
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, such as {least + 4}; got {text[:60]}")
        if most is not None and number > most:
            raise argparse.ArgumentTypeError(f"must be at most {most:,}; got {text[:60]}")
        return int(number)

    return parsed


def count_or_all(text: str) -> int | Literal["all"]:
    """A whole number from 0, or the word all."""
    return "all" if text == "all" else count(least=0)(text)


def size(text: str) -> int:
    """Bytes: 500M, 8G, 8GB, or a plain number of them; a kilobyte is 1024."""
    number = _scaled(text, _SIZE, _BYTES)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a size; write it as 500M or 8G")
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least one byte, such as 500M or 8G; got {text[:60]}")
    return int(number)


def minutes(text: str) -> float:
    """Minutes: 90, 1h30m, 45s, or a number with a point."""
    number, parts = _decimal(text), _TIME.fullmatch(text.strip())
    if number is not None:
        found = float(number)
    elif text.strip() and parts is not None:
        hours, mins, seconds = (float(parts[unit] or 0) for unit in "hms")
        found = 60 * hours + mins + seconds / 60
    else:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a time; write it as 90 (minutes), 1h30m or 45s")
    if found <= 0:
        raise argparse.ArgumentTypeError(f"must be above 0, such as 90 (minutes), 1h30m or 45s; got {text[:60]}")
    return found


def fraction(text: str) -> float:
    """A number from 0 to 1."""
    found = number(text)
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, such as 0.99; got {text[:60]}")
    return found


def number(text: str) -> float:
    """Any finite number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a number; write it as 0.5")
    return found


def port(text: str) -> int:
    """A TCP port; 0 takes any free one."""
    if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"must be between 0 and {_MAX_PORT}, such as 8000; got {text[:60]}")
    return int(text)


def _scaled(text: str, form: re.Pattern[str], units: dict[str, int]) -> Decimal | None:
    """A number times its unit, without rounding; None if the text is not a number."""
    match = form.fullmatch(text.strip())
    found = _decimal(match["number"]) if match else None
    return found * units[match["unit"].upper()] if match and found is not None else None


def _decimal(text: str) -> Decimal | None:
    """A finite number of a reasonable length, with or without separators of thousands."""
    text = text.strip()
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", text):
        text = text.replace(",", "")
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() and found.adjusted() < 30 else None
