"""An m that suffices in goal MDPs: the exact one where every smaller m is tried, an upper bound elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from goal_mdps import goal_problems

from efhorizon import TabularMDP
from efhorizon.bounds import effective_horizon as whole
from efhorizon.bounds import examples
from efhorizon.bounds import goal_sufficient as search
from efhorizon.bounds.effective_horizon import effective_horizon
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.bounds.goal_sufficient import goal_sufficient_m
from efhorizon.gorp.goal import GoalChoices
from efhorizon.gorp.ties import Ties
from efhorizon.planning.problem import problem


@pytest.mark.parametrize("ties", ["uniform", "lowest"])
@pytest.mark.parametrize("k", [1, 2])
def test_the_least_m_is_the_exact_one(k: int, ties: Ties) -> None:
    several = 0
    for given in goal_problems(12, reversed_actions=ties == "lowest"):
        expected, found = exact_horizon(given, k, ties=ties), goal_sufficient_m(given, k, ties=ties)
        assert expected.smallest_m_verified
        if ties == "lowest" and not found.smallest_m_verified:
            assert "too close to 1/2" in str(found.reason)  # success of 1/2, which only fractions decide
            continue
        assert found.smallest_m_verified
        assert found.m == expected.m
        several += (found.m or 0) > 3
    assert several >= 2


def test_without_time_to_try_every_m_it_is_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(examples.sparse_rewards(8, 3))
    exact = exact_horizon(given, 1)
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


def test_the_effective_horizon_is_that_of_exact_success() -> None:
    for given in goal_problems(6):
        found = effective_horizon(given)
        exact = [exact_horizon(given, k) for k in range(1, 4)]
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
