"""Values, occupancy and the chance of an optimal episode, against fractions and enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from brute_force import Exact
from toy_mdps import random_mdp

from efhorizon import InvalidTableError, TabularMDP
from efhorizon.planning.occupancy import occupancy, occupancy_minima, optimal_return_probability
from efhorizon.planning.optimal import is_degenerate, optimal_plan, optimal_values, return_range, worst_values
from efhorizon.planning.rewards import PRIME, InvalidDiscountError, residue, reward_scale
from efhorizon.planning.timeline import Timeline, timeline
from efhorizon.planning.values import action_values, policy_values

NUM_RANDOM_MDPS = 100


def random_problem(seed: int) -> tuple[TabularMDP, Timeline, np.random.Generator]:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 6)))
    return mdp, timeline(mdp), rng


def random_policy(
    mdp: TabularMDP, rng: np.random.Generator, *, timed: bool
) -> tuple[np.ndarray, list[list[list[Fraction]]]]:
    """Probabilities in eighths, exact in floats, some of them 0."""
    shape = (mdp.horizon if timed else 1, mdp.num_states)
    counts = rng.multinomial(8, np.full(mdp.num_actions, 1 / mdp.num_actions), size=shape)
    fractions = [[[Fraction(int(c), 8) for c in row] for row in layer] for layer in counts]
    return (counts / 8 if timed else counts[0] / 8), fractions * (1 if timed else mdp.horizon)


@pytest.mark.parametrize("seed", range(NUM_RANDOM_MDPS))
def test_values_are_those_of_the_fractions(seed: int) -> None:
    mdp, line, _ = random_problem(seed)
    exact = Exact(mdp)
    best, worst, average = optimal_values(line), worst_values(line), policy_values(line)
    unit = reward_scale(mdp).unit
    assert best.values.numbers.dtype == np.int64
    for pair in range(line.num_pairs):
        time, state = line.time_of(pair), int(line.states[pair])
        assert int(best.values.numbers[pair]) * unit == exact.optimal(time, state)
        assert int(worst.numbers[pair]) * unit == exact.worst(time, state)
        expected = exact.average(time, state)
        assert average.reward(pair) == pytest.approx(float(expected), rel=1e-13, abs=1e-13)
        assert int(average.residues[pair]) == residue(expected / unit)
        assert np.flatnonzero(best.actions[pair]).tolist() == exact.optimal_actions(time, state)
        assert bool(best.reached[pair]) == (state in exact.optimal_states()[time])
    assert best.undecided_ties == 0


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9])
def test_discounted_values(seed: int, gamma: float) -> None:
    mdp, line, _ = random_problem(seed)
    exact = Exact(mdp, Fraction(str(gamma)))
    best, worst, average = (f(line, gamma=gamma) for f in (optimal_values, worst_values, policy_values))
    for pair in range(line.num_pairs):
        time, state = line.time_of(pair), int(line.states[pair])
        assert best.values.reward(pair) == pytest.approx(float(exact.optimal(time, state)), rel=1e-13, abs=1e-13)
        assert worst.reward(pair) == pytest.approx(float(exact.worst(time, state)), rel=1e-13, abs=1e-13)
        assert average.reward(pair) == pytest.approx(float(exact.average(time, state)), rel=1e-13, abs=1e-13)
        assert np.flatnonzero(best.actions[pair]).tolist() == exact.optimal_actions(time, state)
    assert best.undecided_ties == 0


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("timed", [False, True])
def test_a_given_policy_against_all_action_sequences(seed: int, timed: bool) -> None:
    mdp, line, rng = random_problem(seed)
    array, fractions = random_policy(mdp, rng, timed=timed)
    exact = Exact(mdp, policy=fractions)
    sequences = list(product(range(mdp.num_actions), repeat=mdp.horizon))
    chances = [exact.probability(sequence) for sequence in sequences]
    returns = [exact.sequence_return(sequence) for sequence in sequences]
    assert sum(chances) == 1
    best = optimal_values(line)
    assert best.values.reward() == float(max(returns))
    assert worst_values(line).reward() == float(min(returns))
    mean = sum(c * r for c, r in zip(chances, returns, strict=True))
    assert policy_values(line, array).reward() == pytest.approx(float(mean), rel=1e-12, abs=1e-12)
    lucky = sum(c for c, r in zip(chances, returns, strict=True) if r == max(returns))
    assert optimal_return_probability(line, best, array) == pytest.approx(float(lucky), rel=1e-12)
    visits: dict[tuple[int, int, int], Fraction] = {}
    for sequence, chance in zip(sequences, chances, strict=True):
        for step in exact.path(sequence):
            visits[step] = visits.get(step, Fraction(0)) + chance
    measure = occupancy(line, array)
    for pair in range(line.num_pairs):
        time, state = line.time_of(pair), int(line.states[pair])
        total = sum(visits[time, state, a] for a in range(mdp.num_actions))
        assert measure[pair] == pytest.approx(float(total), rel=1e-12)
    check_minima(mdp, line, array, visits)


def check_minima(
    mdp: TabularMDP, line: Timeline, array: np.ndarray, visits: dict[tuple[int, int, int], Fraction]
) -> None:
    minima = occupancy_minima(line, array)
    by_pair: dict[tuple[int, int], list[Fraction]] = {}
    by_state: dict[int, dict[int, Fraction]] = {}
    for (time, state, action), chance in visits.items():
        by_pair.setdefault((state, action), []).append(chance)
        at = by_state.setdefault(state, {})
        at[time] = at.get(time, Fraction(0)) + chance
    assert minima.num_states == len(by_state)
    assert minima.state == pytest.approx(float(min(max(at.values()) for at in by_state.values())))
    assert minima.state_sum == pytest.approx(float(min(sum(at.values()) for at in by_state.values())))
    assert minima.state_action == pytest.approx(float(min(map(max, by_pair.values()))))
    assert minima.state_action_sum == pytest.approx(float(min(map(sum, by_pair.values()))))
    assert float(max(by_pair[minima.rarest])) == pytest.approx(minima.state_action)
    assert float(sum(by_pair[minima.rarest_sum])) == pytest.approx(minima.state_action_sum)


@pytest.mark.parametrize("seed", range(60))
def test_the_optimal_plan_breaks_ties_as_it_says(seed: int) -> None:
    """Ties go to the lowest action; with `rng`, to the first one from a random action of each state on and around."""
    mdp, line, rng = random_problem(seed)
    if seed % 2:  # without cycles, where one action per state does for all times
        later = np.arange(mdp.num_states)[:, None] + rng.integers(1, 3, mdp.transitions.shape)
        mdp = TabularMDP(np.where(later < mdp.num_states, later, -1), mdp.rewards, mdp.num_states + 1)
        line = timeline(mdp)
    exact = Exact(mdp)
    plan, drawn = optimal_plan(mdp), optimal_plan(mdp, np.random.default_rng(seed))
    starts = np.random.default_rng(seed).integers(mdp.num_actions, size=mdp.num_states)
    for pair in range(line.num_pairs):
        time, state = line.time_of(pair), int(line.states[pair])
        optimal = exact.optimal_actions(time, state)
        assert plan.action(time, state) == optimal[0]
        expected = min(optimal, key=lambda action: (action - int(starts[state])) % mdp.num_actions)
        assert drawn.action(time, state) == expected
    assert plan.optimal_return == drawn.optimal_return == float(exact.optimal(0, 0))
    assert return_range(mdp) == (float(exact.worst(0, 0)), float(exact.optimal(0, 0)))
    assert is_degenerate(mdp) == (exact.worst(0, 0) == exact.optimal(0, 0))


def test_values_so_small_that_only_relative_comparisons_serve() -> None:
    """A chain of 40 steps with 6 actions: Q^1 is 6^-39, exactly."""
    transitions = np.full((40, 6), -1)
    transitions[:-1, 2] = np.arange(1, 40)
    rewards = np.zeros((40, 6))
    rewards[-1, 2] = 1
    line = timeline(TabularMDP(transitions, rewards, 40))
    q = action_values(line, policy_values(line), 0)
    assert q[2] == pytest.approx(6.0**-39, rel=1e-12)
    assert q.tolist().count(0.0) == 5


def test_rewards_without_a_practical_unit() -> None:
    """Decimals too fine for a common unit: floats with residues, and exact ties all the same."""
    rewards = [[1e-7 / 3, 1e6 / 7], [0.1, 1e6 / 7]]
    mdp = TabularMDP([[1, 1], [-1, -1]], rewards, 2)
    assert mdp.reward_units() is None
    best = optimal_values(timeline(mdp))
    assert best.values.numbers.dtype == np.float64
    assert best.actions.tolist() == [[False, True], [False, True]]
    equal = TabularMDP([[1, 1], [-1, -1]], [[1e-7 / 3, 1e-7 / 3], [1e6 / 7, 1e6 / 7]], 2)
    assert optimal_values(timeline(equal)).actions.all()


def test_ties_that_floats_would_break() -> None:
    """Discount 0.1: 0.1 + 0.2 of one path ties with 0.3 of another, though the floats differ."""
    mdp = TabularMDP([[1, 2], [-1, -1], [-1, -1]], [[0.1, 0.3], [2.0, 2.0], [0.0, 0.0]], 2)
    assert 0.1 + 0.1 * 2.0 != 0.3
    assert optimal_values(timeline(mdp), gamma=0.1).actions[0].tolist() == [True, True]


@pytest.mark.parametrize("gamma", [-0.1, 1.5, float("nan")])
def test_bad_discount(gamma: float) -> None:
    with pytest.raises(InvalidDiscountError, match=str(gamma)):
        reward_scale(TabularMDP([[0]], [[0.0]], 1), gamma=gamma)


def test_residues_form_a_field() -> None:
    third = residue(Fraction(1, 3))
    assert 3 * third % PRIME == 1
    assert (residue(Fraction(-2, 7)) + residue(Fraction(2, 7))) % PRIME == 0


def test_a_layered_table_is_its_own_timeline() -> None:
    transitions = np.array([[1, 2], [3, 3], [3, -1], [-1, -1]])
    mdp = TabularMDP(transitions, np.zeros((4, 2)), 3)
    line = timeline(mdp)
    assert np.shares_memory(line.successors, mdp.transitions)
    assert line.starts.tolist() == [0, 1, 3, 4]
    shorter = timeline(TabularMDP(transitions, np.zeros((4, 2)), 2))  # states of time 1 have successors, pairs do not
    assert shorter.successors.tolist() == [[1, 2], [-1, -1], [-1, -1]]


def test_what_is_too_large_to_unroll_is_refused_by_its_exact_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 state at first, then 129, and from then on all 129^2 of them at every step."""
    transitions = np.arange(129**3).reshape(129**2, 129) % 129**2
    rewards = np.zeros(transitions.shape)
    with pytest.raises(InvalidTableError, match=r"^2,181,136,000 reachable \(time, state\) pairs do not fit"):
        timeline(TabularMDP(transitions, rewards, 131_072))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2**30))
    with pytest.raises(InvalidTableError, match=r"^166,376,848 reachable .* need 86,515,960,960 bytes"):
        timeline(TabularMDP(transitions, rewards, 10_000))
    assert timeline(TabularMDP(transitions, rewards, 5)).num_pairs == 1 + 129 + 3 * 129**2
