"""Misleading rewards: how many steps ahead GORP has to look before the right action of a state looks best.

    Q^1_t(s, a) = R(s, a) + gamma V_{t+1}(f(s, a)) with V that of exploring, Q^{k+1} = QVI(Q^k)

The depth of a trap is the least k for which max Q^k of the right actions exceeds that of the wrong ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning.problem import Problem
from efhorizon.planning.values import Values, relative_error

MAX_PAIRS = 200_000  # pairs within reach of the state; beyond, the depth is not looked for


def trap_depth(problem: Problem, values: Values, pair: int, right: NDArray[np.bool_]) -> int | None:
    """The least k for which Q^k shows a right action; None where none does, or that takes too long to find."""
    line, units, discount = problem.timeline, values.units, values.discount
    time = line.time_of(pair)
    layers = [np.array([pair])]  # what can be reached with 0, 1, ... actions
    total = 1
    for k in range(1, problem.mdp.horizon - time + 1):
        after = np.unique(line.successors[layers[-1]])
        layers.append(after[after >= 0])
        total += len(layers[-1])
        if total > MAX_PAIRS:
            return None
        best = np.append(values.numbers[layers[k]], 0.0) if len(layers[k]) else np.zeros(1)
        for depth in range(k - 1, -1, -1):
            here, following = layers[depth], layers[depth + 1]
            successors = line.successors[here]
            places = np.where(successors >= 0, np.searchsorted(following, successors), len(following))
            row = units[problem.mdp.reward_codes[line.states[here]]] + discount * best[places]
            best = np.append(row.max(axis=1), 0.0)
        error = 2 * relative_error(line, values, time) * float(np.abs(row).max())
        if row[0][right].max() - row[0][~right].max() > error:
            return k
    return None
