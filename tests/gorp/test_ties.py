"""How ties are broken: brute force in fractions for all three rules, and facts about them."""

from __future__ import annotations

import numpy as np
import pytest
from gorp_twin import success_by_ties, tiny_mdp

from efhorizon import TabularMDP
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.fractions import success_fraction
from efhorizon.gorp.ties import TIES, Ties
from efhorizon.planning.problem import Problem, problem


def greedy_choices(given: Problem, k: int) -> GreedyChoices:
    options = choices(given, k)
    return GreedyChoices(options, given.return_distributions(options.group_ends))


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(("k", "m", "horizon"), [(1, 1, 4), (1, 3, 3), (2, 1, 3), (2, 2, 2)])
def test_success_is_that_of_brute_force(k: int, m: int, horizon: int, ties: Ties) -> None:
    for seed in range(6):
        mdp = tiny_mdp(seed, horizon=horizon, num_actions=2 if k == 2 else 3, num_states=4)
        given, expected = problem(mdp), success_by_ties(mdp, k, m)[ties]
        assert success_fraction(choices(given, k), m, ties) == expected
        found = greedy_choices(given, k).success(m, ties)
        assert found.low <= float(expected) <= found.high
        assert found.high - found.low < 1e-11
        if ties != "adversarial":
            forward = ForwardChoices(given, k).success(m, 0.0, ties=ties)
            assert forward.low <= float(expected) <= forward.high


def test_adversarial_ties_are_the_worst_of_all() -> None:
    differing = 0
    for seed in range(30):
        given = problem(tiny_mdp(seed, num_states=8, num_actions=3, horizon=6))
        greedy = greedy_choices(given, 1)
        uniform, lowest, adversarial = (greedy.success(4, ties) for ties in TIES)
        assert adversarial.low <= min(uniform.high, lowest.high)
        differing += adversarial.high < min(uniform.low, lowest.low)
    assert differing > 5


@pytest.mark.parametrize(("right", "expected"), [(0, [1, 1, 2]), (2, [1, 2, 2])])
def test_the_least_m_by_hand(right: int, expected: list[int]) -> None:
    """One of three actions leads to a state where one of three pays. With m rollouts one of them pays with probability
    1 - (2/3)^m; else all three actions tie, and the rule decides: 5/9 or 1/3 or 1 at m = 1, at least 5/9 at m = 2."""
    transitions = np.full((2, 3), -1)
    transitions[0, right] = 1
    mdp = TabularMDP(transitions, [[0, 0, 0], [1, 0, 0]], 2)
    found = [exact_horizon(problem(mdp), 1, ties=ties) for ties in TIES]
    assert [each.m for each in found] == expected
    assert found[2].success_probability == pytest.approx(5 / 9)
    assert found[2].previous_success_probability == pytest.approx(1 / 3)
