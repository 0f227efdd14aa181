"""One MDP: every bound and what each algorithm needed, on one logarithmic axis of timesteps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.svg import Axis, chart, element, joined, line, log_tick_text, log_ticks, path, text

_ROW, _LEFT, _RIGHT, _TOP = 44, 14, 92, 10
_CUT = 16.0  # powers of ten: larger values become an arrow, or they would squeeze all others


@dataclass(frozen=True)
class Rung:
    """One line: a bound, or what an algorithm needed."""

    title: str
    log10: float | None  # of timesteps; infinite, or None where it does not apply
    kind: str  # "bound", "horizon" for the effective horizon's own, or "practice"
    runs: tuple[float, ...] = ()  # timesteps of single runs
    budget: float | None = None  # timesteps that a run had at most


def ladder(rungs: Sequence[Rung], *, name: str, width: int = 680) -> Markup:
    """Bounds first, then practice; the name above each line, a dot for each run."""
    height = _TOP + _ROW * len(rungs) + 46
    right, bottom = width - _RIGHT, height - 40
    axis = _axis(rungs, _LEFT, right)
    return chart(
        width,
        height,
        f"Bounds and empirical sample complexities of {name}",
        marks.x_ticks(axis, [(at, log_tick_text(at)) for at in log_ticks(axis.low, axis.high, 8)], bottom, _TOP),
        marks.x_title("timesteps", _LEFT, right, height - 6),
        joined(_rung(rung, _TOP + number * _ROW + 32, axis) for number, rung in enumerate(rungs)),
    )


def _axis(rungs: Sequence[Rung], left: float, right: float) -> Axis:
    known = [r.log10 for r in rungs if r.log10 is not None and math.isfinite(r.log10)]
    known += [math.log10(max(1.0, steps)) for r in rungs for steps in r.runs if math.isfinite(steps)]
    low = math.floor(min(known, default=2.0))
    high = max((at for at in known if at <= _CUT), default=low + 4.0)
    return Axis(low, max(high + 0.3, low + 2.0), left, right)


def _rung(rung: Rung, y: float, axis: Axis) -> Markup:
    label = text(axis.start, y - 12, rung.title, "label")
    if rung.log10 is None:
        return label + text(axis.start + 6, y + 4, "does not apply", "note")
    inside = math.isfinite(rung.log10) and rung.log10 <= axis.high
    x = axis(rung.log10) if inside else axis.end
    places = [axis(math.log10(max(1.0, steps))) for steps in rung.runs if math.isfinite(steps)]
    runs = joined(element("circle", cx=place, cy=y, r=2.4, class_="run") for place in places)
    if rung.kind == "practice" and not inside:
        last = max(places, default=axis.start)
        return label + runs + text(last + 12, y + 4, numbers.steps_needed(math.inf, rung.budget), "note")
    kind = f"rung {rung.kind}"
    arrow = path([(x - 2, y - 5), (x + 7, y), (x - 2, y + 5)], closed=True)
    mark = element("circle", cx=x, cy=y, r=5, class_=kind) if inside else element("path", d=arrow, class_=kind)
    value = text(max([x, *places]) + 12, y + 4, numbers.from_log10(rung.log10), "value")
    return joined((label, line(axis.start, y, x, y, f"rail {rung.kind}"), runs, mark, value))
