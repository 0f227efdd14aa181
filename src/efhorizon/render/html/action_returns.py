"""The actions of the deciding state as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from efhorizon.study.analysis_record import DecidingState, ReturnHistogram


@dataclass(frozen=True)
class ActionReturns:
    """The returns after one action, or after several that do not differ in any way."""

    names: tuple[str, ...]
    q: float
    optimal_q: float
    is_optimal: bool
    histogram: ReturnHistogram | None  # None where there is none, or an empty one


def action_returns(deciding: DecidingState) -> list[ActionReturns]:
    """Actions that do not differ share a line: of Atari's 18 often only a few do different things."""
    merged: dict[tuple[object, ...], ActionReturns] = {}
    for action in deciding.actions:
        histogram = action.histogram if action.histogram is not None and action.histogram.returns else None
        found = ActionReturns((action.name,), action.q, action.optimal_q, action.is_optimal, histogram)
        of_returns = None if histogram is None else (*histogram.returns, *histogram.probabilities)
        key = (found.q, found.optimal_q, found.is_optimal, of_returns)
        merged[key] = replace(found, names=merged[key].names + found.names) if key in merged else found
    return list(merged.values())
