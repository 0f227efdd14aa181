"""GORP's exact success and horizon with a discount: against brute force in fractions, with every rule for ties."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from gorp_twin import success_by_ties, tiny_mdp

from efhorizon import TabularMDP
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.fractions import affordable, success_fraction
from efhorizon.gorp.ties import TIES, Ties
from efhorizon.planning.problem import problem
from efhorizon.planning.return_units import NoLatticeError


def test_the_exact_horizon_is_that_of_fractions_on_random_mdps() -> None:
    """200 MDPs with a discount of 1/2, the least m up to 3 with each rule, and success there."""
    found_m: dict[Ties, set[int | None]] = {ties: set() for ties in TIES}
    for seed in range(200):
        mdp = tiny_mdp(seed, num_states=4, horizon=2 + seed % 3)
        given = problem(mdp, gamma=0.5)
        expected = [success_by_ties(mdp, 1, m, Fraction(1, 2)) for m in (1, 2, 3)]
        for ties in TIES:
            least = next((m for m in (1, 2, 3) if 2 * expected[m - 1][ties] >= 1), None)
            result = exact_horizon(given, 1, max_m=3, ties=ties)
            assert result.m == least
            assert result.success_probability is not None
            if least is not None:
                assert result.success_probability == pytest.approx(float(expected[least - 1][ties]), abs=1e-11)
            found_m[ties].add(least)
    assert all(len(values) > 2 for values in found_m.values())


def test_without_a_future_one_episode_is_enough() -> None:
    """With a discount of 0 an action is worth its reward, which one episode shows."""
    for seed in range(20):
        given = problem(tiny_mdp(seed, num_actions=3), gamma=0.0)
        for ties in TIES:
            result = exact_horizon(given, 1, ties=ties)
            assert (result.m, result.success_probability) == (1, pytest.approx(1.0, abs=1e-11))


@pytest.mark.parametrize("gamma", ["0.5", "0.25", "0.75", "0.9", "0"])
@pytest.mark.parametrize(("k", "m", "horizon"), [(1, 2, 4), (2, 1, 4), (2, 2, 3), (3, 1, 3)])
def test_success_is_that_of_brute_force(gamma: str, k: int, m: int, horizon: int) -> None:
    in_fractions = 0
    for seed in range(4):
        mdp = tiny_mdp(seed, horizon=horizon, num_states=4)
        given, expected = problem(mdp, gamma=float(gamma)), success_by_ties(mdp, k, m, Fraction(gamma))
        options = choices(given, k)
        returns = given.return_distributions(options.group_ends)
        greedy = GreedyChoices(options, returns)
        for ties in TIES:
            if affordable(options, returns, given.policy, m):
                assert success_fraction(options, m, ties) == expected[ties]
                in_fractions += 1
            found = greedy.success(m, ties)
            assert found.low <= float(expected[ties]) <= found.high
            assert found.high - found.low < 1e-11
            if ties != "adversarial":
                forward = ForwardChoices(given, k).success(m, 0.0, ties=ties)
                assert forward.low <= float(expected[ties]) <= forward.high
    assert in_fractions or gamma not in ("0", "0.5")


def test_only_sums_that_occur_are_looked_at() -> None:
    """Half a payment soon, or half a payment after 18 steps, worth 2^-16 as much: between the sums of a million
    episodes lie 10^10 lattice points, which nobody has the time to visit, and of which 20,000 are sums."""
    length = 18
    transitions = np.full((length + 1, 2), -1)
    transitions[0] = [1, length]
    transitions[1 : length - 1] = np.arange(2, length)[:, None]
    rewards = np.zeros(transitions.shape)
    rewards[length - 1, 0] = rewards[length, 0] = 1.0
    given = problem(TabularMDP(transitions, rewards, length), gamma=0.5)
    options = choices(given, 1)
    greedy = GreedyChoices(options, given.return_distributions(options.group_ends))
    for ties in TIES:
        assert greedy.success(10**6, ties).low == pytest.approx(1.0, abs=1e-5)


def test_sums_that_do_not_fit_in_64_bits_are_refused() -> None:
    given = problem(TabularMDP([[-1, -1]], [[1e9, 1.0]], 1))
    options = choices(given, 1)
    greedy = GreedyChoices(options, given.return_distributions(options.group_ends))
    assert greedy.success(10**9).low == pytest.approx(1.0)
    with pytest.raises(NoLatticeError, match="the sum of 10,000,000,000 returns may not fit in 64 bits"):
        greedy.success(10**10)
