"""The sum of inverse suboptimality gaps."""

from __future__ import annotations

from typing import Any

from efhorizon.bounds.measures import Measured
from efhorizon.bounds.registry import hardness_measure
from efhorizon.bounds.rivals.spread import NOTHING_TO_LEARN, return_range
from efhorizon.compiled import Flags, Numbers, compiled
from efhorizon.planning.problem import Problem

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py


@hardness_measure("inverse_gaps", title="sum of inverse suboptimality gaps", harder="larger")
def inverse_gaps(problem: Problem) -> Measured:
    """sum over reachable (t, s, a) with Delta_t(s, a) > 0 of 1 / Delta_t(s, a),  Delta_t(s, a) = V*_t(s) - Q*_t(s, a).

    Conserva and Rauber (2022), Section 2.1, where it stands for the hardness of estimating values; regret bounds such
    as those of Simchowitz and Jamieson (2019) grow with it. Adapted: Colosseum's rewards lie between 0 and 1, ours do
    not, so gaps are divided by the best return minus the worst. Gaps of 0 are exact here and are left out; Colosseum's
    program adds 0.1 to every gap in their place. As there, a state counts once for each time at which it can be met.
    """
    spread = return_range(problem)
    if not spread:
        return Measured(None, reason=NOTHING_TO_LEARN)
    values = problem.optimal.values
    total = _inverse_gaps(
        problem.timeline.steps, problem.optimal.actions, values.numbers, values.units, values.discount, spread
    )
    return Measured(float(total))


@compiled
def _inverse_gaps(steps: Any, optimal: Flags, values: Numbers, units: Numbers, gamma: Any, spread: float) -> float:
    """In sequence, so that the sum is the same on every machine."""
    successors, states, codes = steps
    total = 0.0
    for pair in range(len(successors)):
        for action in range(successors.shape[1]):
            if not optimal[pair, action]:
                successor = successors[pair, action]
                worth = units[codes[states[pair], action]]
                if successor >= 0:
                    worth += gamma * values[successor]
                total += spread / (values[pair] - worth)
    return total
