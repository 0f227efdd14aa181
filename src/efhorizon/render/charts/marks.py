"""What several charts share: suites with their colour and shape, legends, the frame of a plot."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from markupsafe import Markup

from efhorizon.render.charts.svg import Axis, element, joined, line, path, text
from efhorizon.suites import registry

OTHER_SUITE = "other"  # stands for all that are not installed
_CHARACTER_WIDTH = 9.0  # of the legend's text at its largest, on phones


def suites_in(suites: Collection[str]) -> list[str]:
    """These suites in the order of legends, with one name for all that are not installed."""
    known = [suite.name for suite in registry.suites()]
    others = [OTHER_SUITE] if set(suites) - set(known) else []
    return [suite for suite in known if suite in suites] + others


def suite_colour(suite: str) -> str:
    """The colour of a suite, as style sheets call it."""
    return registry.suite(suite).mark.colour


def suite_title(suite: str) -> str:
    return registry.suite(suite).title


def mark(suite: str, x: float, y: float) -> Markup:
    """Each suite has its own shape, since not everybody can distinguish the colours."""
    shape = registry.suite(suite).mark
    return element(
        "path",
        d=shape.path,
        class_=f"mark suite-{shape.colour}",
        transform=f"translate({round(x, 1)} {round(y, 1)})",
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
