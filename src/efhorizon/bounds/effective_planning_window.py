"""The effective planning window: how far one must look ahead if all later rewards are ignored."""

from __future__ import annotations

from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.planning.problem import Problem
from efhorizon.planning.sweeps import Witness, sweeps
from efhorizon.planning.values import zero_values


@dataclass(frozen=True)
class EffectivePlanningWindow:
    window: int | None
    sample_complexity: int | None
    witness: Witness | None  # where a window shorter by one goes wrong; None for a window of 1
    reason: str | None = None


@sample_complexity_bound("epw", title="effective planning window (Theorem D.6)")
def effective_planning_window(problem: Problem) -> EffectivePlanningWindow:
    """Definition D.5: the least W for which every policy greedy with respect to Q^W is optimal, where

        Q^1_t(s, a) = R(s, a)      Q^i = QVI(Q^{i-1})

    Theorem D.6: T^2 A^W steps then suffice.
    """
    witness: Witness | None = None
    nothing = zero_values(problem.timeline, problem.scale)
    for sweep in sweeps(problem.timeline, problem.optimal, nothing, gaps_until=0):
        if sweep.solvable:
            steps = problem.mdp.horizon**2 * problem.mdp.num_actions**sweep.k
            return EffectivePlanningWindow(sweep.k, steps, witness)
        witness = sweep.failure
    reason = "two values of different action sequences are too close for float64 to order them"
    return EffectivePlanningWindow(None, None, witness, reason)
