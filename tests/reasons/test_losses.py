"""First mistakes against brute force in fractions, and their shares."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from gorp_simulation import (
    drawn_with_fiat,
    goal_chances,
    is_goal,
    optimal_actions,
    simulated_success,
    simulated_with_fiat,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_mdps import random_mdp

from efhorizon import TabularMDP
from efhorizon.bounds import examples
from efhorizon.bounds.course import Course
from efhorizon.planning.earliest import earliest_pairs
from efhorizon.planning.problem import problem
from efhorizon.reasons.losses import TooMuchWorkError, losses
from efhorizon.reasons.places import places
from efhorizon.reasons.repair import success
from efhorizon.reasons.simulation import RESAMPLES, RUNS, simulated_losses
from efhorizon.reasons.why import why_within

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
def test_first_mistakes_sum_to_the_chance_to_fail(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    found = losses(problem(random_mdp(rng, num_states=6, num_actions=2 + seed % 3, horizon=5)), m)
    low, high = success(found)
    assert found.first.sum() == pytest.approx(1 - (low + high) / 2, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 6))
def test_the_places_are_those_of_every_state_tried(seed: int, m: int) -> None:
    """Every state with every action by fiat wherever that is optimal, by a recursion of its own."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, num_states=5, num_actions=2 + seed % 2, horizon=4)
    found, right = losses(problem(mdp), m), optimal_actions(mdp)
    chances = {
        (int(time), int(state)): row for time, state, row in zip(found.times, found.states, found.chances, strict=True)
    }

    def value(time: int, state: int, fiat: tuple[int, int]) -> float:
        if state < 0 or time == mdp.horizon:
            return 1.0
        own = [action for action in range(mdp.num_actions) if right[time, state, action]]
        if state == fiat[0] and fiat[1] in own:
            return value(time + 1, int(mdp.transitions[state, fiat[1]]), fiat)
        return sum(
            chances[time, state][action] * value(time + 1, int(mdp.transitions[state, action]), fiat) for action in own
        )

    before = value(0, 0, (-1, -1))
    rises = {
        (state, action): value(0, 0, (state, action)) - before
        for state in range(mdp.num_states)
        for action in range(mdp.num_actions)
    }
    named = places(problem(mdp), found)
    for place in named:
        assert place.rise == pytest.approx(rises[place.states[0], place.action], abs=1e-9)
    line = problem(mdp).timeline
    met = np.flatnonzero(earliest_pairs(line, problem(mdp).optimal))
    on_the_way = {(line.time_of(pair), int(line.states[pair])) for pair in met}
    assert {state for place in named for state in place.states} <= {state for _, state in on_the_way}

    # The right action of a state is the one with the largest gain to first order: the chance to be there without a
    # mistake, times what the action adds, over all times. It can be the second best, but no other state does better.
    gains: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)  # by state and action, then by time

    def add_gains(time: int, state: int, reach: float) -> None:
        if state < 0 or time == mdp.horizon:
            return
        own = value(time, state, (-1, -1))
        for action in np.flatnonzero(right[time, state]).tolist():
            after = int(mdp.transitions[state, action])
            here = gains[state, action]
            here[time] = here.get(time, 0.0) + reach * (value(time + 1, after, (-1, -1)) - own)
            add_gains(time + 1, after, reach * chances[time, state][action])

    add_gains(0, 0, 1.0)
    chosen = [0.0]
    for state in {state for _, state in on_the_way}:
        here = {action: by_time for (of, action), by_time in gains.items() if of == state}
        action = max(here, key=lambda action: sum(here[action].values()), default=0)
        if any(here[action].get(time, 0.0) > 1e-9 for time, of in on_the_way if of == state and here):
            chosen.append(rises[state, action])
    assert max((place.rise for place in named), default=0.0) == pytest.approx(max(chosen), abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 5, 8])
def test_fiat_raises_success_as_computed(seed: int) -> None:
    """Right play at the costliest place, simulated: within four standard errors of 40,000 runs."""
    mdp, runs = toy(seed), 40_000
    found = losses(problem(mdp), 2)
    place = places(problem(mdp), found)[0]
    fiat = np.full((mdp.horizon, mdp.num_states), -1)
    fiat[found.times[place.members], found.states[place.members]] = place.action
    before = success(found)[0]
    assert place.rise > 0
    assert simulated_success(mdp, 1, 2, runs, seed) == pytest.approx(before, abs=4 * 0.5 / runs**0.5)
    played = simulated_with_fiat(mdp, 2, optimal_actions(mdp), fiat, runs, seed) / runs
    assert played == pytest.approx(before + place.rise, abs=4 * 0.5 / runs**0.5)


def test_drawn_episodes_are_as_good_as_played_ones() -> None:
    """GORP with binomial draws instead of episodes, with and without fiat: within four standard errors of the truth."""
    mdp, m, runs = examples.sparse_rewards(horizon=4), 6, 40_000
    assert is_goal(mdp)
    right, chances = optimal_actions(mdp), goal_chances(mdp)
    for forced in (-1, 0):
        fiat = np.full((mdp.horizon, mdp.num_states), -1)
        fiat[1] = forced
        played = simulated_with_fiat(mdp, m, right, fiat, runs, 1) / runs
        drawn = drawn_with_fiat(mdp, m, right, fiat, runs, 2, chances=chances) / runs
        assert 0.05 < played < 0.95
        assert drawn == pytest.approx(played, abs=4 * (2 * 0.25 / runs) ** 0.5)


def test_simulated_losses_are_those_of_the_exact_ones() -> None:
    mdp = toy(2)
    exact, (estimate, resampled) = losses(problem(mdp), 2), simulated_losses(problem(mdp), 2)
    assert len(resampled) == RESAMPLES
    by_pair = dict(zip(estimate.pairs.tolist(), estimate.first.tolist(), strict=True))
    for pair, chance in zip(exact.pairs.tolist(), exact.first.tolist(), strict=True):
        assert by_pair.get(pair, 0.0) == pytest.approx(chance, abs=4.5 * 0.5 / RUNS**0.5)


def test_a_detour_that_is_forgiven_is_no_place_at_the_last_moment() -> None:
    """A corridor of three steps with twenty to walk it in: the first mistake can only be made at time 18, but what
    costs GORP its chance is not going on, from the start."""
    mdp = TabularMDP([[0, 1], [0, 2], [0, -1]], [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]], 20)
    found = losses(problem(mdp), 1)
    assert found.times[found.first > 0].min() >= 17
    named = places(problem(mdp), found)
    assert {place.states[0] for place in named} <= {0, 1, 2}
    assert all(place.action == 1 for place in named)
    for place in named:
        assert found.times[place.first] == place.states[0]


def test_states_that_look_alike_are_one_place() -> None:
    """Two states with the same screen and the same right action."""
    transitions = [[1, 2], [3, -1], [3, -1], [-1, -1]]
    rewards = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    screens = np.arange(3, dtype=np.uint8).reshape(3, 1, 1, 1)
    mdp = TabularMDP(transitions, rewards, 3, screens=screens, screen_mapping=np.array([0, 1, 1, 2]))
    (place,) = places(problem(mdp), losses(problem(mdp), 1))
    assert sorted(place.states) == [1, 2]
    assert place.action == 0
    assert place.rise == pytest.approx(1 - success(losses(problem(mdp), 1))[0])


def test_an_m_of_more_than_64_bits_takes_too_much_work() -> None:
    """Upper bounds of large tables can be that large; a goal MDP counts the episodes themselves."""
    lock = TabularMDP([[1, -1], [2, -1], [-1, -1]], [[0, 0], [0, 0], [1, 0]], horizon=3)
    given = problem(lock)
    assert given.is_goal_mdp
    with pytest.raises(TooMuchWorkError):
        losses(given, 10**35, max_work=10**6)
    found = why_within(given, 1, 10**35, is_exact=False, ties="uniform", course=Course())
    assert found.m is not None
    assert 1 <= found.m < 2**62
