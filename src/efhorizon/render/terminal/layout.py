"""What these functions share: lines, tables, and text inside markup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

Parts = Iterator[RenderableType]  # strings are lines of markup


def table(*columns: str, left: int = 1) -> Table:
    """A table without lines; all columns but the first ones, which hold names, are aligned to the right.

    In a narrow terminal cells are folded: nothing is ever cut off.
    """
    made = Table(box=None, pad_edge=False)
    for place, title in enumerate(columns):
        justify: Literal["left", "right"] = "left" if place < left else "right"
        made.add_column(title, justify=justify, overflow="fold", no_wrap=place < left)
    return made


def literal(text: object) -> str:
    """A text from anywhere for a place inside markup: it prints as it is, in one line."""
    return escape(printable(text))


def printable(text: object) -> str:
    """A text that cannot steer a terminal: control characters, ends of lines and marks of direction are spelled out."""
    given = str(text)
    if given.isprintable():
        return given
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in given)


def heading(text: str) -> Parts:
    """A title with an empty line above it."""
    yield ""
    yield f"[bold]{literal(text)}[/bold]"


def warned(text: str) -> str:
    return f"[yellow]{text}[/yellow]"


def bar(share: float, width: int) -> str:
    """A bar for a share of the longest one; never empty."""
    return f"[cyan]{'█' * max(1, round(width * share))}[/cyan]"
