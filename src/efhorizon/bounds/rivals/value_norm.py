"""The environmental value norm."""

from __future__ import annotations

import math
from typing import Any

from efhorizon.bounds.measures import Measured
from efhorizon.bounds.registry import hardness_measure
from efhorizon.bounds.rivals.spread import NOTHING_TO_LEARN, return_range
from efhorizon.compiled import Numbers, compiled
from efhorizon.planning.problem import Problem

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py


@hardness_measure("value_norm", title="environmental value norm", harder="larger")
def value_norm(problem: Problem) -> Measured:
    """max over reachable (t, s) of the standard deviation of Q*_t(s, a) over a uniformly random action a.

    Maillard, Mann and Mannor (2014) define the norm as max over (s, a) of the standard deviation of V*(s'), s' drawn
    from P(. | s, a); Conserva and Rauber (2022), Section 2.1, take it as a measure of hardness. Where transitions are
    deterministic it is 0 in every MDP. Adapted: the action is what is random, as in Colosseum's MDPs where a random
    action may take the place of the agent's own. What an action pays counts with what it leads to, for an episode may
    end with it. Divided by the best return minus the worst, for rewards here have any scale.
    """
    spread = return_range(problem)
    if not spread:
        return Measured(None, reason=NOTHING_TO_LEARN)
    values = problem.optimal.values
    variance = _largest_variance(problem.timeline.steps, values.numbers, values.units, values.discount)
    return Measured(math.sqrt(variance) / spread)


@compiled
def _largest_variance(steps: Any, values: Numbers, units: Numbers, gamma: Any) -> float:
    successors, states, codes = steps
    num_actions, largest = successors.shape[1], 0.0
    for pair in range(len(successors)):
        total, squares = 0.0, 0.0
        for action in range(num_actions):
            successor = successors[pair, action]
            worth = units[codes[states[pair], action]]
            if successor >= 0:
                worth += gamma * values[successor]
            below = float(values[pair] - worth)  # from the best action's: small numbers, so little is rounded off
            total += below
            squares += below * below
        largest = max(largest, squares / num_actions - (total / num_actions) ** 2)
    return largest
