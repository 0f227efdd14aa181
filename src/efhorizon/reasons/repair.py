"""How much GORP's success rises if it plays right in some states by fiat, and nowhere else.

By fiat at a set C of pairs means: if GORP would take a wrong action at a pair of C, it takes a right one instead, each
with the same chance; all else is as before. With n(c) right actions at c,

    V(c) = sum_{a right} (P(a | c) + [c in C] (1 - sum_{b right} P(b | c)) / n(c)) V(f(c, a)),     V = 1 at the end,

and V at the start is the success. For a single pair the rise is first(c) U(c), where U(c) is the mean of V over what
follows its right actions: the chance that this first mistake was the only one. docs/why.md has the proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Flags, Floats, Integers, compiled
from efhorizon.reasons.losses import Losses


def success(losses: Losses, repaired: NDArray[np.bool_] | None = None) -> tuple[float, float]:
    """Bounds on success if GORP plays right by fiat at some of the pairs [O]; they differ by pairs left out."""
    fixed = np.zeros(len(losses.pairs), np.bool_) if repaired is None else repaired
    values = np.zeros(len(losses.pairs))
    low = _success(losses.following, losses.chances, fixed, 0.0, values)
    high = _success(losses.following, losses.chances, fixed, 1.0, values)
    return low, min(1.0, high)


@compiled
def _success(following: Integers, chances: Floats, fixed: Flags, left_out: float, values: Floats) -> float:
    """Success at the first pair; `left_out` is that at pairs that were not looked at."""
    for here in range(len(following) - 1, -1, -1):
        wrong, right = 0.0, 0
        for action in range(following.shape[1]):
            if following[here, action] == -2:
                wrong += chances[here, action]
            else:
                right += 1
        values[here] = 0.0
        for action in range(following.shape[1]):
            after = following[here, action]
            if after == -2:
                continue
            chance = chances[here, action] + (wrong / right if fixed[here] else 0.0)
            values[here] += chance * (values[after] if after >= 0 else 1.0 if after == -1 else left_out)
    return float(values[0])
