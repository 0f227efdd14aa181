"""k-QVI-solvability: after how many steps of Q-value iteration acting greedily is optimal."""

from __future__ import annotations

from dataclasses import dataclass

from efhorizon.planning.problem import Problem
from efhorizon.planning.sweeps import Witness


@dataclass(frozen=True)
class QviSolvability:
    min_k: int | None
    solvable: tuple[bool, ...]  # for k = 1, 2, ... as far as was looked
    failures: tuple[Witness | None, ...]  # where the first greedy action of each k that is not solvable goes wrong
    reason: str | None = None


def qvi_solvability(problem: Problem) -> QviSolvability:
    """Definition 5.1: with Q^1 = Q^pi of the exploration policy and Q^{i+1} = QVI(Q^i), an MDP is k-QVI-solvable if

        every policy greedy with respect to Q^k is optimal.

    Optimal means: of optimal return from the start state (section 2), so only states that greedy policies reach count.
    """
    found = problem.exploration.sweeps
    solvable = [sweep.k for sweep in found if sweep.solvable]
    undecided = [sweep.k for sweep in found if sweep.undecided and (not solvable or sweep.k < solvable[0])]
    reason = None
    if undecided:
        reason = f"for k = {undecided[0]} two Q-values are too close for float64 to order them"
        if solvable:
            reason += f"; counted as not solvable, so the least k may be below {solvable[0]}"
    return QviSolvability(
        min_k=solvable[0] if solvable else None,
        solvable=tuple(sweep.solvable for sweep in found),
        failures=tuple(sweep.failure for sweep in found),
        reason=reason,
    )
