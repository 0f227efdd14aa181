"""The distribution of returns of one action: small, for a table with one row per action."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from efhorizon.render import numbers
from efhorizon.render.charts.svg import Axis, chart, element, joined, line, log_tick_text, text, tick_text

_VISIBLE = 0.01  # a bar of less than this share of the highest cannot be seen
_BOTTOM, _TOP = 6, 8


@dataclass(frozen=True)
class HistogramScale:
    """What the histograms of one state share, so that they can be compared."""

    low: float  # returns
    high: float
    is_log: bool
    least: float  # the least and the largest probability
    most: float


def histogram_scale(histograms: Sequence[tuple[Sequence[float], Sequence[float]]]) -> HistogramScale:
    """The scale for some histograms (returns, probabilities). Probabilities far apart need a logarithmic axis."""
    returns = [value for values, _ in histograms for value in values] or [0.0]
    probabilities = [p for _, chances in histograms for p in chances if p > 0] or [1.0]
    least, most = min(probabilities), max(probabilities)
    return HistogramScale(min(returns), max(returns), least < _VISIBLE * most, least, most)


def return_histogram(
    returns: Sequence[float],
    probabilities: Sequence[float],
    *,
    scale: HistogramScale,
    mean: float | None,
    name: str,
    is_optimal: bool,
    width: int = 340,
    height: int = 58,
) -> Markup:
    """Bars, or stems on a logarithmic axis; a line marks the mean."""
    left, right = (34 if scale.is_log else 10), width - 14
    x_axis = Axis(scale.low, scale.high, left + 6, right - 6)
    y_axis = _probability_axis(scale, height - _BOTTOM, _TOP)
    kind = "optimal" if is_optimal else "suboptimal"
    width_of_bar = min(14.0, 0.8 * (right - left) / max(1, len(returns)))
    parts = []
    for value, probability in zip(returns, probabilities, strict=True):
        if probability <= 0:
            continue
        x, y = x_axis(value), y_axis(math.log10(probability) if scale.is_log else probability)
        label = element("title", f"return {numbers.significant(value)}: {numbers.significant(probability)}")
        if scale.is_log:
            stem = line(x, height - _BOTTOM, x, y, f"stem {kind}")
            parts.append(element("g", label, stem, element("circle", cx=x, cy=y, r=3, class_=f"stem {kind}")))
        else:
            tall = max(0.5, height - _BOTTOM - y)
            parts.append(
                element(
                    "rect",
                    label,
                    x=x - width_of_bar / 2,
                    y=height - _BOTTOM - tall,
                    width=width_of_bar,
                    height=tall,
                    class_=f"bar {kind}",
                )
            )
    title = f"Returns after {name}, then random actions: mean {numbers.significant(mean)}"
    return chart(
        width,
        height,
        title,
        _probability_ticks(scale, y_axis, left, right),
        line(left, height - _BOTTOM, right, height - _BOTTOM, "frame"),
        joined(parts),
        # beside stems the mean would only hide the stem of the likeliest return
        line(x_axis(mean), 2, x_axis(mean), height - _BOTTOM, "mean") if mean is not None and not scale.is_log else "",
    )


def return_axis(scale: HistogramScale, *, width: int = 340) -> Markup:
    """The axis of returns below a column of histograms."""
    left, right = (34 if scale.is_log else 10), width - 14
    x_axis = Axis(scale.low, scale.high, left + 6, right - 6)
    ends = [scale.low] if scale.low == scale.high else [scale.low, scale.high]
    return chart(
        width,
        18,
        f"Returns from {tick_text(scale.low)} to {tick_text(scale.high)}",
        joined(text(x_axis(value), 13, tick_text(value), "tick middle") for value in ends),
    )


def _probability_axis(scale: HistogramScale, bottom: float, top: float) -> Axis:
    if not scale.is_log:
        return Axis(0.0, scale.most, bottom, top)
    return Axis(math.floor(math.log10(scale.least)) - 0.5, math.log10(scale.most), bottom, top)


def _probability_ticks(scale: HistogramScale, y_axis: Axis, left: float, right: float) -> Markup:
    if not scale.is_log:
        return Markup("")
    ends = (math.ceil(y_axis.low), math.floor(y_axis.high))
    return joined(
        line(left, y_axis(at), right, y_axis(at), "grid")
        + text(left - 3, y_axis(at) + 4, log_tick_text(at), "tick end")
        for at in sorted(set(ends))
    )
