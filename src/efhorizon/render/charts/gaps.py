"""The gaps of greedy play over time: how much better the chosen action is than the next best, with 90% intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from efhorizon.render.charts import marks
from efhorizon.render.charts.svg import Axis, chart, element, joined, line, linear_ticks, text, tick_text


def gaps_chart(path: Sequence[Mapping[str, Any]], *, name: str, no_signal_from: int | None) -> Markup:
    """One stem for each step of a path as `Diagnosis.as_json` has it; grey where the interval does not exclude 0."""
    width, height = 680, 300
    left, right, top, bottom = 66, width - 16, 30, height - 46
    lows = [float(each["gap"]["low"]) for each in path]
    highs = [float(each["gap"]["high"]) for each in path]
    x_axis = Axis(-0.5, max(0.5, len(path) - 0.5), left, right)
    y_axis = Axis(min(0.0, *lows), max(0.0, *highs) or 1.0, bottom, top)
    stems = [_stem(each, x_axis, y_axis) for each in path]
    return chart(
        width,
        height,
        f"Gaps on the path of greedy play in {name}",
        _silence(no_signal_from, len(path), x_axis, top, bottom),
        marks.x_ticks(x_axis, [(t, tick_text(t)) for t in linear_ticks(0, max(1, len(path) - 1))], bottom, top),
        marks.y_ticks(y_axis, [(t, tick_text(t)) for t in linear_ticks(y_axis.low, y_axis.high)], left, right),
        marks.frame(left, top, right, bottom),
        line(left, y_axis(0.0), right, y_axis(0.0), "level"),
        joined(stems),
        marks.x_title("step", left, right, height - 8),
        marks.y_title("gap in return", 16, top, bottom),
    )


def _stem(each: Mapping[str, Any], x_axis: Axis, y_axis: Axis) -> Markup:
    x, gap = x_axis(float(each["step"])), each["gap"]
    kind = "optimal" if each["settled"] else "suboptimal"
    return joined(
        [
            line(x, y_axis(float(gap["low"])), x, y_axis(float(gap["high"])), f"stem {kind}"),
            element("circle", cx=x, cy=y_axis(float(gap["estimate"])), r=2.6, class_=f"stem {kind}"),
        ]
    )


def _silence(start: int | None, length: int, x_axis: Axis, top: float, bottom: float) -> Markup:
    """The part of the path where random play gives no signal."""
    if start is None:
        return Markup("")
    left, right = x_axis(start - 0.5), x_axis(length - 0.5)
    band = element("rect", x=left, y=top, width=right - left, height=bottom - top, class_="band")
    return joined([band, text(left + 4, top + 14, "no signal", "note")])
