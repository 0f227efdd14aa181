"""Ties: which action GORP takes if several sequences have the largest sum. The paper leaves it open (Algorithm 1).

    uniform      one of the sequences with the largest sum, each with the same chance (`winning.py`)
    lowest       the first of them in the order of their numbers, as numpy's argmax does, and the authors' program
    adversarial  the one that is worst for GORP: a wrong action if one is among them, else the optimal action after
                 which success is least likely

The last two take the actions of a choice in some order, the first of those that tie. Let M_a be the largest sum of the
sequences that begin with action a; then a is chosen with probability

    P_a = sum_x P(M_a = x) prod_{b before a} P(M_b < x) prod_{b after a} P(M_b <= x).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Floats, Integers, compiled

Ties = Literal["uniform", "lowest", "adversarial"]
TIES: tuple[Ties, ...] = get_args(Ties)
NOT_FORWARD = "ties against GORP depend on its later success, which is not known forward in time"


def lowest_first(num_choices: int, num_actions: int) -> NDArray[np.int64]:
    """The order of actions [O, A] for ties that go to the lowest index."""
    return np.tile(np.arange(num_actions), (num_choices, 1))


def worst_first(following: NDArray[np.int32], success: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order of actions [O, A] for ties that go against GORP, given its success [O] at later choices."""
    after = np.where(following >= 0, success[np.maximum(following, 0)], 1.0)
    return np.argsort(np.where(following == -2, -1.0, after), axis=1, kind="stable")


@compiled
def first_at_point(order: Integers, below: Floats, reached: Floats, out: Floats) -> None:
    """Add to `out` the chance of each action [A] to be chosen with the sum x, from P(M_a < x) and P(M_a <= x)."""
    ahead = 1.0  # those that would win a tie are below x
    for rank in range(len(order)):
        action = order[rank]
        chance = ahead * (reached[action] - below[action])
        if chance > 0.0:
            for later in range(rank + 1, len(order)):
                chance *= reached[order[later]]
            out[action] += chance
        ahead *= below[action]
