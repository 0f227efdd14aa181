"""The number of states: the simplest measure of all."""

from __future__ import annotations

from efhorizon.bounds.measures import Measured
from efhorizon.bounds.registry import hardness_measure
from efhorizon.planning.problem import Problem

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py


@hardness_measure("num_states", title="number of states", harder="larger")
def number_of_states(problem: Problem) -> Measured:
    """S, the states that can be reached before the horizon.

    Every bound of tabular RL grows with it (Theorem D.1's S A T, for one). Deep RL need not visit them all.
    """
    return Measured(float(problem.num_reachable_states))
