"""Where commands print: results to stdout, everything else to stderr.

Names and messages can come from files that somebody else made. Nothing in them reaches the terminal but what prints.
"""

from __future__ import annotations

import json
import sys
import time
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.segment import Segment
from rich.text import Text

from efhorizon.commands import _exit, _output
from efhorizon.render.terminal.layout import printable

_ENDLESS = 100_000  # columns if it is not a terminal: nothing is cut off or wrapped in a file or a pipe
_SECONDS_A_LINE = 30.0
_LONGEST = 500  # characters of an error: what a file or an argument says may be longer


def _width(stream: TextIO) -> int | None:
    """None for a terminal, which knows its own width."""
    return None if stream.isatty() else _ENDLESS


class _Console(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, before colours are added: whatever came here, no sequence that steers a terminal leaves."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment("\n".join(map(printable, segment.text.split("\n"))), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # `main` knows what that means; rich would exit with an error


messages = _Console(stderr=True, highlight=False, emoji=False, width=_width(sys.stderr))


def show(parts: Iterable[RenderableType], console: Console | None = None) -> None:
    """Print lines of markup, unwrapped, and tables; to stdout unless a console is given."""
    console = console or _Console(file=_output.results(), highlight=False, emoji=False, width=_width(_output.results()))
    for part in parts:
        if isinstance(part, str):
            console.print(printable(part), soft_wrap=True)
        else:
            console.print(part)


def print_json(content: Any) -> None:
    """Print a result for programs; there is no other way to do so."""
    _output.results().write(json.dumps(content, indent=1) + "\n")


def say(text: str, style: str | None = None) -> None:
    """One line on stderr, as it is."""
    messages.print(printable(text), style=style, markup=False, soft_wrap=True)


def failed(message: object, code: int = _exit.ERROR) -> int:
    """Say in one line what went wrong; the exit code."""
    text = str(message)
    say(f"efhorizon: {text if len(text) <= _LONGEST else text[:_LONGEST] + ' ...'}", style="red")
    return code


def open_in_browser(address: str, name: str) -> None:
    """Open a page, or ask the user to."""
    if not webbrowser.open(address):
        say(f"no browser was found; open {name} yourself")


def is_live() -> bool:
    """Whether stderr is a terminal; rich says yes to FORCE_COLOR, which is about colours only."""
    return sys.stderr.isatty()


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner with a text, and a function to change it; nothing if stderr is not a terminal."""
    if not is_live():
        yield lambda _: None
        return
    with messages.status(Text(printable(text))) as status:
        yield lambda changed: status.update(Text(printable(changed)))


def bars(*columns: ProgressColumn) -> Progress:
    """Progress bars that disappear at the end; none if stderr is not a terminal."""
    return Progress(*columns, console=messages, transient=True, disable=not is_live())


class LineColumn(TextColumn):
    """A text of a task, such as "{task.description}", in one line as it is."""

    def render(self, task: Task) -> Text:
        return Text(printable(self.text_format.format(task=task)))


class SlowLines:
    """Progress if stderr is not a terminal: one line every half minute."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def restart(self) -> None:
        """Something else was printed just now."""
        self._last = time.monotonic()

    def say(self, text: str, style: str | None = None) -> None:
        if not is_live() and time.monotonic() - self._last > _SECONDS_A_LINE:
            self._last = time.monotonic()
            say(text, style)
