"""With --json, stdout is for the result alone: what an environment prints, in its steps say, goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

_stdout: list[TextIO] = []


def results() -> TextIO:
    """Where the result of the command that runs is to be written."""
    return _stdout[-1] if _stdout else sys.stdout


@contextmanager
def for_results_only() -> Iterator[None]:
    """Only what is written to `results()` reaches stdout."""
    _stdout.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _stdout.pop()
