"""Demonstrators from random to optimal: a thin line per MDP, a thick one for the median."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

from markupsafe import Markup

from efhorizon.evaluation.policies import PPO, GradedTable, Side
from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.svg import Axis, chart, element, joined, linear_ticks, log_ticks, path, text, tick_text

_WIDTH, _HEIGHT = 420, 340
_MEDIAN, _FAINT = "curve algorithm-ppo", 0.35
_BAND = 20  # pixels: the margin in which what is infinite is shown


def horizon_chart(found: GradedTable, *, width: int = _WIDTH, height: int = _HEIGHT) -> Markup:
    """The effective horizon with each demonstrator."""
    return _chart(found, lambda side: side.effective_horizon, "effective horizon H", False, width, height)


def needed_chart(found: GradedTable, *, width: int = _WIDTH, height: int = _HEIGHT) -> Markup:
    """What PPO needs with each demonstrator."""

    def needed(side: Side) -> float | None:
        timesteps = side.needed.get(PPO)
        return None if timesteps is None else math.log10(max(1.0, timesteps)) if timesteps < math.inf else math.inf

    return _chart(found, needed, "PPO, timesteps", True, width, height)


def _chart(
    found: GradedTable, measure: Callable[[Side], float | None], title: str, is_log: bool, width: int, height: int
) -> Markup:
    lines = [[None if side is None else measure(side) for side in mdp.sides] for mdp in found.mdps]
    finite = [value for values in lines for value in values if value is not None and math.isfinite(value)] or [0.0, 1.0]
    some_infinite = any(value == math.inf for values in lines for value in values)
    left, right, top, bottom = 66, width - 24, 40 + (_BAND if some_infinite else 0), height - 46
    margin = 0.06 * (max(finite) - min(finite)) or 0.5
    y_axis = Axis(min(finite) - margin, max(finite) + margin, bottom, top)
    x_axis = Axis(0, max(1, len(found.grades) - 1), left + 24, right - 12)
    ticks = (
        [(at, numbers.power_of_ten(at)) for at in log_ticks(y_axis.low, y_axis.high)]
        if is_log
        else [(at, tick_text(at)) for at in linear_ticks(y_axis.low, y_axis.high)]
    )
    names = ["random play", *(f"noise {numbers.significant(grade.noise)}" for grade in found.grades[1:])]

    def placed(values: Sequence[float | None]) -> list[tuple[float, float]]:
        """Pixels of what is known; what is infinite is on the upper margin."""
        return [
            (x_axis(place), y_axis(value) if math.isfinite(value) else top - _BAND / 2)
            for place, value in enumerate(values)
            if value is not None
        ]

    medians = [_median([values[place] for values in lines]) for place in range(len(found.grades))]
    return chart(
        width,
        height,
        f"{title} with each demonstrator, {len(found.mdps)} MDPs",
        marks.line_legend([("curve", "one MDP"), (_MEDIAN, "median")], left, 16),
        element("rect", x=left, y=top - _BAND, width=right - left, height=_BAND, class_="band")
        + text(right, top - _BAND - 4, "not solved" if is_log else "infinite", "note end")
        if some_infinite
        else "",
        marks.x_ticks(x_axis, list(enumerate(names)), bottom, top),
        marks.y_ticks(y_axis, ticks, left, right),
        marks.frame(left, top, right, bottom),
        marks.x_title("demonstrator", left, right, height - 8),
        marks.y_title(title, 16, top, bottom),
        joined(
            element("path", element("title", mdp.name), d=path(placed(values)), class_="curve", stroke_opacity=_FAINT)
            for mdp, values in zip(found.mdps, lines, strict=True)
            if placed(values)
        ),
        element("path", d=path(placed(medians)), class_=_MEDIAN) if placed(medians) else "",
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
