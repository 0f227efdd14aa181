"""Predicted against measured change: how a policy (or shaping) changes what an algorithm needs, one mark per pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from efhorizon.evaluation.changes import ChangePoint
from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.svg import Axis, chart, element, joined, line, log_tick_text, log_ticks, text

_PADDING = 0.3  # in powers of ten
_BAND = 24  # pixels: the margin in which infinite predictions are shown


def change_scatter(
    points: Sequence[ChangePoint],
    *,
    bound_title: str,
    algorithm: str,
    width: int = 360,
    height: int = 320,
    links: Mapping[str, str] | None = None,
) -> Markup:
    """The factor that a bound predicts against the factor that was measured, with the diagonal on which they agree.

    On the lines at 1 nothing changes. Predictions of 0 or infinity, where the bound is infinite on one side, are on the
    margins.
    """
    left, right, top, bottom = 66 + _BAND, width - 12 - _BAND, 40, height - 46
    x_axis = _axis([point.predicted for point in points if math.isfinite(point.predicted)], left, right)
    y_axis = _axis([point.measured for point in points], bottom, top)
    title = f"The change that the {bound_title} predicts against that of {algorithm}, {len(points)} pairs"
    low, high = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
    return chart(
        width,
        height,
        title,
        marks.suite_legend(marks.suites_in({point.origin for point in points}), left, 16),
        marks.x_ticks(x_axis, _ticks(x_axis, width), bottom, top),
        marks.y_ticks(y_axis, _ticks(y_axis, height), left, right),
        line(x_axis(0.0), top, x_axis(0.0), bottom, "level random"),
        line(left, y_axis(0.0), right, y_axis(0.0), "level random"),
        line(x_axis(low), y_axis(low), x_axis(high), y_axis(high), "diagonal"),
        marks.frame(left, top, right, bottom),
        joined(_margins(points, left, right, top, bottom)),
        marks.x_title(f"{bound_title}: predicted factor", left, right, height - 8),
        marks.y_title(f"{algorithm}: measured factor", 15, top, bottom),
        element("g", *(_placed(point, x_axis, y_axis, links or {}) for point in points), class_="points"),
        has_links=bool(links),
    )


def _axis(values: Sequence[float], start: float, end: float) -> Axis:
    """No change is always in sight."""
    low, high = min([0.0, *values]) - _PADDING, max([0.0, *values]) + _PADDING
    missing = max(0.0, 1.5 - (high - low)) / 2
    return Axis(low - missing, high + missing, start, end)


def _ticks(axis: Axis, pixels: float) -> list[tuple[float, str]]:
    return [(at, "1" if at == 0 else log_tick_text(at)) for at in log_ticks(axis.low, axis.high, round(pixels / 60))]


def _margins(points: Sequence[ChangePoint], left: float, right: float, top: float, bottom: float) -> list[Markup]:
    """The margins that are used, each with what it stands for."""
    parts = []
    for value, x, shown in ((-math.inf, left - _BAND, "0"), (math.inf, right, numbers.INFINITE)):
        if any(point.predicted == value for point in points):
            parts += [
                element("rect", x=x, y=top, width=_BAND, height=bottom - top, class_="band"),
                text(x + _BAND / 2, bottom + 16, shown, "tick middle"),
            ]
    return parts


def _placed(point: ChangePoint, x_axis: Axis, y_axis: Axis, links: Mapping[str, str]) -> Markup:
    margins = {-math.inf: x_axis.start - _BAND / 2, math.inf: x_axis.end + _BAND / 2}
    x = margins[point.predicted] if math.isinf(point.predicted) else x_axis(point.predicted)
    label = f"{point.name}\npredicted {_factor(point.predicted)}, measured {_factor(point.measured)}"
    shown = (marks.mark(point.origin, x, y_axis(point.measured)), element("title", label))
    if point.name not in links:
        return element("g", *shown, class_="point")
    return element("a", *shown, href=links[point.name], class_="point")


def _factor(log10: float) -> str:
    return "0" if log10 == -math.inf else numbers.ratio(log10)
