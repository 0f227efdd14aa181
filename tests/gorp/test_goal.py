"""GORP's success in goal MDPs, computed forward: the same as by exact distributions of returns, in another way."""

from __future__ import annotations

import numpy as np
import pytest
from goal_mdps import goal_problems
from scipy.stats import binom

from efhorizon import TabularMDP
from efhorizon.bounds import examples
from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.goal import GoalChoices, binomial_distance
from efhorizon.gorp.success import Success
from efhorizon.gorp.ties import Ties
from efhorizon.planning.problem import Problem, problem


def exact_success(given: Problem, k: int, m: int, ties: Ties = "uniform") -> Success:
    options = choices(given, k)
    return GreedyChoices(options, given.return_distributions(options.group_ends)).success(m, ties)


@pytest.mark.parametrize("ties", ["uniform", "lowest"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_success_is_that_of_exact_distributions(k: int, ties: Ties) -> None:
    decided = 0
    for given in goal_problems(12, reversed_actions=ties == "lowest"):
        greedy = GoalChoices(given, k)
        for m in (1, 2, 7, 60, 3000):
            expected, found = exact_success(given, k, m, ties), greedy.success(m, 0.0, ties=ties)
            assert max(found.high - found.low, expected.high - expected.low) < 1e-7
            assert found.low <= expected.high
            assert expected.low <= found.high
            assert found.worst_failure == pytest.approx(expected.worst_failure, abs=1e-9)
            decided += 0.01 < found.low < 0.99
    assert decided > 10


def test_the_exploration_policy_counts(rng: np.random.Generator) -> None:
    for given in goal_problems(5):
        mdp = given.mdp
        policy = rng.dirichlet(np.ones(mdp.num_actions), size=(mdp.horizon, mdp.num_states))
        other = problem(mdp, policy=policy)
        found, expected = GoalChoices(other, 1).success(5, 0.0), exact_success(other, 1, 5)
        assert found.low <= expected.high
        assert expected.low <= found.high


@pytest.mark.parametrize("left_out", [0.3, 0.05, 0.001])
def test_what_is_left_out_widens_the_bounds_and_no_more(left_out: float) -> None:
    widened = 0
    for given in goal_problems(12):
        greedy = GoalChoices(given, 1)
        for m in (1, 4, 20):
            whole, part = greedy.success(m, 0.0), greedy.success(m, left_out)
            assert part.low - 1e-12 <= whole.low <= whole.high <= part.high + 1e-12
            assert part.high - part.low <= left_out + 1e-8
            assert part.points <= whole.points
            widened += part.high - part.low > 1e-6
    assert widened > 3 or left_out < 0.01


def test_chances_that_differ_by_rounding_only_count_as_equal() -> None:
    """Six steps of three actions each, any of two right: ties everywhere."""
    transitions = np.array([[i + 1, i + 1, -1] for i in range(5)] + [[-1, -1, -1]])
    rewards = np.array([[0.0, 0.0, 0.0]] * 5 + [[1.0, 1.0, 0.0]])
    given = problem(TabularMDP(transitions, rewards, 6))
    found = GoalChoices(given, 1).success(10**9, 0.0)
    assert found.low > 1 - 1e-6
    assert found.points < 6 * 1100, "no lattice is summed over where one group is left"


def test_a_choice_whose_distributions_are_too_long_is_as_good_as_left_out() -> None:
    """At the start one action wins with chance 1/2, the other with 2^-20 more: their sums overlap even at m = 10^13."""
    depth = 19
    transitions = [[1, 2], [-1, -1], [-1, 3]] + [[4 + i, -1] for i in range(depth)]
    rewards = np.zeros((len(transitions), 2))
    rewards[1, 0] = rewards[2, 0] = rewards[-1, 0] = 1.0
    transitions[-1] = [-1, -1]
    given = problem(TabularMDP(np.array(transitions), rewards, len(transitions)))
    assert given.is_goal_mdp
    greedy = GoalChoices(given, 1)
    told, untold = greedy.success(1000, 0.0), greedy.success(10**13, 0.0)
    assert told.high - told.low < 1e-6
    assert (untold.low, untold.high) == (0.0, 1.0)


def test_the_distance_of_binomial_distributions_is_bounded() -> None:
    for m, p, difference in ((50, 0.3, 0.01), (400, 0.02, 0.001), (1000, 0.5, 1e-4), (30, 0.97, 0.005)):
        points = np.arange(m + 1)
        exact = abs(binom.pmf(points, m, p) - binom.pmf(points, m, p + difference)).sum() / 2
        assert exact <= binomial_distance(m, p, difference) <= max(1e-12, 6 * exact)


def test_ties_against_gorp_are_refused_forward_in_time() -> None:
    given = goal_problems(1)[0]
    for greedy in (GoalChoices(given, 1), ForwardChoices(given, 1)):
        with pytest.raises(ValueError, match="ties against GORP depend on its later success"):
            greedy.success(1, 0.0, ties="adversarial")


def test_only_goal_mdps_without_discount_are_taken() -> None:
    with pytest.raises(ValueError, match="only in a goal MDP"):
        GoalChoices(problem(examples.dense_rewards(3)), 1)
    with pytest.raises(ValueError, match="only in a goal MDP"):
        GoalChoices(problem(examples.sparse_rewards(3), gamma=0.9), 1)


def test_a_reward_that_cannot_be_met_is_not_the_goal() -> None:
    transitions = np.array([[1, 0], [-1, 0], [-1, -1]])  # nothing leads to state 2, which would pay more
    rewards = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]])
    given = problem(TabularMDP(transitions, rewards, 4))
    expected = exact_success(given, 1, 3)
    found = GoalChoices(given, 1).success(3, 0.0)
    assert found.low <= expected.high
    assert expected.low <= found.high
