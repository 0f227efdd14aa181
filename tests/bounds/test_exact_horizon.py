"""The exact success probability of GORP: brute force in fractions, closed forms, simulation, published tables."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from gorp_simulation import simulated_success
from toy_mdps import random_mdp

from efhorizon import TabularMDP, load
from efhorizon.bounds import examples
from efhorizon.bounds.effective_horizon import effective_horizon
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.gorp.backward import GreedyChoices, failing_chances
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.fractions import success_fraction
from efhorizon.gorp.sums import RolloutLaws
from efhorizon.planning.policies import exploration_policy
from efhorizon.planning.problem import problem
from efhorizon.planning.returns import return_laws
from efhorizon.planning.timeline import Timeline, timeline

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "bridge"


def greedy_choices(plan: Timeline, k: int) -> GreedyChoices:
    options = choices(plan, k)
    return GreedyChoices(options, return_laws(plan, options.group_ends))


def forward_choices(plan: Timeline, k: int) -> ForwardChoices:
    return ForwardChoices(plan, k, exploration_policy(plan.mdp, None))


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
        plan = timeline(mdp)
        expected = brute_force_success(mdp, k, m)
        assert success_fraction(choices(plan, k), m) == expected
        greedy, options = greedy_choices(plan, k), choices(plan, k)
        found = greedy.success(m)
        assert found.low <= float(expected) <= found.high
        assert found.high - found.low < 1e-11
        failures = np.zeros(options.num_choices)
        failing_chances(options.following, greedy.probabilities(m)[0], failures)
        assert failures.sum() == pytest.approx(1 - float(expected), abs=1e-11)
        assert found.worst_failure == failures.max()


@pytest.mark.parametrize(("k", "m"), [(1, 1), (1, 5), (2, 2), (3, 1)])
def test_success_forward_is_that_backward(rng: np.random.Generator, k: int, m: int) -> None:
    for _ in range(8):
        plan = timeline(random_mdp(rng, num_states=6, num_actions=2, horizon=7))
        backward, forward = greedy_choices(plan, k).success(m), forward_choices(plan, k).success(m, 0.0)
        assert forward.low <= backward.high
        assert backward.low <= forward.high
        assert forward.high - forward.low < 1e-11
        assert forward.worst_failure == pytest.approx(backward.worst_failure, abs=1e-12)


def test_success_lies_between_its_bounds_whatever_is_left_out(rng: np.random.Generator) -> None:
    for _ in range(20):
        plan = timeline(random_mdp(rng, num_states=12, num_actions=3, horizon=8))
        expected, greedy = greedy_choices(plan, 1).success(3), forward_choices(plan, 1)
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
    plan = timeline(TabularMDP([[-1, 1], [-1, -1]], [[1.0, 0.0], [0.0, 1.0]], 2))
    chances = greedy_choices(plan, 2).probabilities(1)[0]
    assert chances[0] == pytest.approx([2 / 3, 1 / 3], abs=1e-15)


@pytest.mark.parametrize("m", [2, 7, 15, 400])
def test_sums_of_returns(m: int, rng: np.random.Generator) -> None:
    """Convolution powers by FFT and binomial laws against repeated squaring in fixed-point integers of 200 bits."""
    for _ in range(4):
        plan = timeline(random_mdp(rng, num_states=4, num_actions=3, horizon=5))
        laws = return_laws(plan, np.arange(plan.num_pairs))
        rollouts = RolloutLaws(laws)
        sums = rollouts.sums(m)
        for law in rng.choice(len(laws.offsets), 3):
            mass = laws.mass[laws.starts[law] : laws.starts[law + 1]]
            expected = _power(mass, m)
            start, stop = sums.starts[law], sums.starts[law + 1]
            places = sums.firsts[law] - laws.offsets[law] * m + sums.strides[law] * np.arange(stop - start)
            found = np.zeros(len(expected))
            found[places] = sums.mass[start:stop]
            assert np.abs(np.cumsum(found) - np.cumsum(expected)).max() <= sums.errors[law] + 1e-15
            assert sums.errors[law] < 1e-13 * (m + 100)


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
    plan = timeline(TabularMDP([[0, 0, 0, 0]], rewards, 5))
    for m in (1, 3):
        chances, missing, _, _ = greedy_choices(plan, 4).probabilities(m)
        assert missing.max() < 1e-13
        assert chances.sum(axis=1) == pytest.approx(1, abs=1e-13)
        assert chances[0, 0] > chances[0, 1] == pytest.approx(chances[0, 3], rel=1e-12)


def coin_mdp() -> TabularMDP:
    """Action 0 leads to a payment of 2 or 0, action 1 to one of 1: GORP(1, 1) takes action 0 half the time."""
    return TabularMDP([[1, 2], [-1, -1], [-1, -1]], [[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]], 2)


def test_success_of_exactly_one_half_counts() -> None:
    result = exact_horizon(timeline(coin_mdp()), 1)
    assert result.m == 1
    assert result.success_probability == pytest.approx(0.5, abs=1e-12)
    assert result.smallest_m_verified
    assert result.previous_success_probability is None


def test_a_coin_that_never_reaches_one_half_is_not_decided_by_rounding() -> None:
    """Two coins one after the other, m odd: success 1/4. Even m: ties, still at most 1/4."""
    double = TabularMDP(
        [[1, 2], [3, 3], [3, 3], [4, 5], [-1, -1], [-1, -1]],
        [[0.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, 0.0], [1.0, 1.0]],
        4,
    )
    result = exact_horizon(timeline(double), 1, max_m=40)
    assert result.m is None
    assert result.success_probability is not None
    assert result.success_probability < 0.5
    assert result.reason is not None
    assert "1/2" in result.reason


def patience_mdp() -> TabularMDP:
    """3/4 at once against 1 by the right sequence of 4: Q^1 and Q^2 prefer the wrong action, whatever m."""
    transitions = np.array([[1, -1], [2, -1], [3, -1], [-1, -1]])
    rewards = np.array([[0, 0.75], [0, 0], [0, 0], [1, 0]])
    return TabularMDP(transitions, rewards, 4)


def test_no_m_can_be_proved_for_greed() -> None:
    result = exact_horizon(timeline(patience_mdp()), 1)
    assert result.m is None
    assert result.least_possible_m is None
    assert result.smallest_m_verified
    assert result.reason is not None
    assert "provably" in result.reason
    assert result.witness is not None
    assert (result.witness.time, result.witness.state) == (0, 0)


@pytest.mark.parametrize("proof", [True, False])
def test_a_horizon_is_exact_if_smaller_k_cannot_be_better(monkeypatch: pytest.MonkeyPatch, proof: bool) -> None:
    """GORP(3, 1) succeeds half the time: H = 3, if k = 1 fails for m < 4 and k = 2 for m = 1. They fail for every m."""
    if not proof:
        monkeypatch.setattr("efhorizon.bounds.exact_horizon._hopeless_from", lambda *_: None)
        monkeypatch.setattr("efhorizon.bounds.exact_horizon.SCAN_POINTS", 400)
    found = effective_horizon(problem(patience_mdp()))
    assert (found.value, found.k, found.m) == (3.0, 3, 1)
    assert [entry.exact_m for entry in found.by_k] == [None, None, 1]
    assert found.kind == "exact"
    least = [entry.least_possible_m for entry in found.by_k[:2]]
    assert least == [None, None] if proof else all(each is not None and 4 < each < 1000 for each in least)
    monkeypatch.setattr("efhorizon.bounds.exact_horizon._hopeless_from", lambda *_: None)
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.SCAN_POINTS", 0)  # one m is tried, then every second
    assert effective_horizon(problem(patience_mdp())).kind == "upper"


def test_where_choices_are_too_many_to_keep_appendix_c_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(random_mdp(np.random.default_rng(9), num_states=2, num_actions=3, horizon=6))
    expected = effective_horizon(given)
    assert expected.by_k[0].upper_reason is None
    for module in ("exact_horizon", "effective_horizon"):
        monkeypatch.setattr(f"efhorizon.bounds.{module}.MAX_SEQUENCES", 0)
    found = effective_horizon(given)
    assert (found.value, found.k, found.m, found.kind) == (expected.value, expected.k, expected.m, expected.kind)
    assert [entry.exact_m for entry in found.by_k] == [entry.exact_m for entry in expected.by_k]
    assert "would take long" in str(found.by_k[0].upper_reason)


def test_a_lock_has_a_closed_form() -> None:
    """T right actions of A pay 1: GORP(1, m) finds the next one if a rollout of it does, or by a draw.

    With n steps to go after the right action, p = A^-n: P(right) = 1 - (1 - p)^m (1 - 1/A).
    """
    horizon, num_actions = 5, 3
    transitions = np.full((horizon, num_actions), -1)
    transitions[:-1, 0] = np.arange(1, horizon)
    rewards = np.zeros(transitions.shape)
    rewards[-1, 0] = 1
    plan = timeline(TabularMDP(transitions, rewards, horizon))

    def success(m: int) -> float:
        chances = [1 - (1 - num_actions**-n) ** m * (1 - 1 / num_actions) for n in range(horizon)]
        return float(np.prod(chances))

    expected = next(m for m in range(1, 10_000) if success(m) >= 0.5)
    result = exact_horizon(plan, 1)
    assert result.m == expected
    assert result.success_probability == pytest.approx(success(expected), abs=1e-12)
    assert result.previous_success_probability == pytest.approx(success(expected - 1), abs=1e-12)


def test_many_episodes_beyond_goal_mdps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that pays 1 whatever is done changes nothing for GORP, but the MDP is no goal MDP any more.

    Goal MDPs have a way of their own, by binomial laws; lattices of returns find the same m.
    """
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.SCAN_POINTS", 100_000)
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.VERIFY_POINTS", 100_000)
    sparse = examples.sparse_rewards(20, 2)
    rewards = sparse.reward_values[sparse.reward_codes]
    later = np.where(sparse.transitions >= 0, sparse.transitions + 1, -1)
    paid = TabularMDP(np.vstack([[[1, 1]], later]), np.vstack([[[1.0, 1.0]], rewards]), 21)
    given, expected = problem(paid, max_k=1), effective_horizon(problem(sparse, max_k=1))
    assert not given.is_goal_mdp
    found = effective_horizon(given)
    assert found.m == expected.m == 242_700
    assert found.by_k[0].method == "exact laws, by bisection"
    assert exact_horizon(given.timeline, 1, max_m=10**6).success_probability == pytest.approx(0.5000003786, abs=1e-9)


def test_bisection_beyond_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = timeline(random_mdp(np.random.default_rng(9), num_states=2, num_actions=3, horizon=6))
    scanned = exact_horizon(plan, 1)
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.SCAN_POINTS", 0)
    bisected = exact_horizon(plan, 1)
    assert bisected.m == scanned.m


def test_the_least_m_does_not_depend_on_what_is_left_out(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [timeline(random_mdp(rng, num_states=10, num_actions=3, horizon=8)) for _ in range(12)]
    whole = [exact_horizon(plan, 1, max_m=60) for plan in plans]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.FULL_POINTS", 0)  # choices are left out at every m
    scanned = [exact_horizon(plan, 1, max_m=60) for plan in plans]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.SCAN_POINTS", 0)  # bisection, then the m passed over
    verified = [exact_horizon(plan, 1, max_m=60) for plan in plans]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.MAX_SEQUENCES", 0)  # no choice is kept
    not_kept = [exact_horizon(plan, 1, max_m=60) for plan in plans]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.CHEAP_POINTS", 0)  # bisection ends early
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.PRECISION", 2)
    rough = [exact_horizon(plan, 1, max_m=60) for plan in plans]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.VERIFY_POINTS", 0)  # and what it passed over is not tried
    unverified = [exact_horizon(plan, 1, max_m=60) for plan in plans]
    assert [each.m for each in scanned] == [each.m for each in whole] == [each.m for each in verified]
    assert [each.m for each in not_kept] == [each.m for each in whole] == [each.m for each in rough]
    for some, all_of_it in zip(unverified, whole, strict=True):
        assert (some.m is None) == (all_of_it.m is None)
        assert some.m == all_of_it.m or (some.m > all_of_it.m and not some.smallest_m_verified)
    assert any(each.m != other.m for each, other in zip(unverified, whole, strict=True))
    assert {each.m for each in whole} > {None, 3, 23}  # all sorts
    assert all(each.smallest_m_verified for each in verified if each.m is not None)
    for some, all_of_it in zip(verified, whole, strict=True):
        if some.m is not None:
            assert some.success_probability == pytest.approx(all_of_it.success_probability, abs=some.error)


def test_simulated_gorp_agrees(rng: np.random.Generator) -> None:
    """Success at the exact m and at m - 1, and 1/2 between the two, within 4 standard errors."""
    runs, checked = 4000, 0
    for trial in range(40):
        mdp = random_mdp(rng, num_states=int(rng.integers(2, 7)), num_actions=2, horizon=int(rng.integers(2, 6)))
        k = 1 + trial % 2
        result = exact_horizon(timeline(mdp), k, max_m=40)
        if result.m is None:
            continue
        error = 4 * 0.5 / runs**0.5
        simulated = simulated_success(mdp, k, result.m, runs, seed=trial)
        assert simulated == pytest.approx(result.success_probability, abs=error)
        assert simulated >= 0.5 - error
        if result.m > 1:
            before = simulated_success(mdp, k, result.m - 1, runs, seed=100 + trial)
            assert before == pytest.approx(result.previous_success_probability, abs=error)
            assert before < 0.5 + error
        checked += 1
    assert checked >= 24


def test_reasons_instead_of_numbers() -> None:
    plan = timeline(TabularMDP([[0, 0]], [[1e-30, 1.0]], 3))
    result = exact_horizon(plan, 1)
    assert result.m is None
    assert result.reason == "rewards have no common unit, so returns lie on no lattice"
    discounted = exact_horizon(timeline(coin_mdp()), 1, gamma=0.5)
    assert discounted.m is None
    assert discounted.reason is not None
    assert "gamma = 0.5" in discounted.reason
    with pytest.raises(ValueError, match="got 0"):
        exact_horizon(timeline(coin_mdp()), 0)


def test_a_given_exploration_policy_decides_the_rollouts() -> None:
    """With the optimal policy to explore, one rollout is enough; with the opposite one, none is."""
    horizon = 8
    transitions = np.full((horizon, 2), -1)
    transitions[:-1, 0] = np.arange(1, horizon)
    rewards = np.zeros(transitions.shape)
    rewards[-1, 0] = 1
    plan = timeline(TabularMDP(transitions, rewards, horizon))
    right = np.tile([1.0, 0.0], (horizon, 1))
    assert exact_horizon(plan, 1, exploration_policy=right).success_probability == pytest.approx(1.0)
    uniform, wrong = exact_horizon(plan, 1), exact_horizon(plan, 1, exploration_policy=right[:, ::-1], max_m=50)
    assert uniform.m is not None
    assert uniform.m > 1
    assert wrong.m is None


GOLDEN = {"freeway_10_fs30": (18, 6), "maze_easy_l0_30_fs1": (1, 1), "MiniGrid-KeyCorridorS3R1-v0": (28, 5)}


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference tables are not here")
@pytest.mark.parametrize("name", GOLDEN)
def test_published_tables(name: str) -> None:
    plan = timeline(load(REFERENCE / name / "consolidated.npz"))
    for k, expected in enumerate(GOLDEN[name], start=1):
        result = exact_horizon(plan, k)
        assert result.m == expected
        assert result.smallest_m_verified
        assert result.error is not None
        assert result.error < 1e-9


def test_tables_built_here(minigrid_tables: dict[str, TabularMDP]) -> None:
    assert exact_horizon(timeline(minigrid_tables["MiniGrid-Empty-5x5-v0"]), 1).m == 1
    assert exact_horizon(timeline(minigrid_tables["MiniGrid-KeyCorridorS3R1-v0"]), 1).m == 28
