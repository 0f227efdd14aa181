"""PG-GORP, the variant of GORP that resembles policy-gradient algorithms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.bounds.theorem_horizon import theorem_horizon
from efhorizon.planning.problem import Problem
from efhorizon.planning.sweeps import Witness


@dataclass(frozen=True)
class PgGorp:
    sample_complexity: int | None
    uniform_ratio: float  # || uniform / exploration policy ||_inf
    witness: Witness | None
    reason: str | None = None


@sample_complexity_bound("pg_gorp", title="PG-GORP (Theorem B.1)")
def pg_gorp(problem: Problem) -> PgGorp:
    """Theorem B.1: if the MDP is 1-QVI-solvable and no reward is negative, PG-GORP needs at most

        2 T^2 A^{Hbar_1} || uniform / pi ||_inf

    steps, where Hbar_1 is the bound of Theorem 5.4 for k = 1.
    """
    bound, ratio = theorem_horizon(problem, 1), problem.uniform_ratio
    if bound.episodes is None:
        return PgGorp(None, ratio, bound.witness, bound.reason)
    if math.isinf(ratio):
        return PgGorp(None, ratio, bound.witness, "the exploration policy gives some action no chance")
    episodes = max(1, math.ceil(2 * problem.mdp.num_actions * bound.episodes * ratio))
    return PgGorp(problem.mdp.horizon**2 * episodes, ratio, bound.witness)
