"""Values and policies as arrays, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from brute_force import Exact
from toy_mdps import random_mdp

from efhorizon import TabularMDP, analyze


@pytest.mark.parametrize("gamma", ["1", "0.9"])
@pytest.mark.parametrize("seed", range(4))
def test_values_and_policies_against_fractions(seed: int, gamma: str) -> None:
    mdp = random_mdp(np.random.default_rng(seed), 6, 3, 5)
    exact = Exact(mdp, Fraction(gamma))
    values, best = mdp.optimal_values(gamma=float(gamma)), mdp.optimal_policy(gamma=float(gamma))
    qs, random_qs = mdp.q_values(gamma=float(gamma)), mdp.q_values(mdp.random_policy(), gamma=float(gamma))
    assert values.shape == (5, 6)
    assert qs.shape == random_qs.shape == best.shape == mdp.random_policy().shape == (5, 6, 3)
    for time, reached in enumerate(exact.reachable()):
        for state in range(mdp.num_states):
            if state not in reached:
                assert np.isnan([values[time, state], *qs[time, state], *random_qs[time, state]]).all()
                assert (best[time, state] == 1 / 3).all()
                continue
            assert values[time, state] == pytest.approx(float(exact.optimal(time, state)), rel=1e-14)
            right = exact.optimal_actions(time, state)
            assert np.flatnonzero(best[time, state]).tolist() == right
            assert best[time, state].sum() == pytest.approx(1)
            for action in range(3):
                optimal = exact.backup(exact.optimal, time, state, action)
                average = exact.backup(exact.average, time, state, action)
                assert qs[time, state, action] == pytest.approx(float(optimal), rel=1e-14, abs=1e-14)
                assert random_qs[time, state, action] == pytest.approx(float(average), rel=1e-12, abs=1e-14)


def test_values_in_tenths_are_what_people_write() -> None:
    mdp = TabularMDP([[0]], [[0.1]], 3)
    assert mdp.optimal_values().tolist() == [[0.3], [0.2], [0.1]]


def test_an_optimal_policy_is_one_to_explore_with() -> None:
    mdp = random_mdp(np.random.default_rng(1), 6, 3, 5)
    found = analyze(mdp, exploration_policy=mdp.optimal_policy())
    assert found.exploration_return == pytest.approx(found.optimal_return)
