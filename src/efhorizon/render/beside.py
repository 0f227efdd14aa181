"""One MDP of the published data set beside ours: what both faces show in a line."""

from __future__ import annotations

import math

from efhorizon.evaluation.beside import ALGORITHMS, BesideRow, Pair
from efhorizon.render import numbers
from efhorizon.render.numbers import MISSING


def cells(row: BesideRow) -> list[str]:
    """The figures of one MDP, theirs / ours."""
    same = {True: "same", False: "other", None: MISSING}[row.same_table]
    horizon = f"{_decimal(row.effective_horizon.theirs)} / {'' if row.is_exact else '≤ '}"
    return [
        same,
        _both(row.num_states),
        _both(row.min_k),
        _both(row.epw),
        horizon + _decimal(row.effective_horizon.ours),
        *(_both(row.needed[name]) for name in ALGORITHMS),
    ]


def _both(pair: Pair) -> str:
    return f"{_count(pair.theirs)} / {_count(pair.ours)}"


def _count(value: float | None) -> str:
    if value is None:
        return MISSING
    return "not" if math.isinf(value) else numbers.short_steps(value) if value >= 10_000 else f"{value:,.0f}"


def _decimal(value: float | None) -> str:
    return MISSING if value is None else "∞" if math.isinf(value) else f"{value:.2f}"
