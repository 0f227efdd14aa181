"""Progress for people who ask for it: one line on stderr that changes, or a line now and then in a file or notebook."""

from __future__ import annotations

import shutil
import sys
import time

_SECONDS_A_LINE = 5.0


class ProgressLine:
    """Shows the newest of many lines; nothing at all unless it is asked to."""

    def __init__(self, show: bool) -> None:
        self._show, self._is_live = show, show and sys.stderr.isatty()
        self._last = 0.0

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if not self._show or (not self._is_live and now - self._last < _SECONDS_A_LINE):
            return
        self._last = now
        if self._is_live:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r{text[:width]:{width}}")
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            sys.stderr.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
