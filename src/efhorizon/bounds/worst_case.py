"""The worst case over all deterministic MDPs with A actions and horizon T."""

from __future__ import annotations

from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.planning.problem import Problem


@dataclass(frozen=True)
class WorstCase:
    sample_complexity: int  # of trying action sequences in random order
    lower: int  # what no algorithm can beat on every MDP of this size
    reason: str | None = None


@sample_complexity_bound("worst_case", title="worst case (Theorem 2.1)")
def worst_case(problem: Problem) -> WorstCase:
    """Theorem 2.1:  T (ceil(A^T / 2) - 1)  <=  worst case  <=  T ceil(A^T / 2)."""
    horizon = problem.mdp.horizon
    half = -(-(problem.mdp.num_actions**horizon) // 2)
    return WorstCase(sample_complexity=horizon * half, lower=horizon * (half - 1))
