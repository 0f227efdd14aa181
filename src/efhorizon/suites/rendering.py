"""What an environment draws of its states for people: an RGB image, else text, else nothing.

An environment that has drawn may hold windows and surfaces, which can be neither copied nor compared. So states are
drawn by another environment of the same kind, made for it (`Painter`); the one that is searched never draws.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from efhorizon.suites.simulator import Screen, SimulatorError

IMAGE_MODE, TEXT_MODE = "rgb_array", "ansi"
_LARGEST_SIDE = 4096  # pixels
_LONGEST_TEXT = 4000  # characters

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MARKED = re.compile(r"\x1b\[(?!0?m)[0-9;]*m([^\x1b]*)\x1b\[0?m")  # a character in another colour: the agent, mostly
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

Drawing = Screen | str


class Drawn(Protocol):
    """A simulator whose environment can render."""

    @property
    def environment(self) -> Any: ...

    def set_state(self, state: bytes) -> None: ...


class Painter:
    """Draws states of one environment in another one, which is made when it is first needed."""

    def __init__(self, modes: Any, make: Callable[[str], Drawn]) -> None:
        """`modes` are those of the environment's metadata; `make` makes its twin with a render mode."""
        offered = tuple(modes or ())
        self._make = make
        self._untried = [mode for mode in (IMAGE_MODE, TEXT_MODE) if mode in offered]
        self._twin: Drawn | None = None
        self._reason = "the environment has no render mode 'rgb_array' or 'ansi'"

    def drawing(self, state: bytes) -> Drawing:
        """An image [H, W, 3 or 1], or a text; the error says why there is neither."""
        while self._untried:
            try:
                _without_window()
                with contextlib.redirect_stdout(sys.stderr):  # stdout is for the command's own result
                    if self._twin is None:
                        self._twin = self._make(self._untried[0])
                    self._twin.set_state(state)
                    return _checked(self._twin.environment.render())
            except Exception as error:  # a missing package, no display, a bug in the user's drawing
                self._reason = f"{self._untried[0]}: {(str(error).splitlines() or [type(error).__name__])[0]}"
                self.close()
                del self._untried[0]
        raise SimulatorError(f"the environment draws no picture ({self._reason})")

    def close(self) -> None:
        if self._twin is not None:
            with contextlib.suppress(Exception):
                self._twin.environment.close()
            self._twin = None


def plain_text(text: str) -> str:
    """Text that was meant for a terminal, without its colours; what was coloured is put in brackets."""
    marked = _MARKED.sub(lambda found: f"[{_COLOUR.sub('', found[1])}]", text)
    lines = _ESCAPE.sub("", marked).expandtabs().splitlines()
    return "\n".join("".join(c for c in line if c.isprintable()).rstrip() for line in lines).strip("\n")


def _without_window() -> None:
    """Where there is no screen, let pygame do without one: it would complain on stderr, or fail."""
    if sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")


def _checked(rendered: Any) -> Drawing:
    if isinstance(rendered, list) and rendered:  # of all frames since the last call, the newest
        rendered = rendered[-1]
    if hasattr(rendered, "getvalue"):  # a StringIO
        rendered = rendered.getvalue()
    if isinstance(rendered, str):
        text = plain_text(rendered)[:_LONGEST_TEXT]
        if not text.strip():
            raise SimulatorError("render() gave an empty text")
        return text
    image = np.asarray(rendered)
    if image.ndim == 2:
        image = image[:, :, None]
    if image.ndim != 3 or image.dtype.kind not in "iuf" or not 0 < max(image.shape[:2]) <= _LARGEST_SIDE:
        raise SimulatorError(f"render() gave {type(rendered).__name__} of shape {image.shape}, not an image")
    if image.dtype.kind == "f" and float(image.max(initial=0)) <= 1:
        image = image * 255
    image = np.clip(image, 0, 255).astype(np.uint8)[:, :, :3]
    return image if image.shape[2] == 3 else image[:, :, :1]
