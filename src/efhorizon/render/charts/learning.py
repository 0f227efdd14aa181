"""Learning curves: the median as a line, the range over runs shaded, the optimal return dashed where it is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from markupsafe import Markup

from efhorizon.evaluation.records import GORP
from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.svg import Axis, chart, element, joined, line, linear_ticks, path, text, tick_text
from efhorizon.render.learning_curves import ALGORITHM_TITLES, Curve, Floats, thinned

_KNOWN = frozenset(ALGORITHM_TITLES)
_VISIBLE = 0.01  # of the whole range of returns


def learning_chart(
    curves: Sequence[Curve],
    *,
    name: str,
    optimal_return: float | None,
    exploration_return: float | None = None,
    steps_axis: Literal["log", "linear"] = "log",
    width: int = 680,
    height: int = 360,
) -> Markup:
    """Return against timesteps, one line per algorithm."""
    left, right, top, bottom = 66, width - 16, 40, height - 46
    is_log = steps_axis == "log"
    busy = _from_first_change(curves) if is_log else curves
    shown = [thinned(curve, logarithmic=is_log) for curve in busy]
    x_axis = _steps_axis(shown, is_log, left, right)
    y_axis = _return_axis(shown, optimal_return, exploration_return, bottom, top)
    title = f"Learning curves on {name}: " + ", ".join(map(_name, curves))
    return chart(
        width,
        height,
        title,
        marks.line_legend(
            [(f"curve {_class(c)}", ALGORITHM_TITLES.get(c.algorithm, c.algorithm)) for c in shown], left, 18
        ),
        marks.x_ticks(x_axis, _step_ticks(x_axis, is_log), bottom, top),
        marks.y_ticks(y_axis, [(t, tick_text(t)) for t in linear_ticks(y_axis.low, y_axis.high)], left, right),
        marks.frame(left, top, right, bottom),
        marks.x_title("timesteps", left, right, height - 8),
        marks.y_title("return", 16, top, bottom),
        joined(_shade(curve, x_axis, y_axis, is_log) for curve in shown),
        _level(optimal_return, "optimal", x_axis, y_axis, is_right=True) if optimal_return is not None else "",
        _level(exploration_return, "random", x_axis, y_axis, is_right=False) if exploration_return is not None else "",
        joined(_line(curve, x_axis, y_axis, is_log) for curve in shown),
    )


def _from_first_change(curves: Sequence[Curve]) -> list[Curve]:
    """Without the powers of ten in which nothing happens: GORP's curve begins at the very first timestep."""
    starts = [_first_change(curve) if curve.algorithm == GORP else float(curve.steps[0]) for curve in curves]
    start = min((each for each in starts if each is not None), default=1.0)
    return [_clipped(curve, 10.0 ** math.floor(_log10(start))) for curve in curves]


def _first_change(curve: Curve) -> float | None:
    """The last step before any of the lines moves so far that it can be seen; None where none does."""
    lines = np.stack([curve.median, curve.low, curve.high])
    moves = (abs(lines[:, 1:] - lines[:, :1]) > _VISIBLE * np.ptp(lines)).any(axis=0)
    return float(curve.steps[moves.argmax()]) if moves.any() else None


def _clipped(curve: Curve, start: float) -> Curve:
    before = int((curve.steps < start).sum())
    if before == 0:
        return curve
    last = before - 1  # at the start: stands for all steps before it
    steps = np.maximum(curve.steps[last:], start)
    return replace(curve, steps=steps, median=curve.median[last:], low=curve.low[last:], high=curve.high[last:])


def _name(curve: Curve) -> str:
    return ALGORITHM_TITLES.get(curve.algorithm, curve.algorithm)


def _class(curve: Curve) -> str:
    return f"algorithm-{curve.algorithm if curve.algorithm in _KNOWN else 'other'}"


def _log10(steps: float) -> float:
    return math.log10(max(1.0, steps))


def _steps_axis(curves: Sequence[Curve], is_log: bool, left: float, right: float) -> Axis:
    first = min((float(curve.steps[0]) for curve in curves), default=1e3)
    last = max((float(curve.steps[-1]) for curve in curves), default=1e6)
    if not is_log:
        return Axis(0.0, max(last, 1.0), left, right)
    low, high = _log10(first), _log10(last)
    return Axis(low, high, left, right) if high - low >= 0.5 else Axis(low - 0.25, low + 0.5, left, right)


def _step_ticks(axis: Axis, is_log: bool) -> list[tuple[float, str]]:
    if not is_log:
        return [(tick, numbers.short_steps(tick)) for tick in linear_ticks(axis.low, axis.high, 6)]
    factors = (1,) if axis.high - axis.low > 3 else (1, 3) if axis.high - axis.low > 1.5 else (1, 2, 5)
    listed = [
        factor * 10.0**power for power in range(math.floor(axis.low), math.ceil(axis.high) + 1) for factor in factors
    ]
    return [
        (math.log10(steps), numbers.short_steps(steps))
        for steps in listed
        if axis.low - 1e-9 <= math.log10(steps) <= axis.high + 1e-9
    ]


def _return_axis(
    curves: Sequence[Curve], optimal: float | None, exploration: float | None, bottom: float, top: float
) -> Axis:
    values = [level for level in (optimal, exploration) if level is not None]
    for curve in curves:
        values += [float(curve.low.min()), float(curve.high.max())]
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or max(1.0, abs(high)) * 0.1
    return Axis(low - margin, high + margin, bottom, top)


def _level(value: float, name: str, x_axis: Axis, y_axis: Axis, *, is_right: bool) -> Markup:
    """A return marked along the whole chart; its name is where curves rarely are."""
    y = y_axis(value)
    place, class_ = (x_axis.end, "note end") if is_right else (x_axis.start + 6, "note")
    label = text(place, y - 5, f"{name} {numbers.significant(value)}", class_)
    return line(x_axis.start, y, x_axis.end, y, f"level {name}") + label


def _shade(curve: Curve, x_axis: Axis, y_axis: Axis, is_log: bool) -> Markup:
    above = _placed(curve, curve.high, x_axis, y_axis, is_log)
    below = _placed(curve, curve.low, x_axis, y_axis, is_log)
    return element("path", d=path(above + below[::-1], closed=True), class_=f"range {_class(curve)}")


def _line(curve: Curve, x_axis: Axis, y_axis: Axis, is_log: bool) -> Markup:
    points = _placed(curve, curve.median, x_axis, y_axis, is_log)
    return element("path", d=path(points), class_=f"curve {_class(curve)}")


def _placed(curve: Curve, returns: Floats, x_axis: Axis, y_axis: Axis, is_log: bool) -> list[tuple[float, float]]:
    """Pixels of a curve. A run of equal returns needs its ends only."""
    changes = np.flatnonzero(np.diff(returns)) + 1
    kept = np.unique(np.concatenate(([0, len(returns) - 1], changes, changes - 1)))
    return [
        (x_axis(_log10(steps) if is_log else steps), y_axis(value))
        for steps, value in zip(curve.steps[kept].tolist(), returns[kept].tolist(), strict=True)
    ]
