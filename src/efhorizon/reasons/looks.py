"""States that look alike are one reason: GORP loses its chance there at different times, for the same cause.

A state is one reason at all times. Two states are one reason if they show the same screen and, where each of them costs
most, the same actions are right. Tables without screens have states only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning.problem import Problem


def looks(problem: Problem, pairs: NDArray[np.int64], cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """A number for each pair [O], the same for pairs that look alike; `cost` [O] is what first mistakes there cost."""
    states = problem.timeline.states[pairs]
    distinct, inverse = np.unique(states, return_inverse=True)
    number: NDArray[np.int64] = inverse.astype(np.int64)
    if problem.mdp.screen_mapping is None:
        return number
    order = np.lexsort((cost, number))  # the costliest pair of each state comes last
    last = np.searchsorted(number[order], np.arange(len(distinct)), side="right") - 1
    costliest = pairs[order[last]]
    right = np.packbits(problem.optimal.actions[costliest], axis=1)
    signatures = np.column_stack([problem.mdp.shown[distinct].astype(np.int64), right.astype(np.int64)])
    _, look = np.unique(signatures, axis=0, return_inverse=True)
    alike: NDArray[np.int64] = look.reshape(-1)[number].astype(np.int64)
    return alike
