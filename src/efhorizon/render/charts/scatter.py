"""One mark per MDP: what a bound says against what an algorithm needed, both on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.svg import Axis, chart, element, joined, line, log_tick_text, log_ticks, text

_BAND = 30  # pixels for what has no number: unsolved MDPs at the top, infinite bounds on the right
_SPREAD = 7  # unsolved MDPs are spread over this many heights, so that few hide each other
_PADDING = 0.25  # powers of ten around the data


@dataclass(frozen=True)
class Point:
    """One MDP."""

    name: str
    suite: str
    bound: float  # log10 of timesteps; infinite where the bound is
    steps: float  # timesteps that the algorithm needed; infinite where it did not get there
    link: str | None = None
    key: str | None = None  # equal for one MDP in all charts of a page


def scatter(
    points: Sequence[Point],
    *,
    bound_title: str,
    algorithm: str,
    width: int = 360,
    height: int = 320,
    with_legend: bool = False,
) -> Markup:
    """Bound against sample complexity, with the diagonal on which they agree."""
    some_infinite = any(math.isinf(point.bound) for point in points)
    left, bottom, top = (66 if with_legend else 50), height - 46, 14 + _BAND + (24 if with_legend else 0)
    right = width - 12 - (_BAND if some_infinite else 0)
    x_axis, y_axis = _axes(points, left, right, bottom, top)
    title = f"{bound_title} against the timesteps that {algorithm} needed, {len(points)} MDPs"
    suites = marks.suites_in({point.suite for point in points})
    return chart(
        width,
        height,
        title,
        marks.suite_legend(suites, left, 16) if with_legend else "",
        _unsolved_band(left, width - 12, top, algorithm),
        _infinite_band(right, top, bottom) if some_infinite else "",
        marks.x_ticks(x_axis, _ticks(x_axis, width), bottom, top),
        marks.y_ticks(y_axis, _ticks(y_axis, height), left, right),
        _diagonal(x_axis, y_axis),
        marks.frame(left, top, right, bottom),
        marks.x_title(f"{bound_title}, timesteps", left, right, height - 8),
        marks.y_title(f"{algorithm}, timesteps", 15, top, bottom),
        element(
            "g",
            *(_placed(point, number, x_axis, y_axis, top, right) for number, point in enumerate(points)),
            class_="points",
        ),
        has_links=any(point.link for point in points),
    )


def _axes(points: Sequence[Point], left: float, right: float, bottom: float, top: float) -> tuple[Axis, Axis]:
    bounds = [point.bound for point in points if math.isfinite(point.bound)] or [3.0, 7.0]
    needed = [math.log10(max(1.0, point.steps)) for point in points if math.isfinite(point.steps)] or [4.0, 6.7]
    x_low, x_high = _at_least_one(min(bounds) - _PADDING, max(bounds) + _PADDING)
    y_low, y_high = _at_least_one(min(needed) - _PADDING, max(needed) + _PADDING)
    return Axis(x_low, x_high, left, right), Axis(y_low, y_high, bottom, top)


def _at_least_one(low: float, high: float) -> tuple[float, float]:
    """An interval that contains at least one whole power of ten, with a margin."""
    missing = max(0.0, 1.5 - (high - low)) / 2
    return low - missing, high + missing


def _ticks(axis: Axis, pixels: float) -> list[tuple[float, str]]:
    return [(at, log_tick_text(at)) for at in log_ticks(axis.low, axis.high, round(pixels / 60))]


def _diagonal(x_axis: Axis, y_axis: Axis) -> Markup:
    """Where the bound is exactly what was needed, as far as both axes go."""
    low, high = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
    if low >= high:
        return Markup("")
    return line(x_axis(low), y_axis(low), x_axis(high), y_axis(high), "diagonal")


def _unsolved_band(left: float, right: float, top: float, algorithm: str) -> Markup:
    return joined(
        (
            element("rect", x=left, y=top - _BAND, width=right - left, height=_BAND, class_="band"),
            text(right, top - _BAND - 4, f"not solved by {algorithm}", "note end"),
        )
    )


def _infinite_band(left: float, top: float, bottom: float) -> Markup:
    return joined(
        (
            element("rect", x=left, y=top, width=_BAND, height=bottom - top, class_="band"),
            text(left + _BAND / 2, bottom + 16, numbers.INFINITE, "tick middle"),
        )
    )


def _placed(point: Point, number: int, x_axis: Axis, y_axis: Axis, top: float, right: float) -> Markup:
    x = x_axis(point.bound) if math.isfinite(point.bound) else right + _BAND / 2
    if math.isfinite(point.steps):
        y = y_axis(math.log10(max(1.0, point.steps)))
    else:
        y = top - 5 - (number % _SPREAD) * (_BAND - 10) / (_SPREAD - 1)
    needed = numbers.steps_needed(point.steps)
    shown = (marks.mark(point.suite, x, y), element("title", _label(point, needed)))
    if point.link is None:
        return element("g", *shown, class_="point", data_mdp=point.key)
    return element("a", *shown, href=point.link, class_="point", data_mdp=point.key)


def _label(point: Point, needed: str) -> str:
    return f"{point.name}\nbound {numbers.from_log10(point.bound)}, needed {needed}"
