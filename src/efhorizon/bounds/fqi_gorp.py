"""FQI-GORP, the variant of GORP that resembles fitted Q-iteration and DQN."""

from __future__ import annotations

import math
from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.bounds.theorem_horizon import theorem_horizon
from efhorizon.planning.problem import Problem
from efhorizon.planning.sweeps import Witness


@dataclass(frozen=True)
class FqiGorp:
    sample_complexity: int | None
    k: int | None  # the one that gives the least
    witness: Witness | None
    reason: str | None = None


@sample_complexity_bound("fqi_gorp", title="FQI-GORP (Theorem B.2)")
def fqi_gorp(problem: Problem) -> FqiGorp:
    """Theorem B.2: if the MDP is k-QVI-solvable and no reward is negative, FQI-GORP needs at most

        T^2 || uniform / pi ||_inf^k max(4 A^{Hbar_k}, 10 log(4 T A^k))

    steps, where Hbar_k is the bound of Theorem 5.4. The least over the k that were looked at.
    """
    horizon, num_actions, ratio = problem.mdp.horizon, problem.mdp.num_actions, problem.uniform_ratio
    if math.isinf(ratio):
        return FqiGorp(None, None, None, "the exploration policy gives some action no chance")
    best = FqiGorp(None, None, None, theorem_horizon(problem, 1).reason)
    for k in range(1, problem.max_k + 1):
        bound = theorem_horizon(problem, k)
        if bound.episodes is None:
            continue
        steps = max(4 * num_actions**k * bound.episodes, 10 * math.log(4 * horizon * num_actions**k))
        needed = horizon**2 * math.ceil(ratio**k * steps)
        if best.sample_complexity is None or needed < best.sample_complexity:
            best = FqiGorp(needed, k, bound.witness)
    return best
