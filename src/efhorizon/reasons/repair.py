"""How much GORP's success rises if it plays right in some states by fiat, and nowhere else.

By fiat at a set C of pairs means: at a pair c of C GORP takes the action b(c), an optimal one; all else is as before.
With P(a | c) its own chances,

    V(c) = V(f(c, b(c)))  for c in C,    V(c) = sum_{a optimal} P(a | c) V(f(c, a))  else,    V = 1 at the end,

and V at the start is the success.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Floats, Integers, compiled
from efhorizon.reasons.losses import OVER, WRONG, Losses

OWN_CHOICE = -1


def success(losses: Losses, fiat: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """Bounds on success if GORP takes the actions `fiat` [O]; they differ by pairs left out."""
    forced = np.full(len(losses.pairs), OWN_CHOICE) if fiat is None else fiat
    values = np.zeros(len(losses.pairs))
    low = _success(losses.following, losses.chances, forced, 0.0, values)
    high = _success(losses.following, losses.chances, forced, 1.0, values)
    return low, min(1.0, high)


def success_after(losses: Losses) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The chance to succeed from each pair [O], and after each of its actions [O, A]: 0 after one that is wrong, and
    at pairs left out."""
    values, own = np.zeros(len(losses.pairs)), np.full(len(losses.pairs), OWN_CHOICE)
    _success(losses.following, losses.chances, own, 0.0, values)
    following = losses.following
    after = np.where(following >= 0, values[np.maximum(following, 0)], np.where(following == OVER, 1.0, 0.0))
    return values, after


def gains(losses: Losses) -> NDArray[np.float64]:
    """How much success rises, to first order, if an action is taken at a pair [O, A]: reach (V after it - V)."""
    values, after = success_after(losses)
    return np.where(losses.following == WRONG, 0.0, losses.reach[:, None] * (after - values[:, None]))


@compiled
def _success(following: Integers, chances: Floats, forced: Integers, left_out: float, values: Floats) -> float:
    """Success at the first pair; `left_out` is that at pairs that were not looked at."""
    for here in range(len(following) - 1, -1, -1):
        values[here] = 0.0
        for action in range(following.shape[1]):
            after = following[here, action]
            if after == -2:
                continue
            chance = chances[here, action] if forced[here] < 0 else 1.0 if forced[here] == action else 0.0
            values[here] += chance * (values[after] if after >= 0 else 1.0 if after == -1 else left_out)
    return float(values[0])
