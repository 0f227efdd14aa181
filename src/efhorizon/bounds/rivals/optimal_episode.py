"""The chance that an episode of random play is optimal."""

from __future__ import annotations

from efhorizon.bounds.measures import Measured
from efhorizon.bounds.registry import hardness_measure
from efhorizon.planning.occupancy import optimal_return_probability
from efhorizon.planning.problem import Problem

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py


@hardness_measure("optimal_episode", title="chance that a random episode is optimal", harder="smaller")
def optimal_episode(problem: Problem) -> Measured:
    """P(sum_t R(s_t, a_t) = V*_1(s_1)) if every action is drawn uniformly; exact.

    One over it is how many random episodes it takes until one is optimal, on average. Laidlaw et al. publish it with
    their MDPs (`reward_optimal_probability` in their summary.csv), and do not compare it with the bounds.
    """
    return Measured(optimal_return_probability(problem.timeline, problem.optimal, problem.policy))
