"""Bar charts: how many MDPs have which least k, how many states each layer has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.svg import (
    Axis,
    chart,
    element,
    joined,
    linear_ticks,
    log_tick_text,
    log_ticks,
    text,
    tick_text,
)

_LOG_RATIO = 200  # layers whose sizes differ by more are drawn on a logarithmic axis
_MAX_BARS = 150


@dataclass(frozen=True)
class Bar:
    """The MDPs with one least k."""

    label: str
    solved: int
    unsolved: int
    not_run: int = 0

    @property
    def total(self) -> int:
        return self.solved + self.unsolved + self.not_run


def min_k_chart(bars: Sequence[Bar], *, algorithm: str = "PPO", width: int = 440, height: int = 300) -> Markup:
    """Number of MDPs by the least k for which they are k-QVI-solvable, split by whether the algorithm solved them."""
    left, right, top, bottom = 46, width - 10, 44, height - 46
    y_axis = Axis(0, max((bar.total for bar in bars), default=1) * 1.08 or 1, bottom, top)
    slot = (right - left) / max(1, len(bars))
    kinds = [("solved", f"solved by {algorithm}"), ("unsolved", "not solved")]
    if any(bar.not_run for bar in bars):
        kinds.append(("not-run", "not run"))
    parts = []
    for number, bar in enumerate(bars):
        x = left + (number + 0.5) * slot
        parts.append(_stack(bar, x, min(64.0, slot * 0.62), y_axis))
        parts.append(text(x, bottom + 16, bar.label, "tick middle"))
    ticks = [(tick, tick_text(tick)) for tick in linear_ticks(0, y_axis.high, 4) if tick == int(tick)]
    return chart(
        width,
        height,
        f"Least k of {sum(bar.total for bar in bars)} MDPs, split by whether {algorithm} solved them",
        _legend(kinds, left, 18),
        marks.y_ticks(y_axis, ticks, left, right),
        marks.frame(left, top, right, bottom),
        marks.x_title("least k for which the MDP is k-QVI-solvable", left, right, height - 8),
        marks.y_title("MDPs", 13, top, bottom),
        *parts,
    )


def layer_chart(layers: Sequence[int], *, width: int = 680, height: int = 200) -> Markup:
    """States that can be reached at each time."""
    left, right, top, bottom = 66, width - 10, 12, height - 46
    group = math.ceil(len(layers) / _MAX_BARS)  # long episodes: several times per bar, which shows the largest
    shown = [max(layers[start : start + group]) for start in range(0, len(layers), group)]
    positive = [size for size in shown if size > 0] or [1]
    is_log = max(positive) > _LOG_RATIO * min(positive)
    high = math.log10(max(positive)) if is_log else float(max(positive))
    y_axis = Axis(-0.3 if is_log else 0.0, high * 1.05, bottom, top)
    ticks = log_ticks(0, high, 4) if is_log else linear_ticks(0, high, 4)
    slot = (right - left) / len(shown)
    times = Axis(0, len(layers), left, right)
    return chart(
        width,
        height,
        f"States that can be reached at each time: {len(layers)} layers, at most {max(layers):,} states",
        marks.y_ticks(y_axis, [(t, log_tick_text(t) if is_log else numbers.count(t)) for t in ticks], left, right),
        joined(
            element(
                "rect",
                element("title", f"time {number * group}: {size:,} states"),
                x=left + number * slot + min(1.0, slot * 0.1),
                y=y_axis(math.log10(size) if is_log else size),
                width=slot - min(2.0, slot * 0.2),
                height=max(0.0, bottom - y_axis(math.log10(size) if is_log else size)),
                class_="layer",
            )
            for number, size in enumerate(shown)
            if size > 0
        ),
        marks.frame(left, top, right, bottom),
        joined(
            text(times(tick + 0.5), bottom + 16, tick_text(tick), "tick middle")
            for tick in linear_ticks(0, len(layers) - 1, 8)
            if tick == int(tick)
        ),
        marks.x_title("time", left, right, height - 8),
        marks.y_title("states", 16, top, bottom),
    )


def _stack(bar: Bar, x: float, width: float, y_axis: Axis) -> Markup:
    """Solved below, then unsolved, then what was not run, with the total above."""
    parts, base = [], 0
    for count, kind in ((bar.solved, "solved"), (bar.unsolved, "unsolved"), (bar.not_run, "not-run")):
        if count:
            top, low = y_axis(base + count), y_axis(base)
            label = element("title", f"k = {bar.label}: {count} {kind.replace('-', ' ')}")
            parts.append(
                element("rect", label, x=x - width / 2, y=top, width=width, height=low - top, class_=f"bar {kind}")
            )
            base += count
    parts.append(text(x, y_axis(base) - 6, str(bar.total), "value middle"))
    return joined(parts)


def _legend(kinds: Sequence[tuple[str, str]], x: float, y: float) -> Markup:
    parts = []
    for kind, name in kinds:
        parts.append(element("rect", x=x, y=y - 10, width=12, height=12, class_=f"bar {kind}"))
        parts.append(text(x + 18, y, name, "label"))
        x += 38 + 7.5 * len(name)
    return joined(parts)
