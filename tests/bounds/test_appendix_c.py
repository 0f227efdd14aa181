"""Appendix C: the linear program, the four methods against exact chances, exact <= upper, published figures."""

from __future__ import annotations

import math
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from gorp_simulation import simulated_success
from scipy.optimize import linprog
from scipy.stats import binom
from toy_mdps import random_mdp

from efhorizon import TabularMDP, load
from efhorizon.bounds import examples
from efhorizon.bounds.appendix_c import bound as appendix_c
from efhorizon.bounds.appendix_c import failure as kernels
from efhorizon.bounds.appendix_c.bound import appendix_c_bound, least_certified
from efhorizon.bounds.appendix_c.failure_bound import FailureBound
from efhorizon.bounds.appendix_c.methods import UNUSED, bennett
from efhorizon.bounds.appendix_c.tails import (
    LOW,
    NUM_COLUMNS,
    SLACK,
    berry_esseen_error,
    difference_exponent,
    exceeds,
    exponent,
    reaches,
    stays_within,
)
from efhorizon.bounds.effective_horizon import effective_horizon
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.bounds.theorem_horizon import theorem_horizon
from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices
from efhorizon.gorp.ties import TIES
from efhorizon.planning.problem import Problem, problem

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "bridge"


def goal_mdp(rng: np.random.Generator, mdp: TabularMDP) -> TabularMDP:
    """The same transitions, and a few payments of 1 that end the episode: returns are 0 or 1."""
    pays = rng.random(mdp.transitions.shape) < 0.2
    return TabularMDP(np.where(pays, -1, mdp.transitions), pays.astype(float), mdp.horizon)


def random_table(rng: np.random.Generator, trial: int) -> TabularMDP:
    mdp = random_mdp(rng, int(rng.integers(2, 8)), int(rng.integers(2, 4)), int(rng.integers(2, 7)))
    return goal_mdp(rng, mdp) if trial % 3 == 0 else mdp


def greedy_choices(given: Problem, k: int) -> GreedyChoices:
    options = choices(given, k)
    return GreedyChoices(options, given.return_distributions(options.group_ends))


def failure_bound(given: Problem, k: int, *, uniform_ties: bool = True) -> FailureBound:
    options = choices(given, k)
    return FailureBound(options, given.return_moments(options.group_ends), uniform_ties=uniform_ties)


def coins(chances: list[float], optimal: list[bool]) -> np.ndarray:
    """A group for each coin: one sequence whose return is 1 with that chance, else 0."""
    rows = np.zeros((len(chances), NUM_COLUMNS))
    for row, p, is_optimal in zip(rows, chances, optimal, strict=True):
        row[:6] = 0.0, 1.0, p, 1 - p, p * (1 - p), p * (1 - p) * (p * p + (1 - p) ** 2)
        row[-2:] = 1.0, float(is_optimal)
    return rows


def test_the_knapsack_solves_the_linear_program(rng: np.random.Generator) -> None:
    for _ in range(200):
        num_actions = int(rng.integers(2, 6))
        chances = rng.dirichlet(np.ones(num_actions))
        lower = chances * rng.random(num_actions)
        upper = np.minimum(1, chances + rng.random(num_actions) * 0.5)
        following = rng.integers(-2, 3, num_actions).astype(np.int32)
        following[0] = 0
        others = following == -2
        cap = min(1.0, chances[others].sum() + rng.random() * 0.3)
        after = np.append(rng.random(3), 0.0)
        failures = np.where(others, 1.0, after[np.maximum(following, -1)])
        solution = np.empty(num_actions)
        value = kernels.knapsack(following, lower, upper, cap, after[:3], solution)
        expected = linprog(
            -failures,
            A_ub=[others.astype(float)],
            b_ub=[cap],
            A_eq=[np.ones(num_actions)],
            b_eq=[1.0],
            bounds=list(zip(lower, upper, strict=True)),
        )
        assert value == pytest.approx(-expected.fun, abs=1e-9)
        assert solution.sum() == pytest.approx(1)
        assert solution @ failures == pytest.approx(value)


@pytest.mark.parametrize("uniform_ties", [True, False])
def test_every_method_contains_the_exact_chances(rng: np.random.Generator, uniform_ties: bool) -> None:
    counted = np.zeros(4, np.int64)
    for trial in range(40):
        given = problem(random_table(rng, trial))
        k = 1 + trial % 2
        greedy, bound = greedy_choices(given, k), failure_bound(given, k, uniform_ties=uniform_ties)
        following = choices(given, k).following
        if trial % 6 == 0:  # the other methods have to hold for binomial sums too
            bound._groups = bound._groups._replace(two_point=np.zeros_like(bound._groups.two_point))
        for m in (1, 2, 7, 40, 900):
            exact = greedy.probabilities(m)[0].chances
            others = np.where(following == -2, exact, 0).sum(axis=1)
            lower, upper, cap = bound.chance_bounds(m, 0, len(following))
            for method in range(kernels.NUM_METHODS):
                used = cap[:, method] != UNUSED
                counted[method] += used.sum()
                assert (lower[used, method] <= exact[used] + 1e-9).all()
                assert (upper[used, method] >= exact[used] - 1e-9).all()
                assert (cap[used, method] >= others[used] - 1e-9).all()
            assert bound(m).failure >= 1 - greedy.success(m).high - 1e-9
    assert (counted > 300).all()


def test_exact_is_at_most_upper(rng: np.random.Generator) -> None:
    compared = 0
    for trial in range(60):
        given = problem(random_table(rng, trial))
        k = 1 + trial % 2
        upper = appendix_c_bound(given, k)
        assert (upper.m is None) == (upper.reason is not None)
        if upper.m is not None and upper.m <= 300:
            exact = exact_horizon(given, k, max_m=upper.m)
            assert exact.m is not None
            assert exact.m <= upper.m
            compared += 1
    assert compared >= 40


def test_upper_is_at_most_theorem(rng: np.random.Generator) -> None:
    """Also where an optimal policy visits states in which greed fails, but greed itself does not go there."""
    compared = 0
    for _ in range(80):
        mdp = random_mdp(rng, int(rng.integers(2, 9)), int(rng.integers(2, 4)), int(rng.integers(2, 8)))
        rewards = rng.choice([0.0, 0.0, 1.0, 2.0, 0.5, 7.0], size=mdp.transitions.shape)
        task = problem(TabularMDP(mdp.transitions, rewards, mdp.horizon))
        theorem = theorem_horizon(task, 1)
        if theorem.m is not None:
            upper = appendix_c_bound(task, 1)
            assert upper.m is not None
            assert upper.m <= theorem.m
            compared += 1
    assert compared >= 50


def test_success_limits_hold_for_every_larger_m(rng: np.random.Generator) -> None:
    proved = 0
    for trial in range(40):
        given = problem(random_table(rng, trial))
        options = choices(given, 1)
        returns = given.return_distributions(options.group_ends)
        bound, greedy = FailureBound(options, returns.moments()), GreedyChoices(options, returns)
        for m in (3, 30, 300):
            limit = bound.success_limit(m)
            for later, ties in product((m, m + 1, 2 * m), TIES):
                assert greedy.success(later, ties).low <= limit + 1e-12
            proved += limit < 0.5
    assert proved >= 5


def test_a_bound_for_all_ties_holds_against_the_worst(rng: np.random.Generator) -> None:
    beyond_uniform = 0
    for trial in range(12):
        given = problem(random_table(rng, trial))
        bound = appendix_c_bound(given, 1, uniform_ties=False)
        if bound.m is not None and bound.m < 1000:
            for ties in TIES:
                exact = exact_horizon(given, 1, ties=ties)
                assert exact.m is not None
                assert exact.m <= bound.m
            beyond_uniform += bound.m > (appendix_c_bound(given, 1).m or 0)
    assert beyond_uniform >= 1


def test_bennett_is_at_least_bernstein() -> None:
    for deviation in np.geomspace(1e-12, 1, 50):
        for variance in np.geomspace(1e-12, 0.25, 20):
            bernstein = deviation**2 / (2 * variance + 2 * deviation / 3)
            assert exponent(deviation, variance, 1.0) >= bernstein * (1 - 1e-9)


def test_bennett_in_closed_form() -> None:
    """V / b^2 h(b u / V), and between its first two terms and three of them where x is small; 0 and infinity beside."""
    for deviation, variance, bound in product((1e-9, 1e-5, 0.01, 0.3, 0.7), (1e-6, 0.02, 0.25), (0.7, 1.0, 3.0)):
        x, found = bound * deviation / variance, exponent(deviation, variance, bound)
        if x > 0.01:
            assert found == pytest.approx(variance / bound**2 * ((1 + x) * math.log(1 + x) - x), rel=1e-9)
        else:  # h(x) = x^2 / 2 - x^3 / 6 + x^4 / 12 - ...
            scale = deviation**2 / variance / 2
            assert scale * (1 - x / 3) * (1 - 1e-12) <= found <= scale * (1 - x / 3 + x * x / 6) * (1 + 1e-12)
        assert exponent(-deviation, variance, bound) == 0.0
        assert exponent(deviation, 0.0, bound) == math.inf  # a sum without variance never leaves its mean
        assert exponent(bound * 1.01, variance, bound) == math.inf  # nor does any go beyond what it can be
    assert exponent(0.0, 0.25, 1.0) == 0.0
    assert 0 < exponent(1.0, 0.25, 1.0) < math.inf  # the largest value itself can be met


def test_tails_hold_for_coins_and_are_0_outside() -> None:
    """A mean of 3, 5 or 40 tosses that pay 1 with chance p and else 0, against its binomial distribution."""
    for p, m in product((0.1, 0.5, 0.8), (3, 5, 40)):
        (coin,) = coins([p], [True])
        for total in range(m + 1):
            u = total / m
            assert exceeds(coin, u, m) >= binom.sf(total, m, p) - 1e-12
            assert reaches(coin, u, m) >= binom.sf(total - 1, m, p) - 1e-12
            assert stays_within(coin, u, m) >= binom.cdf(total, m, p) - 1e-12
        assert exceeds(coin, 1.0, m) == reaches(coin, 1.01, m) == stays_within(coin, -0.01, m) == 0.0
        assert exceeds(coin, p, m) == reaches(coin, p, m) == stays_within(coin, p, m) == 1.0
        assert reaches(coin, 1.0, m) > 0.0
        assert stays_within(coin, 0.0, m) > 0.0


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_bennett_is_no_worse_than_what_two_coins_show(order: tuple[int, ...]) -> None:
    """The best of three coins against each of the others: from their difference, and from a threshold half-way."""
    chances, optimal = np.array([0.9, 0.4, 0.2])[list(order)], np.array([True, False, False])[list(order)]
    groups, best = coins(chances.tolist(), optimal.tolist()), order.index(0)
    for m in (5.0, 20.0, 80.0):
        low, high = np.empty((2, 3))
        cap = bennett(groups, m, low, high)
        worse = [i for i in range(3) if i != best]
        by_difference = [math.exp(-m * difference_exponent(groups[best], groups[i])) for i in worse]
        threshold = 0.4 + 0.5 * (0.9 - 0.4)
        best_is_below = stays_within(groups[best], threshold, m)
        by_threshold = [reaches(groups[i], threshold, m) for i in worse]
        assert (low == 0.0).all()
        assert high[best] == 1.0
        for i, one, other in zip(worse, by_difference, by_threshold, strict=True):
            assert 0 < high[i] <= min(one, other + best_is_below - other * best_is_below)
        assert 0 < cap <= min(sum(by_difference), sum(by_threshold) + best_is_below)
    assert bennett(coins([0.3, 0.6], [True, True]), 5.0, *np.empty((2, 2))) == 0.0  # no action is wrong
    assert bennett(coins([0.3, 0.6], [True, False]), 5.0, *np.empty((2, 2))) == 1.0  # and here the better one is


def test_choices_are_worked_off_in_blocks(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = [failure_bound(problem(random_table(rng, trial)), 1) for trial in range(6)]
    whole = [bound(7).failure for bound in bounds]
    for rows in (1, 2, 3):
        monkeypatch.setattr("efhorizon.bounds.appendix_c.failure_bound._ROWS_A_BLOCK", rows)
        assert [bound(7).failure for bound in bounds] == whole
    assert max(len(bound(7).methods) for bound in bounds) > 4


def test_tails_allow_for_an_error_of_the_mean() -> None:
    """A mean that is known to 0.1: the bounds are those of the least favourable mean, and so of all returns."""
    (exact,) = coins([0.5], [True])
    rough = exact.copy()
    rough[SLACK] = 0.1
    for u in (-0.05, 0.0, 0.3, 0.5, 0.7, 1.0, 1.05):
        assert exceeds(rough, u, 9.0) >= max(exceeds(exact, u, 9.0), exceeds(exact, u - 0.0999, 9.0))
        assert reaches(rough, u, 9.0) >= max(reaches(exact, u, 9.0), reaches(exact, u - 0.0999, 9.0))
        assert stays_within(rough, u, 9.0) >= max(stays_within(exact, u, 9.0), stays_within(exact, u + 0.0999, 9.0))
    assert exceeds(rough, 1.1, 9.0) == reaches(rough, 1.11, 9.0) == stays_within(rough, -0.11, 9.0) == 0.0
    assert difference_exponent(rough, exact) == 0.0
    better = rough.copy()
    better[LOW] = 1.0
    gap = exponent(1.0 - 0.1, 0.5, 1.0 + 0.1)  # two coins, apart by 1 but for the error
    assert difference_exponent(better, exact) == pytest.approx(gap)
    assert difference_exponent(exact, better) == 0.0


def test_berry_esseen_of_a_fair_coin() -> None:
    """r = 1: 0.33554 (1 + 0.415) = 0.4748, Shevtsova's constant."""
    coin = np.zeros(NUM_COLUMNS)
    coin[:6] = 0.0, 1.0, 0.5, 0.5, 0.25, 0.125
    assert berry_esseen_error(coin, 100.0) == pytest.approx(0.04748, rel=1e-3)


def lock(length: int, num_actions: int = 2, prize: float = 1.0) -> TabularMDP:
    """One right sequence; the prize or nothing, on top of 1 for each right action so that no sum is binomial."""
    transitions = np.full((length, num_actions), -1)
    transitions[:-1, 0] = np.arange(1, length)
    rewards = np.zeros(transitions.shape)
    rewards[:, 0] = 1.0
    rewards[-1, 0] += prize
    return TabularMDP(transitions, rewards, length)


def sparse_lock(length: int) -> TabularMDP:
    mdp = lock(length)
    rewards = np.zeros(mdp.transitions.shape)
    rewards[-1, 0] = 1.0
    return TabularMDP(mdp.transitions, rewards, length)


def test_m_far_beyond_any_enumeration() -> None:
    """2^-79 at the first step: m is of the order 2^79, found by Bennett's inequality in a few evaluations."""
    bound = appendix_c_bound(problem(sparse_lock(80)), 1)
    assert bound.m is not None
    assert 2**76 < bound.m < 2**86
    assert bound.failure_bound is not None
    assert bound.failure_bound < 0.5
    beyond = appendix_c_bound(problem(sparse_lock(400)), 1)
    assert beyond.m is None
    assert beyond.reason is not None
    assert "10^100" in beyond.reason


def test_ties_in_the_mean_are_not_broken_by_rounding() -> None:
    """Actions 0 and 1 lead to the same mean, 1/3 (2/3) and 1/9 (2): only rounding tells them apart, no m does."""
    transitions = [[1, 2, -1], [-1, -1, -1], [3, -1, -1], [-1, -1, -1]]
    rewards = [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]
    bound = appendix_c_bound(problem(TabularMDP(transitions, rewards, 3)), 1)
    assert bound.m is None


def test_discounted_gorp() -> None:
    """gamma = 1/2 on a dense lock: certified m make simulated GORP succeed; undiscounted optimal play is the same."""
    mdp = lock(5)
    bound = appendix_c_bound(problem(mdp, gamma=0.5), 1)
    assert bound.m is not None
    plain = appendix_c_bound(problem(mdp), 1)
    assert plain.m is not None
    assert simulated_success(mdp, 1, plain.m, 2000, seed=0) >= 0.5 - 4 * 0.5 / math.sqrt(2000)


def test_bad_k_is_named() -> None:
    with pytest.raises(ValueError, match="got 0"):
        appendix_c_bound(problem(lock(3)), 0)


# name: published m for k = 1, 2, ...; what can be certified with uniform ties, and however ties are broken
GOLDEN = {
    "freeway_10_fs30": ((37, 61), (18, 6), (38, 14)),
    "maze_easy_l0_30_fs1": ((2,), (1,), (3,)),
    "MiniGrid-KeyCorridorS3R1-v0": ((244,), (28,), (297,)),
}


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference tables are not here")
@pytest.mark.parametrize("name", GOLDEN)
def test_published_figures(name: str) -> None:
    given = problem(load(REFERENCE / name / "consolidated.npz"))
    published, uniform, any_ties = GOLDEN[name]
    for k, at_most in enumerate(published, start=1):
        bound = appendix_c_bound(given, k)
        assert bound.m is not None
        assert bound.m <= 1.01 * at_most
        assert bound.m == uniform[k - 1]
        assert bound.method == "binomial"
    if given.timeline.num_pairs < 1000:
        for k, expected in enumerate(any_ties, start=1):
            assert least_certified(failure_bound(given, k, uniform_ties=False))[0] == expected


def test_a_table_built_here(minigrid_tables: dict[str, TabularMDP]) -> None:
    """The paper prints H <= 1.64 = 1 + log_3 2 for MiniGrid-Empty-5x5."""
    bound = appendix_c_bound(problem(minigrid_tables["MiniGrid-Empty-5x5-v0"]), 1)
    assert bound.m == 1


def test_without_grids_the_bound_is_weaker_but_no_worse_than_the_theorem() -> None:
    """On a table whose returns take many values: all methods <= Bennett alone <= Theorem 5.4."""
    given = problem(examples.dense_rewards(4, 3))
    bound = failure_bound(given, 1)
    assert bound.grid_work > 0
    all_methods, bennett_only = least_certified(bound)[0], least_certified(bound.without_grids())[0]
    theorem = theorem_horizon(given, 1).m
    assert all_methods is not None
    assert bennett_only is not None
    assert theorem is not None
    assert all_methods <= bennett_only <= theorem
    exact = exact_horizon(given, 1).m
    assert least_certified(bound, from_m=exact or 1)[0] == all_methods


def test_left_out_beside_an_exact_m(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appendix_c, "MAX_GRID_WORK_BESIDE_EXACT", 0)
    entry = effective_horizon(problem(examples.dense_rewards(4, 3), max_k=1)).by_k[0]
    assert entry.upper_m == entry.exact_m
    assert entry.upper_reason is not None
    assert "suffices by exact laws" in entry.upper_reason
