"""First mistakes against brute force in fractions, and their shares."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from efhorizon import TabularMDP
from efhorizon.planning.problem import problem
from efhorizon.reasons.losses import losses
from efhorizon.reasons.places import Places, places, steps_to_reward
from efhorizon.reasons.repair import success
from efhorizon.reasons.simulation import RUNS, simulated_losses
from tests.support.gorp_simulation import optimal_actions, simulated_success, simulated_with_fiat
from tests.support.toy_mdps import random_mdp

Chances = dict[tuple[int, int], Fraction]  # by (time, state)
Distribution = dict[int, Fraction]
SEEDS = range(12)


def toy(seed: int) -> TabularMDP:
    rng = np.random.default_rng(seed)
    return random_mdp(rng, num_states=4, num_actions=2 + seed % 2, horizon=3 + seed % 2)


def first_mistakes(mdp: TabularMDP, m: int) -> Chances:
    """The chance of a first mistake at each pair, by enumeration."""
    codes, right = mdp.reward_codes, optimal_actions(mdp)
    units = mdp.reward_units()
    assert units is not None
    found: Chances = defaultdict(Fraction)
    reach: Chances = defaultdict(Fraction, {(0, 0): Fraction(1)})
    for time in range(mdp.horizon):
        for state in range(mdp.num_states):
            here = reach[time, state]
            if not here:
                continue
            returns = [after_action(mdp, units[0][codes], state, time, action) for action in range(mdp.num_actions)]
            for action, chance in enumerate(choice([power(each, m) for each in returns])):
                if not right[time, state, action]:
                    found[time, state] += here * chance
                elif mdp.transitions[state, action] >= 0:
                    reach[time + 1, int(mdp.transitions[state, action])] += here * chance
    return found


def after_action(mdp: TabularMDP, rewards: np.ndarray, state: int, time: int, action: int) -> Distribution:
    """The distribution of the return of an episode that takes an action and is random then."""
    reward, following = int(rewards[state, action]), int(mdp.transitions[state, action])
    if following < 0 or time + 1 == mdp.horizon:
        return {reward: Fraction(1)}
    found: Distribution = defaultdict(Fraction)
    for then in range(mdp.num_actions):
        for value, chance in after_action(mdp, rewards, following, time + 1, then).items():
            found[reward + value] += chance / mdp.num_actions
    return found


def power(distribution: Distribution, m: int) -> Distribution:
    """Of the sum of m draws."""
    total: Distribution = {0: Fraction(1)}
    for _ in range(m):
        more: Distribution = defaultdict(Fraction)
        for (x, p), (y, q) in product(total.items(), distribution.items()):
            more[x + y] += p * q
        total = more
    return total


def choice(sums: list[Distribution]) -> list[Fraction]:
    """The chance of each action to have the largest sum, ties broken at random."""
    chances = [Fraction(0)] * len(sums)
    for drawn in product(*(each.items() for each in sums)):
        best = max(value for value, _ in drawn)
        winners = [action for action, (value, _) in enumerate(drawn) if value == best]
        chance = Fraction(1)
        for _, each in drawn:
            chance *= each
        for action in winners:
            chances[action] += chance / len(winners)
    return chances


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_first_mistakes_are_those_of_brute_force(seed: int, m: int) -> None:
    mdp = toy(seed)
    expected = {pair: float(chance) for pair, chance in first_mistakes(mdp, m).items() if chance}
    found = losses(problem(mdp), m)
    at = {
        (int(time), int(state)): chance
        for time, state, chance in zip(found.times, found.states, found.first, strict=True)
        if chance > 1e-15
    }
    assert at == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_toys_have_mistakes_to_compare() -> None:
    assert sum(len([1 for chance in first_mistakes(toy(seed), 2).values() if chance]) for seed in SEEDS) > 20


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 6))
def test_shares_sum_to_one_over_all_places(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, num_states=6, num_actions=2 + seed % 3, horizon=5)
    given_problem = problem(mdp)
    found = losses(given_problem, m)
    low, high = success(found)
    assert found.first.sum() == pytest.approx(1 - (low + high) / 2, abs=1e-9)
    if found.first.sum() > 1e-9:
        shares = places(given_problem, found).shares(found.first)
        assert shares.sum() == pytest.approx(1, abs=1e-12)
        assert (shares >= 0).all()


@pytest.mark.parametrize("seed", [1, 2, 5, 8])
def test_repairs_raise_success_as_computed(seed: int) -> None:
    """Right play by fiat at the costliest place, simulated: within four standard errors of 40,000 runs."""
    mdp, runs = toy(seed), 40_000
    found = losses(problem(mdp), 2)
    merged = places(problem(mdp), found)
    label = int(merged.shares(found.first).argmax())
    repaired = merged.labels == label
    fiat = np.zeros((mdp.horizon, mdp.num_states), np.bool_)
    fiat[found.times[repaired], found.states[repaired]] = True
    before, after = success(found)[0], success(found, repaired)[0]
    assert after > before
    assert simulated_success(mdp, 1, 2, runs, seed) == pytest.approx(before, abs=4 * 0.5 / runs**0.5)
    played = simulated_with_fiat(mdp, 2, optimal_actions(mdp), fiat, runs, seed) / runs
    assert played == pytest.approx(after, abs=4 * 0.5 / runs**0.5)


def test_simulated_losses_are_those_of_the_exact_ones() -> None:
    mdp = toy(2)
    exact, (estimate, runs) = losses(problem(mdp), 2), simulated_losses(problem(mdp), 2)
    assert runs == RUNS
    by_pair = dict(zip(estimate.pairs.tolist(), estimate.first.tolist(), strict=True))
    for pair, chance in zip(exact.pairs.tolist(), exact.first.tolist(), strict=True):
        assert by_pair.get(pair, 0.0) == pytest.approx(chance, abs=4.5 * 0.5 / runs**0.5)


def test_steps_to_the_next_reward() -> None:
    """A chain of four steps whose second and last pay; the other action waits."""
    mdp = TabularMDP([[1, 0], [2, 1], [3, 2], [-1, 3]], [[0.0, 0], [1, 0], [0, 0], [1, 0]], 6)
    given_problem = problem(mdp)
    steps, line = steps_to_reward(given_problem), given_problem.timeline
    at_start = {int(line.states[pair]): int(steps[pair]) for pair in np.flatnonzero(given_problem.optimal.reached)}
    assert at_start == {0: 2, 1: 1, 2: 2, 3: 1}


def test_many_equal_states_merge_into_a_stage() -> None:
    """Twenty states in the second step, each met after one of twenty actions: none is a twentieth of the way."""
    wide = 20
    transitions = np.full((wide + 2, wide), -1, np.int32)
    transitions[0] = np.arange(1, wide + 1)
    transitions[1:-1, 0] = wide + 1
    rewards = np.zeros((wide + 2, wide))
    rewards[-1, 0] = 1.0
    mdp = TabularMDP(transitions, rewards, 3)
    found = losses(problem(mdp), 5)
    merged = places(problem(mdp), found)
    assert isinstance(merged, Places)
    assert merged.merged == "stage"
    assert merged.shares(found.first).max() == pytest.approx(1.0)
