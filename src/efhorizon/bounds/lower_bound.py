"""What no algorithm can beat on every MDP of a given effective horizon."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class LowerBound:
    effective_horizon: int  # the integer that the bound was taken at
    sample_complexity: int


def lower_bound(horizon: int, num_actions: int, effective_horizon: float) -> LowerBound:
    """Theorem B.5: for any algorithm there is an MDP with A actions, horizon T and effective horizon at most H, an
    integer of 1 .. T, on which it needs at least

        T floor(T / H) (ceil(A^H / 2) - 1)

    steps. A number that is not an integer is rounded down: fewer MDPs, so the statement stays true.
    """
    whole = min(max(1, math.floor(effective_horizon)), horizon)
    half = -(-(num_actions**whole) // 2)
    return LowerBound(whole, horizon * (horizon // whole) * (half - 1))
