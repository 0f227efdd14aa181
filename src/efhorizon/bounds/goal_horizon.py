"""Goal MDPs: reward only for reaching a goal, once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.planning.problem import Problem, effective_horizon_of
from efhorizon.planning.sweeps import Witness


@dataclass(frozen=True)
class GoalHorizon:
    is_goal_mdp: bool
    p: float | None  # the least chance to reach the goal from a pair from which it can be reached
    m: int | None
    effective_horizon: float | None
    sample_complexity: int | None
    witness: Witness | None  # the pair of p
    reason: str | None = None


@sample_complexity_bound("goal", title="goal MDP (Theorem B.4)")
def goal_horizon(problem: Problem) -> GoalHorizon:
    """Theorem B.4: in a goal MDP, if the exploration policy gives every action a positive probability and

        P(the goal is reached | s_t, a_t) >= p    for all t and pairs (s_t, a_t) from which it can be reached,

    then H <= 1 + log_A(log(2 T) / p).

    The paper's reward is 1; any other constant leaves every comparison between returns as it is.
    """
    reason = _reason(problem) if problem.is_goal_mdp else "not a goal MDP"
    if reason is not None:
        return GoalHorizon(problem.is_goal_mdp, None, None, None, None, None, reason)
    horizon, num_actions = problem.mdp.horizon, problem.mdp.num_actions
    first = problem.exploration.sweeps[0]
    if first.least_optimal is None or num_actions == 1:  # no goal can be reached in time, or nothing else can be done
        return GoalHorizon(True, None, 1, 1.0, horizon**2 * num_actions, None)
    p = first.least_optimal_q / problem.rewards[-1]
    episodes = math.log(2 * horizon) / p
    m = math.ceil(episodes)
    return GoalHorizon(
        is_goal_mdp=True,
        p=p,
        m=m,
        effective_horizon=effective_horizon_of(num_actions, 1, episodes),
        sample_complexity=horizon**2 * num_actions * m,
        witness=first.least_optimal,
    )


def _reason(problem: Problem) -> str | None:
    if problem.gamma != 1.0:
        return f"Theorem B.4 needs a discount of 1, and it is {problem.gamma:g}"
    if math.isinf(problem.uniform_ratio):
        return "the exploration policy gives some action no chance"
    return None
