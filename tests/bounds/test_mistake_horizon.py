"""Theorem 5.4 tightened: it holds, it is never worse, and near ties between optimal actions cost nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from efhorizon import TabularMDP, analyze
from efhorizon.bounds import examples
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.bounds.mistake_horizon import mistake_horizon
from efhorizon.bounds.theorem_horizon import theorem_horizon
from efhorizon.planning.problem import problem


def random_problem(seed: int):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    num_states, num_actions, horizon = int(rng.integers(2, 6)), int(rng.integers(2, 4)), int(rng.integers(2, 5))
    transitions = rng.integers(-1, num_states, size=(num_states, num_actions))
    rewards = rng.choice([0.0, 0.0, 0.0, 1.0, 0.5], size=transitions.shape)
    policy = rng.dirichlet(np.ones(num_actions), size=num_states) if seed % 2 else None
    return problem(TabularMDP(transitions, rewards, horizon), policy=policy)


@pytest.mark.parametrize("seed", range(60))
def test_it_suffices_and_is_never_worse_than_the_theorem(seed: int) -> None:
    given = random_problem(seed)
    bound = mistake_horizon(given)
    for k, m in bound.by_k.items():
        exact = exact_horizon(given, k)
        assert exact.m is not None
        assert exact.m <= m
        theorem = theorem_horizon(given, k)
        assert theorem.m is None or m <= theorem.m
    if bound.k is not None:
        costs = {k: given.mdp.num_actions**k * m for k, m in bound.by_k.items()}
        assert bound.sample_complexity == given.mdp.horizon**2 * min(costs.values())


def test_the_random_problems_are_not_all_of_one_kind() -> None:
    found = [mistake_horizon(random_problem(seed)) for seed in range(60)]
    assert 10 < sum(bound.m is not None and bound.m > 1 for bound in found) < 60
    assert any(1 not in bound.by_k for bound in found)  # with k = 1 a mistake may look best


def test_closed_form_on_sparse_rewards() -> None:
    """Figure 2a has one optimal action everywhere, so margins are gaps: m = A^(T-1) 6 log(2 T A)."""
    given = problem(examples.sparse_rewards(5, 3), max_k=1)
    bound = mistake_horizon(given)
    assert bound.m == math.ceil(3**4 * 6 * math.log(2 * 5 * 3))
    assert bound.sample_complexity == 25 * 3 * bound.m


def test_optimal_actions_that_differ_by_a_billionth_cost_nothing() -> None:
    """Two ways to the reward, of which the policy takes both with nearly the same chance; the third action loses."""
    mdp = TabularMDP([[1, 2, -1], [-1, -1, -1], [-1, -1, -1]], [[0, 0, 0], [1, 0, 0], [1, 0, 0]], 2)
    policy = np.array([[1 / 3, 1 / 3, 1 / 3], [0.9, 0.05, 0.05], [0.9 + 1e-9, 0.05 - 1e-9, 0.05]])
    given = problem(mdp, policy=policy, max_k=1)
    theorem, bound = theorem_horizon(given, 1), mistake_horizon(given)
    assert theorem.m is not None
    assert theorem.m > 10**17
    assert bound.m == math.ceil(6 * math.log(12) / 0.9)  # max Q = margin = 0.9 at the start, V* = 1
    assert bound.witnesses[1] is not None
    assert (bound.witnesses[1].time, bound.witnesses[1].state) == (0, 0)
    assert analyze(mdp, exploration_policy=policy, max_k=1).as_json()["sample_complexity"]["mistakes"] == 12 * bound.m


def test_where_it_does_not_apply() -> None:
    trap = TabularMDP([[1, 2], [-1, -1], [-1, -1]], [[0, 0], [1.0, 0.0], [0.6, 0.6]], 2)  # greedy goes the wrong way
    assert "a mistake may look best" in str(mistake_horizon(problem(trap, max_k=1)).reason)
    assert mistake_horizon(problem(trap, max_k=2)).k == 2
    negative = problem(TabularMDP([[0, 0]], [[0.0, -0.5]], 2))
    assert mistake_horizon(negative).reason == "it needs nonnegative rewards, and there is a reward of -0.5"
