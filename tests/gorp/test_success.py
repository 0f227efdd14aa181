"""GORP's exact success: brute force in fractions, backward against forward, sums of returns."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from toy_mdps import random_mdp

from efhorizon import TabularMDP
from efhorizon.gorp.backward import GreedyChoices, failing_chances
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.exact_success import ExactSuccess, UndecidedError
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.fractions import success_fraction
from efhorizon.gorp.success import LEFT_OUT, Success, compared_with_half
from efhorizon.gorp.sums import RolloutSums
from efhorizon.planning.problem import Problem, problem
from efhorizon.planning.returns import return_distributions
from efhorizon.planning.timeline import timeline


def greedy_choices(given: Problem, k: int) -> GreedyChoices:
    options = choices(given, k)
    return GreedyChoices(options, given.return_distributions(options.group_ends))


def brute_force_success(mdp: TabularMDP, k: int, m: int) -> Fraction:
    """Every outcome of every sequence's m rollouts together, at every state that optimal play reaches."""
    units = mdp.reward_units()
    assert units is not None
    rewards, actions = units[0][mdp.reward_codes], range(mdp.num_actions)

    def law(time: int, state: int) -> dict[int, Fraction]:
        if state < 0 or time == mdp.horizon:
            return {0: Fraction(1)}
        mixed: dict[int, Fraction] = {}
        for action in actions:
            for value, chance in law(time + 1, int(mdp.transitions[state, action])).items():
                value += int(rewards[state, action])
                mixed[value] = mixed.get(value, Fraction(0)) + chance / mdp.num_actions
        return mixed

    def best(time: int, state: int) -> int:
        if state < 0 or time == mdp.horizon:
            return 0
        return max(int(rewards[state, a]) + best(time + 1, int(mdp.transitions[state, a])) for a in actions)

    def success(time: int, state: int) -> Fraction:
        if state < 0 or time == mdp.horizon:
            return Fraction(1)
        sums, firsts = [], []
        for sequence in product(actions, repeat=k):
            here, now, prefix = state, time, 0
            for action in sequence:
                if here >= 0 and now < mdp.horizon:
                    prefix += int(rewards[here, action])
                    here, now = int(mdp.transitions[here, action]), now + 1
            one = {value + prefix: chance for value, chance in law(now, here).items()}
            total = {0: Fraction(1)}
            for _ in range(m):
                longer: dict[int, Fraction] = {}
                for (a, p), (b, q) in product(total.items(), one.items()):
                    longer[a + b] = longer.get(a + b, Fraction(0)) + p * q
                total = longer
            sums.append(total)
            firsts.append(sequence[0])
        chosen = [Fraction(0)] * mdp.num_actions
        for outcome in product(*(total.items() for total in sums)):
            chance = Fraction(1)
            for _, probability in outcome:
                chance *= probability
            top = max(value for value, _ in outcome)
            winners = [first for first, (value, _) in zip(firsts, outcome, strict=True) if value == top]
            for first in winners:
                chosen[first] += chance / len(winners)
        return sum(
            (
                chosen[a] * success(time + 1, int(mdp.transitions[state, a]))
                for a in actions
                if rewards[state, a] + best(time + 1, int(mdp.transitions[state, a])) == best(time, state)
            ),
            Fraction(0),
        )

    return success(0, 0)


@pytest.mark.parametrize(("k", "m", "num_actions", "horizon"), [(1, 1, 3, 3), (1, 3, 2, 4), (2, 1, 2, 3), (2, 2, 2, 2)])
def test_success_is_that_of_brute_force(
    rng: np.random.Generator, k: int, m: int, num_actions: int, horizon: int
) -> None:
    for _ in range(8):
        mdp = random_mdp(rng, num_states=3, num_actions=num_actions, horizon=horizon)
        given = problem(mdp)
        expected = brute_force_success(mdp, k, m)
        assert success_fraction(choices(given, k), m) == expected
        greedy, options = greedy_choices(given, k), choices(given, k)
        found = greedy.success(m)
        assert found.low <= float(expected) <= found.high
        assert found.high - found.low < 1e-11
        failures = np.zeros(options.num_choices)
        failing_chances(options.following, greedy.probabilities(m)[0].chances, failures)
        assert failures.sum() == pytest.approx(1 - float(expected), abs=1e-11)
        assert found.worst_failure == failures.max()


@pytest.mark.parametrize(("k", "m"), [(1, 1), (1, 5), (2, 2), (3, 1)])
def test_success_forward_is_that_backward(rng: np.random.Generator, k: int, m: int) -> None:
    for _ in range(8):
        given = problem(random_mdp(rng, num_states=6, num_actions=2, horizon=7))
        backward, forward = greedy_choices(given, k).success(m), ForwardChoices(given, k).success(m, 0.0)
        assert forward.low <= backward.high
        assert backward.low <= forward.high
        assert forward.high - forward.low < 1e-11
        assert forward.worst_failure == pytest.approx(backward.worst_failure, abs=1e-12)


def test_success_lies_between_its_bounds_however_much_is_left_out(rng: np.random.Generator) -> None:
    for _ in range(20):
        given = problem(random_mdp(rng, num_states=12, num_actions=3, horizon=8))
        expected, greedy = greedy_choices(given, 1).success(3), ForwardChoices(given, 1)
        for left_out in (0.3, 0.02):
            found = greedy.success(3, left_out)
            assert found.low <= expected.high
            assert expected.low <= found.high
            assert found.high - found.low <= left_out + 1e-11
        early = greedy.success(3, 0.02, least=0.5)
        assert early.low <= expected.high
        assert expected.low <= early.high
        assert (early.high < 0.5) == (greedy.success(3, 0.02).high < 0.5)


def test_choices_near_the_horizon_and_after_the_end_count_all_sequences() -> None:
    """k beyond what is left: action 0 ends the episode with 1, action 1 goes on to a second payment of 0 or 1.

    Of the 4 sequences, (0, 0), (0, 1) and (1, 1) return 1: action 0 begins two of them.
    """
    given = problem(TabularMDP([[-1, 1], [-1, -1]], [[1.0, 0.0], [0.0, 1.0]], 2))
    chances = greedy_choices(given, 2).probabilities(1)[0].chances
    assert chances[0] == pytest.approx([2 / 3, 1 / 3], abs=1e-15)


@pytest.mark.parametrize("m", [2, 7, 15, 400])
def test_sums_of_returns(m: int, rng: np.random.Generator) -> None:
    """Convolution powers by FFT and binomials against repeated squaring in fixed-point integers of 200 bits."""
    for _ in range(4):
        plan = timeline(random_mdp(rng, num_states=4, num_actions=3, horizon=5))
        returns = return_distributions(plan, np.arange(plan.num_pairs))
        starts, offsets, mass = returns.lattice
        sums = RolloutSums(returns).sums(m)
        for chosen in rng.choice(len(offsets), 3):
            expected = _power(mass[starts[chosen] : starts[chosen + 1]], m)
            start, stop = sums.starts[chosen], sums.starts[chosen + 1]
            places = sums.firsts[chosen] - offsets[chosen] * m + sums.strides[chosen] * np.arange(stop - start)
            found = np.zeros(len(expected))
            found[places] = sums.mass[start:stop]
            assert np.abs(np.cumsum(found) - np.cumsum(expected)).max() <= sums.errors[chosen] + 1e-15
            assert sums.errors[chosen] < 1e-13 * (m + 100)


def _power(mass: np.ndarray, m: int) -> np.ndarray:
    """Numbers below 2^200 side by side in one large integer: a product of integers is a product of polynomials."""
    bits, width = 200, 440

    def packed(numbers: list[int]) -> int:
        return sum(number << (width * i) for i, number in enumerate(numbers))

    def product_of(a: list[int], b: list[int]) -> list[int]:
        whole = packed(a) * packed(b)
        mask = (1 << width) - 1
        return [(whole >> (width * i) & mask) >> bits for i in range(len(a) + len(b) - 1)]

    if m > 100:  # doubles are enough to check the window: the error of repeated squaring is m 1e-16
        result, square, exponent = np.ones(1), mass / mass.sum(), m
        while exponent:
            result = np.convolve(result, square) if exponent & 1 else result
            exponent >>= 1
            square = np.convolve(square, square) if exponent else square
        return result
    one = [int(Fraction(float(p)) * (1 << bits)) for p in mass]
    power = one
    for _ in range(m - 1):
        power = product_of(power, one)
    return np.array([float(Fraction(p, 1 << bits)) for p in power])


def test_many_ties_at_once() -> None:
    """4^4 sequences: 16 Gauss nodes on halving panels instead of 128; what they miss is measured."""
    rewards = np.zeros((1, 4))
    rewards[0, 0] = 1.0
    given = problem(TabularMDP([[0, 0, 0, 0]], rewards, 5))
    for m in (1, 3):
        (chances, missing, _), _ = greedy_choices(given, 4).probabilities(m)
        assert missing.max() < 1e-13
        assert chances.sum(axis=1) == pytest.approx(1, abs=1e-13)
        assert chances[0, 0] > chances[0, 1] == pytest.approx(chances[0, 3], rel=1e-12)


def test_the_choices_of_one_k_are_kept_and_given_up_for_the_next() -> None:
    given = problem(random_mdp(np.random.default_rng(3), num_states=6, num_actions=2, horizon=7))
    first = choices(given, 1)
    assert choices(given, 1) is first
    assert choices(problem(given.mdp), 1) is not first
    assert choices(given, 2).num_steps == 2
    assert choices(given, 1) is not first


def test_what_bounds_decide_and_what_they_leave_open() -> None:
    """At least 1/2 if even the lower bound is, less if the upper one is; else only fractions tell, if there are any."""
    policy = np.tile([0.3, 0.7], (2, 1))
    exact = ExactSuccess(problem(TabularMDP([[1, -1], [-1, -1]], [[0.0, 0.0], [1.0, 0.0]], 2), policy=policy), 1)
    assert exact.is_half(1, bounded(0.5, 0.6))
    assert not exact.is_half(1, bounded(0.4, 0.4999))
    for low, high in ((0.4999, 0.5), (0.4, 0.6)):
        with pytest.raises(UndecidedError, match="m = 3 is too close to 1/2"):
            exact.is_half(3, bounded(low, high))


@pytest.mark.parametrize(
    ("decides", "at_least", "tried"), [(0.02, 0.0, 2), (0.2, 0.0, 1), (0.0, 0.002, 3), (0.0, 0.0, 6)]
)
def test_choices_are_left_out_as_long_as_that_decides(decides: float, at_least: float, tried: int) -> None:
    asked: list[float] = []

    def success(left_out: float) -> Success:
        asked.append(left_out)
        return bounded(0.5 if left_out <= decides else 0.4, 0.5 + left_out)

    found = compared_with_half(success, at_least=at_least)
    assert asked == list(LEFT_OUT[:tried])
    assert found.points == 7 * tried  # all the work
    assert found.high == 0.5 + asked[-1]


def bounded(low: float, high: float) -> Success:
    return Success(low, high, worst_pair=0, worst_failure=0.0, points=7)
