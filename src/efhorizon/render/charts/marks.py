"""What several charts share: suites with their colour and shape, legends, the frame of a plot."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from efhorizon.render.charts.svg import Axis, element, joined, line, path, text

SUITES = ("atari", "procgen", "minigrid", "gymnasium")
OTHER_SUITE = "other"
SUITE_TITLES = {"atari": "Atari", "procgen": "Procgen", "minigrid": "MiniGrid", "gymnasium": "Gymnasium"}
_CHARACTER_WIDTH = 9.0  # of the legend's text where it is largest, on phones

# colours alone would not tell suites apart for everybody
_SHAPES = {
    "atari": "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0Z",
    "procgen": "M-3.3-3.3h6.6v6.6h-6.6Z",
    "minigrid": "M0-4.4L4.2 3.2H-4.2Z",
    "gymnasium": "M0-4.8L4.8 0L0 4.8L-4.8 0Z",
    OTHER_SUITE: "M-4-1.3h2.7v-2.7h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7Z",
}


def suite_class(suite: str) -> str:
    """The name of a suite that style sheets know."""
    return suite if suite in SUITES else OTHER_SUITE


def suite_title(suite: str) -> str:
    return SUITE_TITLES.get(suite, suite)


def mark(suite: str, x: float, y: float) -> Markup:
    known = suite_class(suite)
    return element(
        "path", d=_SHAPES[known], class_=f"mark suite-{known}", transform=f"translate({round(x, 1)} {round(y, 1)})"
    )


def suite_legend(suites: Sequence[str], x: float, y: float) -> Markup:
    """The marks of some suites with their names, side by side."""
    parts = []
    for suite in suites:
        parts += [mark(suite, x + 4, y - 4), text(x + 14, y, suite_title(suite), "label")]
        x += 40 + _CHARACTER_WIDTH * len(suite_title(suite))
    return joined(parts)


def line_legend(entries: Sequence[tuple[str, str]], x: float, y: float) -> Markup:
    """Lines (class, name), side by side."""
    parts = []
    for class_, name in entries:
        parts += [line(x, y - 4, x + 22, y - 4, class_), text(x + 28, y, name, "label")]
        x += 48 + _CHARACTER_WIDTH * len(name)
    return joined(parts)


def x_ticks(axis: Axis, ticks: Sequence[tuple[float, str]], bottom: float, top: float) -> Markup:
    """Grid lines and numbers of a horizontal axis."""
    return joined(
        line(axis(at), top, axis(at), bottom, "grid") + text(axis(at), bottom + 16, shown, "tick middle")
        for at, shown in ticks
    )


def y_ticks(axis: Axis, ticks: Sequence[tuple[float, str]], left: float, right: float) -> Markup:
    """Grid lines and numbers of a vertical axis."""
    return joined(
        line(left, axis(at), right, axis(at), "grid") + text(left - 8, axis(at) + 4, shown, "tick end")
        for at, shown in ticks
    )


def x_title(content: str, left: float, right: float, y: float) -> Markup:
    return text((left + right) / 2, y, content, "label middle")


def y_title(content: str, x: float, top: float, bottom: float) -> Markup:
    middle = round((top + bottom) / 2, 1)
    return text(x, middle, content, "label middle", transform=f"rotate(-90 {round(x, 1)} {middle})")


def frame(left: float, top: float, right: float, bottom: float) -> Markup:
    """The two lines that carry numbers."""
    return element("path", d=path([(left, top), (left, bottom), (right, bottom)]), class_="frame")
