"""The least m that suffices: closed forms, simulation, published tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gorp_simulation import simulated_success
from toy_mdps import random_mdp

from efhorizon import TabularMDP, load
from efhorizon.bounds import examples
from efhorizon.bounds.effective_horizon import effective_horizon
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.planning.problem import problem

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "bridge"


def coin_mdp() -> TabularMDP:
    """Action 0 leads to a payment of 2 or 0, action 1 to one of 1: GORP(1, 1) takes action 0 half the time."""
    return TabularMDP([[1, 2], [-1, -1], [-1, -1]], [[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]], 2)


def test_success_of_exactly_one_half_counts() -> None:
    result = exact_horizon(problem(coin_mdp()), 1)
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
    result = exact_horizon(problem(double), 1, max_m=40)
    assert result.m is None
    assert result.success_probability is not None
    assert result.success_probability < 0.5
    assert result.reason is not None
    assert "1/2" in result.reason


def patience_mdp() -> TabularMDP:
    """3/4 at once against 1 by the right sequence of 4: Q^1 and Q^2 prefer the wrong action for every m."""
    transitions = np.array([[1, -1], [2, -1], [3, -1], [-1, -1]])
    rewards = np.array([[0, 0.75], [0, 0], [0, 0], [1, 0]])
    return TabularMDP(transitions, rewards, 4)


def test_no_m_can_be_proved_for_greed() -> None:
    result = exact_horizon(problem(patience_mdp()), 1)
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


def sparse_lock(horizon: int, num_actions: int) -> TabularMDP:
    """One sequence of actions pays 1, at its end."""
    transitions = np.full((horizon, num_actions), -1)
    transitions[:-1, 0] = np.arange(1, horizon)
    rewards = np.zeros(transitions.shape)
    rewards[-1, 0] = 1
    return TabularMDP(transitions, rewards, horizon)


@pytest.mark.parametrize(("horizon", "m", "kind"), [(3, 2, "exact"), (4, 4, "upper")])
def test_a_horizon_is_exact_if_larger_k_cannot_be_better(horizon: int, m: int, kind: str) -> None:
    """With k = 1 only: a larger k takes 2^2 episodes per step or more, so 2 * 2 cannot be beaten, but 2 * 4 can."""
    mdp = sparse_lock(horizon, 2)
    found = effective_horizon(problem(mdp, max_k=1))
    assert (found.k, found.m, found.by_k[0].exact_m) == (1, m, m)
    assert found.kind == kind
    assert effective_horizon(problem(mdp, max_k=horizon)).kind == "exact"


def test_where_choices_are_too_many_to_keep_appendix_c_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(random_mdp(np.random.default_rng(9), num_states=2, num_actions=3, horizon=6))
    expected = effective_horizon(given)
    assert expected.by_k[0].upper_reason is None
    for module in ("gorp.exact_success", "bounds.effective_horizon"):
        monkeypatch.setattr(f"efhorizon.{module}.MAX_SEQUENCES", 0)
    found = effective_horizon(given)
    assert (found.value, found.k, found.m, found.kind) == (expected.value, expected.k, expected.m, expected.kind)
    assert [entry.exact_m for entry in found.by_k] == [entry.exact_m for entry in expected.by_k]
    num_sequences = int(given.optimal.reached.sum()) * 3
    assert found.by_k[0].upper_reason == f"left out: {num_sequences:,} action sequences would take long"


def test_a_lock_has_a_closed_form() -> None:
    """T right actions of A pay 1: GORP(1, m) finds the next one if a rollout of it does, or by a draw.

    With n steps to go after the right action, p = A^-n: P(right) = 1 - (1 - p)^m (1 - 1/A).
    """
    horizon, num_actions = 5, 3
    given = problem(sparse_lock(horizon, num_actions))

    def success(m: int) -> float:
        chances = [1 - (1 - num_actions**-n) ** m * (1 - 1 / num_actions) for n in range(horizon)]
        return float(np.prod(chances))

    expected = next(m for m in range(1, 10_000) if success(m) >= 0.5)
    result = exact_horizon(given, 1)
    assert result.m == expected
    assert result.success_probability == pytest.approx(success(expected), abs=1e-12)
    assert result.previous_success_probability == pytest.approx(success(expected - 1), abs=1e-12)


def test_many_episodes_beyond_goal_mdps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that pays 1 for every action changes nothing for GORP, but the MDP is no goal MDP any more.

    Goal MDPs have a way of their own, by binomial distributions; lattices of returns find the same m.
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
    assert exact_horizon(given, 1, max_m=10**6).success_probability == pytest.approx(0.5000003786, abs=1e-9)


def test_bisection_beyond_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(random_mdp(np.random.default_rng(9), num_states=2, num_actions=3, horizon=6))
    scanned = exact_horizon(given, 1)
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.SCAN_POINTS", 0)
    bisected = exact_horizon(given, 1)
    assert bisected.m == scanned.m


def test_a_rough_search_ends_with_an_m_that_suffices_and_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(sparse_lock(7, 2))
    exact = exact_horizon(given, 1)
    assert exact.m is not None
    for name in ("SCAN_POINTS", "CHEAP_POINTS", "VERIFY_POINTS"):
        monkeypatch.setattr(f"efhorizon.bounds.exact_horizon.{name}", 0)
    for precision in (3, 10, 100):
        monkeypatch.setattr("efhorizon.bounds.exact_horizon.PRECISION", precision)
        rough = exact_horizon(given, 1)
        assert rough.m is not None
        assert exact.m <= rough.m <= exact.m * (1 + 2 / precision) + 1
        assert rough.success_probability is not None
        assert rough.success_probability >= 0.5


def test_the_least_m_does_not_depend_on_what_is_left_out(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [problem(random_mdp(rng, num_states=10, num_actions=3, horizon=8)) for _ in range(12)]
    whole = [exact_horizon(given, 1, max_m=60) for given in problems]
    monkeypatch.setattr("efhorizon.gorp.exact_success.FULL_POINTS", 0)  # choices are left out at every m
    scanned = [exact_horizon(given, 1, max_m=60) for given in problems]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.SCAN_POINTS", 0)  # bisection, then the m passed over
    verified = [exact_horizon(given, 1, max_m=60) for given in problems]
    monkeypatch.setattr("efhorizon.gorp.exact_success.MAX_SEQUENCES", 0)  # no choice is kept
    not_kept = [exact_horizon(given, 1, max_m=60) for given in problems]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.CHEAP_POINTS", 0)  # bisection ends early
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.PRECISION", 2)
    rough = [exact_horizon(given, 1, max_m=60) for given in problems]
    monkeypatch.setattr("efhorizon.bounds.exact_horizon.VERIFY_POINTS", 0)  # and what it passed over is not tried
    unverified = [exact_horizon(given, 1, max_m=60) for given in problems]
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
        result = exact_horizon(problem(mdp), k, max_m=40)
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
    given = problem(TabularMDP([[0, 0]], [[1e-30, 1.0]], 3))
    result = exact_horizon(given, 1)
    assert result.m is None
    assert result.reason == "rewards have no common unit, so returns lie on no lattice"
    long = TabularMDP([[0, 0]], [[0.0, 1.0]], 100)
    discounted = exact_horizon(problem(long, gamma=0.5), 1)
    assert discounted.m is None
    assert discounted.reason == "discounted returns (gamma = 0.5) over 100 steps lie on too fine a lattice"
    with pytest.raises(ValueError, match="got 0"):
        exact_horizon(problem(coin_mdp()), 0)


def test_a_given_exploration_policy_decides_the_rollouts() -> None:
    """With the optimal policy to explore, one rollout is enough; with the opposite one, none is."""
    horizon = 8
    mdp = sparse_lock(horizon, 2)
    right = np.tile([1.0, 0.0], (horizon, 1))
    assert exact_horizon(problem(mdp, policy=right), 1).success_probability == pytest.approx(1.0)
    uniform, wrong = (
        exact_horizon(problem(mdp, policy=policy), 1, max_m=max_m)
        for policy, max_m in ((None, 1000), (right[:, ::-1], 50))
    )
    assert uniform.m is not None
    assert uniform.m > 1
    assert wrong.m is None


GOLDEN = {"freeway_10_fs30": (18, 6), "maze_easy_l0_30_fs1": (1, 1), "MiniGrid-KeyCorridorS3R1-v0": (28, 5)}


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference tables are not here")
@pytest.mark.parametrize("name", GOLDEN)
def test_published_tables(name: str) -> None:
    given = problem(load(REFERENCE / name / "consolidated.npz"))
    for k, expected in enumerate(GOLDEN[name], start=1):
        result = exact_horizon(given, k)
        assert result.m == expected
        assert result.smallest_m_verified
        assert result.error is not None
        assert result.error < 1e-9


def test_tables_built_here(minigrid_tables: dict[str, TabularMDP]) -> None:
    assert exact_horizon(problem(minigrid_tables["MiniGrid-Empty-5x5-v0"]), 1).m == 1
    assert exact_horizon(problem(minigrid_tables["MiniGrid-KeyCorridorS3R1-v0"]), 1).m == 28
