"""The actions of the deciding state as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from efhorizon.study.analysis_record import DecidingState, ReturnHistogram


@dataclass(frozen=True)
class ActionLaw:
    """What follows one action, or several between which nothing differs."""

    names: tuple[str, ...]
    q: float
    optimal_q: float
    is_optimal: bool
    histogram: ReturnHistogram | None  # None where there is none, or an empty one


def action_laws(deciding: DecidingState) -> list[ActionLaw]:
    """Actions in which nothing differs share a line: of Atari's 18 often only a few do different things."""
    merged: dict[tuple[object, ...], ActionLaw] = {}
    for action in deciding.actions:
        histogram = action.histogram if action.histogram is not None and action.histogram.returns else None
        law = ActionLaw((action.name,), action.q, action.optimal_q, action.is_optimal, histogram)
        of_returns = None if histogram is None else (*histogram.returns, *histogram.probabilities)
        key = (law.q, law.optimal_q, law.is_optimal, of_returns)
        merged[key] = replace(law, names=merged[key].names + law.names) if key in merged else law
    return list(merged.values())
