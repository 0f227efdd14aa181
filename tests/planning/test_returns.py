"""Distributions and moments of returns against enumeration of all action sequences in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from toy_mdps import random_mdp

from efhorizon import TabularMDP
from efhorizon.planning import returns
from efhorizon.planning.moments import ReturnMoments, return_moments
from efhorizon.planning.return_units import NoLatticeError
from efhorizon.planning.returns import return_distributions
from efhorizon.planning.timeline import Timeline, timeline


def enumerated(plan: Timeline, pair: int, policy: np.ndarray | None, gamma: Fraction) -> dict[Fraction, Fraction]:
    """The distribution of the return in reward units from one pair: all action sequences, one by one."""
    mdp = plan.mdp
    units = mdp.reward_units()
    assert units is not None
    chances: dict[Fraction, Fraction] = {}
    time = plan.time_of(pair)
    for sequence in product(range(mdp.num_actions), repeat=mdp.horizon - time):
        state, chance, total = int(plan.states[pair]), Fraction(1), Fraction(0)
        for step, action in enumerate(sequence):
            if state >= 0:
                total += gamma**step * int(units[0][mdp.reward_codes[state, action]])
            row = None if policy is None or state < 0 else policy[time + step, state]
            chance *= Fraction(1, mdp.num_actions) if row is None else Fraction(float(row[action]))
            state = int(mdp.transitions[state, action]) if state >= 0 else -1
        chances[total] = chances.get(total, Fraction(0)) + chance
    return {value: chance for value, chance in chances.items() if chance}


def check_moments(moments: ReturnMoments, i: int, chances: dict[Fraction, Fraction]) -> None:
    mean = sum(value * chance for value, chance in chances.items())
    central = [sum(chance * abs(value - mean) ** n for value, chance in chances.items()) for n in range(5)]
    assert moments.least[i] == pytest.approx(float(min(chances)), rel=1e-12, abs=1e-12)
    assert moments.largest[i] == pytest.approx(float(max(chances)), rel=1e-12, abs=1e-12)
    assert moments.above[i] == pytest.approx(float(mean - min(chances)), rel=1e-12, abs=1e-13)
    assert moments.below[i] == pytest.approx(float(max(chances) - mean), rel=1e-12, abs=1e-13)
    assert moments.variance[i] == pytest.approx(float(central[2]), rel=1e-10, abs=1e-13)
    assert moments.fourth[i] == pytest.approx(float(central[4]), rel=1e-10, abs=1e-13)
    assert moments.third_absolute[i] >= float(central[3]) * (1 - 1e-10) - 1e-13
    if moments.two_point[i]:
        assert len(chances) <= 2
        assert moments.third_absolute[i] == pytest.approx(float(central[3]), rel=1e-10, abs=1e-13)


def dyadic_policy(rng: np.random.Generator, mdp: TabularMDP) -> np.ndarray:
    """A random policy [T, S, A] whose probabilities are multiples of 1/64, some of them 0: rows sum to 1 exactly."""
    shares = rng.multinomial(64, np.full(mdp.num_actions, 1 / mdp.num_actions), (mdp.horizon, mdp.num_states))
    zero = rng.random((mdp.horizon, mdp.num_states)) < 0.2
    shares[zero] = 0
    shares[zero, 0] = 64
    return shares / 64


@pytest.mark.parametrize("given_policy", [False, True])
def test_distributions_and_moments_are_those_of_all_action_sequences(
    rng: np.random.Generator, given_policy: bool
) -> None:
    for _ in range(12):
        mdp = random_mdp(rng, num_states=5, num_actions=int(rng.integers(1, 4)), horizon=4)
        policy = dyadic_policy(rng, mdp) if given_policy else None
        plan = timeline(mdp)
        pairs = np.arange(-1, plan.num_pairs)
        found_all = return_distributions(plan, pairs, policy)
        moments = return_moments(plan, pairs, policy)
        for i, pair in enumerate(pairs):
            expected = enumerated(plan, pair, policy, Fraction(1)) if pair >= 0 else {Fraction(0): Fraction(1)}
            offset, mass = found_all.of(i)
            found = {offset + j: probability for j, probability in enumerate(mass) if probability}
            assert set(found) == set(expected)
            for value, chance in expected.items():
                assert found[int(value)] == pytest.approx(float(chance), rel=found_all.relative_error)
            check_moments(moments, i, expected)
            check_moments(found_all.moments(), i, expected)
        assert (moments.two_point == found_all.moments().two_point).all()


def test_discounted_moments(rng: np.random.Generator) -> None:
    for _ in range(6):
        mdp = random_mdp(rng, num_states=4, num_actions=2, horizon=4)
        plan = timeline(mdp)
        moments = return_moments(plan, np.arange(plan.num_pairs), gamma=0.5)
        for pair in range(plan.num_pairs):
            chances = enumerated(plan, pair, None, Fraction(1, 2))
            if not moments.two_point[pair]:
                check_moments(moments, pair, chances)


@pytest.mark.parametrize("gamma", ["0.5", "0.25", "0.75", "0.9", "0"])
@pytest.mark.parametrize("given_policy", [False, True])
def test_discounted_distributions(rng: np.random.Generator, gamma: str, given_policy: bool) -> None:
    for _ in range(6):
        mdp = random_mdp(rng, num_states=4, num_actions=2, horizon=4)
        policy = dyadic_policy(rng, mdp) if given_policy else None
        plan = timeline(mdp)
        found = return_distributions(plan, np.arange(plan.num_pairs), policy, gamma=float(gamma))
        denominator = Fraction(gamma).denominator
        for pair in range(plan.num_pairs):
            expected = enumerated(plan, pair, policy, Fraction(gamma))
            finest = denominator ** max(0, found.units.last - plan.time_of(pair))
            least, mass = found.of(pair)
            assert {Fraction(least + i, finest) for i in np.flatnonzero(mass).tolist()} == set(expected)
            for value, chance in expected.items():
                assert mass[int(value * finest) - least] == pytest.approx(float(chance), rel=found.relative_error)


def test_time_in_which_nothing_is_paid_makes_no_lattice_finer() -> None:
    """200 steps after the only payment: the lattice of discounted returns is that of two steps."""
    plan = timeline(TabularMDP([[1, 2], [2, 2], [2, 2]], [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], 200))
    found = return_distributions(plan, [0], gamma=0.5)
    assert found.units.last == 1
    assert found.of(0)[1].tolist() == [0.75, 0.25]


def test_tiny_probabilities_keep_their_digits() -> None:
    """A lock of 20 right actions of 6: the mean return is 6^-20, of which no digit may be lost."""
    length = 20
    transitions = np.full((length, 6), -1)
    transitions[:-1, 0] = np.arange(1, length)
    rewards = np.zeros((length, 6))
    rewards[-1, 0] = 1
    plan = timeline(TabularMDP(transitions, rewards, length))
    moments = return_moments(plan, [0])
    assert moments.above[0] == pytest.approx(6.0**-20, rel=1e-13)
    assert moments.variance[0] == pytest.approx(6.0**-20, rel=1e-13)
    assert moments.third_absolute[0] == pytest.approx(6.0**-20, rel=1e-13)
    assert return_distributions(plan, [0]).of(0)[1][1] == pytest.approx(6.0**-20, rel=1e-13)


def test_pairs_that_earn_nothing_share_one_distribution() -> None:
    transitions = np.array([[1, 2], [1, 1], [2, 2]])
    rewards = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    plan = timeline(TabularMDP(transitions, rewards, 50))
    found_all = return_distributions(plan, np.arange(plan.num_pairs))
    assert found_all.index[plan.states == 1].tolist() == [0] * 49
    assert len(found_all.lattice.offsets) == 1 + 49 + 1


@pytest.mark.parametrize(
    ("rewards", "options", "message"),
    [
        ([[0.0, 1.0]], {"gamma": 0.99999}, "gamma = 0.99999.* over 5 steps lie on too fine a lattice"),
        ([[0.0, 1.0]], {"gamma": 1e-300}, "gamma = 1e-300.* too fine"),
        ([[0.0, 1.0]], {"gamma": 0.99, "max_points": 10_000}, "more than 10,000"),
        ([[1e-30, 1.0]], {}, "no common unit"),
        ([[1e-6, 1.0]], {"max_points": 10_000}, "more than 10,000"),
    ],
)
def test_no_lattice_is_one_clear_line(rewards: list[list[float]], options: dict[str, float], message: str) -> None:
    plan = timeline(TabularMDP([[0, 0]], rewards, 5))
    with pytest.raises(NoLatticeError, match=message):
        return_distributions(plan, [0], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("hashed", [True, False])
def test_equal_rows_are_found_also_where_hashes_collide(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, hashed: bool
) -> None:
    if not hashed:
        monkeypatch.setattr(returns, "_row_hashes", lambda rows: np.zeros(len(rows), np.uint64))
    rows = rng.integers(-2, 2, size=(200, 3))
    first, number = returns._distinct_rows(rows)
    assert len(first) == len({tuple(row) for row in rows.tolist()})
    assert np.array_equal(rows[first[number]], rows)
    assert all((rows[:i] != rows[i]).any(axis=1).all() for i in first)
