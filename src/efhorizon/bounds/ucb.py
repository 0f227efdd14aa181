"""Upper confidence bounds: R-max, which explores state-action pairs one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.planning.problem import Problem


@dataclass(frozen=True)
class Ucb:
    sample_complexity: int
    num_states: int  # that can be reached
    reason: str | None = None


@sample_complexity_bound("ucb", title="UCB, every pair visited (Theorem D.1)")
def ucb(problem: Problem) -> Ucb:
    """Theorem D.1:  S A T.

    S counts the states that can be reached before the horizon; R-max never has to explore others.
    """
    num_states = problem.num_reachable_states
    return Ucb(num_states * problem.mdp.num_actions * problem.mdp.horizon, num_states)
