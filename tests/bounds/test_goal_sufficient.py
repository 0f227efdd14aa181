"""GORP's success in goal MDPs, computed forward: the exact laws' own figures, by another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from efhorizon import TabularMDP
from efhorizon.bounds import effective_horizon as whole
from efhorizon.bounds import examples
from efhorizon.bounds import goal_sufficient as search
from efhorizon.bounds.effective_horizon import effective_horizon
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.bounds.goal_sufficient import goal_sufficient_m
from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.goal import GoalChoices, _distance
from efhorizon.gorp.success import Success
from efhorizon.planning.problem import Problem, problem
from efhorizon.planning.returns import return_laws


def random_goal_mdp(rng: np.random.Generator) -> TabularMDP:
    """A walk towards a goal, with as much time as it takes or a little more; some actions go back or end in nothing."""
    length, num_actions = int(rng.integers(3, 7)), int(rng.integers(2, 5))
    transitions = np.arange(length)[:, None] + rng.integers(-2, 2, size=(length, num_actions))
    transitions[:, 0] = np.arange(length) + 1
    transitions[rng.random(transitions.shape) < 0.1] = -1
    goal = transitions == length
    return TabularMDP(
        np.where(goal, -1, np.maximum(transitions, -1)), np.where(goal, 2.5, 0.0), length + int(rng.integers(4))
    )


def exact_success(given: Problem, k: int, m: int) -> Success:
    options = choices(given.timeline, k)
    return GreedyChoices(options, return_laws(given.timeline, options.group_ends, given.policy)).success(m)


def goal_problems(count: int) -> list[Problem]:
    found = (problem(random_goal_mdp(np.random.default_rng(seed))) for seed in range(3 * count))
    return [given for given in found if given.is_goal_mdp][:count]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_success_is_that_of_the_exact_laws(k: int) -> None:
    decided = 0
    for given in goal_problems(12):
        greedy = GoalChoices(given, k)
        for m in (1, 2, 7, 60, 3000):
            expected, found = exact_success(given, k, m), greedy.success(m, 0.0)
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


@pytest.mark.parametrize("k", [1, 2])
def test_the_least_m_is_the_exact_one(k: int) -> None:
    several = 0
    for given in goal_problems(12):
        expected, found = exact_horizon(given.timeline, k), goal_sufficient_m(given, k)
        assert expected.smallest_m_verified
        assert found.smallest_m_verified
        assert found.m == expected.m
        several += (found.m or 0) > 3
    assert several >= 2


def test_without_time_to_try_every_m_it_is_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(examples.sparse_rewards(8, 3))
    exact = exact_horizon(given.timeline, 1)
    assert exact.m is not None
    assert exact.m > 1000
    monkeypatch.setattr(search, "SCAN_POINTS", 0)
    found = goal_sufficient_m(given, 1)
    assert found.m is not None
    assert not found.smallest_m_verified
    assert exact.m <= found.m <= exact.m * (1 + 1 / search.PRECISION) + 1
    assert found.success_probability is not None
    assert found.error is not None
    assert found.success_probability - found.error >= 0.5


def test_where_no_m_is_found_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_M", 100)
    found = goal_sufficient_m(problem(examples.sparse_rewards(8, 3)), 1)
    assert found.m is None
    assert found.reason == "success stays below 1/2 for every m tried up to 100; larger m were not tried"
    assert "too many" in str(goal_sufficient_m(problem(examples.sparse_rewards(8, 3)), 7).reason)


def test_chances_that_differ_by_rounding_only_count_as_equal() -> None:
    """Six steps of three actions each, any of two right: ties everywhere."""
    transitions = np.array([[i + 1, i + 1, -1] for i in range(5)] + [[-1, -1, -1]])
    rewards = np.array([[0.0, 0.0, 0.0]] * 5 + [[1.0, 1.0, 0.0]])
    given = problem(TabularMDP(transitions, rewards, 6))
    found = GoalChoices(given, 1).success(10**9, 0.0)
    assert found.low > 1 - 1e-6
    assert found.points < 6 * 1100, "no lattice is summed over where one group is left"


def test_a_choice_whose_laws_are_too_long_is_as_good_as_left_out() -> None:
    """At the start one action wins with chance 1/2, the other with 2^-20 more: their laws overlap even at m = 10^13."""
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


def test_the_distance_of_binomial_laws_is_bounded() -> None:
    for m, p, difference in ((50, 0.3, 0.01), (400, 0.02, 0.001), (1000, 0.5, 1e-4), (30, 0.97, 0.005)):
        points = np.arange(m + 1)
        exact = abs(binom.pmf(points, m, p) - binom.pmf(points, m, p + difference)).sum() / 2
        assert exact <= _distance(m, p, difference) <= max(1e-12, 6 * exact)


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


def test_the_effective_horizon_is_that_of_the_exact_laws() -> None:
    for given in goal_problems(6):
        found = effective_horizon(given)
        exact = [exact_horizon(given.timeline, k) for k in range(1, 4)]
        assert [entry.exact_m for entry in found.by_k] == [each.m for each in exact]


def test_of_many_sequences_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given = goal_problems(1)[0]
    monkeypatch.setattr(whole, "MAX_WORK_BESIDE_EXACT", 0)
    for entry in effective_horizon(given).by_k:
        assert entry.exact_m is not None
        assert "left out" in str(entry.upper_reason)


def test_a_success_of_one_half_is_not_decided_by_rounding() -> None:
    """With m = 1 the right one of three actions wins with chance 1/4, else it is drawn: 1/4 + 3/4 1/3 = 1/2."""
    policy = np.array([[1 / 3] * 3, [0.25, 0.375, 0.375], [1 / 3] * 3])
    transitions = np.array([[1, 2, 2], [-1, -1, -1], [-1, -1, -1]])
    rewards = np.array([[0.0] * 3, [1.0, 0.0, 0.0], [0.0] * 3])
    given = problem(TabularMDP(transitions, rewards, 2), policy=policy)
    found = GoalChoices(given, 1).success(1, 0.0)
    assert found.low < 0.5 <= found.high
    entry = effective_horizon(given).by_k[0]
    assert (entry.exact_m, entry.upper_m) == (None, 2)
    assert "too close to 1/2" in str(entry.exact_reason)
