"""The covering length: episodes of the exploration policy until every state-action pair was visited."""

from __future__ import annotations

import math
from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.planning.problem import Problem


@dataclass(frozen=True)
class CoveringLength:
    lower: float | None  # episodes
    upper: int | None  # episodes
    sample_complexity: int | None  # T times the upper bound
    rarest: tuple[int, int]  # the state-action pair of the upper bound
    rarest_sum: tuple[int, int]  # the state-action pair of the lower bound
    reason: str | None = None


@sample_complexity_bound("covering_length", title="covering length (Lemma D.4)")
def covering_length(problem: Problem) -> CoveringLength:
    """Lemma D.4, with mu_t(s, a) the occupancy under the exploration policy:

        log 2 / (2 min_(s,a) sum_t mu_t(s, a))  <=  L  <=  ceil(log(2 S A) / min_(s,a) max_t mu_t(s, a))

    and T L steps solve the MDP (Theorem D.3). The paper's text below the lemma writes log(2 S A T) in the upper bound;
    the lemma and its proof have log(2 S A), which is smaller, and is what we use.
    """
    minima = problem.occupancy_minima
    if minima.state_action == 0.0:
        state, action = minima.rarest
        reason = f"the exploration policy never takes action {action} in state {state}"
        return CoveringLength(None, None, None, minima.rarest, minima.rarest_sum, reason)
    num_pairs = minima.num_states * problem.mdp.num_actions
    upper = math.ceil(math.log(2 * num_pairs) / minima.state_action)
    return CoveringLength(
        lower=math.log(2) / (2 * minima.state_action_sum),
        upper=upper,
        sample_complexity=problem.mdp.horizon * upper,
        rarest=minima.rarest,
        rarest_sum=minima.rarest_sum,
    )
