"""Theorems as tests: each algorithm's success and timesteps, on the paper's example MDPs and on random ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from gorp_twin import Twin, close, tiny_mdp
from toy_mdps import random_mdp

from efhorizon import EfhorizonError, TabularMDP
from efhorizon.agents.tabular.covering_length import covering_length_rl
from efhorizon.agents.tabular.exhaustive import exhaustive_search
from efhorizon.agents.tabular.fqi_gorp import fqi_gorp
from efhorizon.agents.tabular.gorp import gorp
from efhorizon.agents.tabular.pg_gorp import pg_gorp
from efhorizon.agents.tabular.plan_over_window import plan_over_window
from efhorizon.agents.tabular.rmax import rmax
from efhorizon.bounds import examples

RUNS = 100
SOLVABLE = [
    *((make(4, 2), 1) for make in (examples.dense_rewards, examples.delayed_rewards, examples.distracting_reward)),
    (examples.sparse_rewards(3, 2), 1),
    (examples.worst_case_qvi(2), 2),
    *((tiny_mdp(seed), k) for seed in range(8) for k in (1, 2)),
]


def _solvable() -> list[tuple[TabularMDP, int, Fraction]]:
    """MDPs with the k for which Theorem 5.4 holds, and its ratio max Q^k V* / gap^2 where m stays small."""
    found = [(mdp, k, Twin(mdp).theorem_ratio(k)) for mdp, k in SOLVABLE]
    return [(mdp, k, ratio) for mdp, k, ratio in found if ratio is not None and ratio < 100]


def test_theorem_5_4_gorp(rng: np.random.Generator) -> None:
    cases = _solvable()
    assert len(cases) >= 8
    for mdp, k, ratio in cases:
        m = max(1, math.ceil(6 * math.log(2 * mdp.horizon * mdp.num_actions**k) * ratio))
        result = gorp(mdp, k=k, m=m, runs=RUNS, rng=rng)
        assert result.success_rate >= 0.5, mdp
        assert result.timesteps == mdp.horizon**2 * mdp.num_actions**k * m


def test_theorem_b_1_pg_gorp(rng: np.random.Generator) -> None:
    for mdp, k, ratio in _solvable():
        if k == 1:
            m = max(1, math.ceil(12 * mdp.num_actions * math.log(2 * mdp.horizon * mdp.num_actions) * ratio))
            result = pg_gorp(mdp, m=m, runs=RUNS, rng=rng)
            assert result.success_rate >= 0.5, mdp
            assert result.timesteps == mdp.horizon**2 * m


def test_theorem_b_2_fqi_gorp(rng: np.random.Generator) -> None:
    for mdp, k, ratio in _solvable():
        sequences = mdp.num_actions**k
        m = math.ceil(
            max(
                24 * math.log(2 * mdp.horizon * sequences) * ratio,
                10 * math.log(4 * mdp.horizon * sequences) / sequences,
            )
        )
        result = fqi_gorp(mdp, k=k, m=m, runs=RUNS, rng=rng)
        assert result.success_rate >= 0.5, mdp
        assert result.timesteps == mdp.horizon**2 * sequences * m


def test_pg_gorp_with_one_episode() -> None:
    """T = 1, m = 1: the action drawn wins if it pays; a draw that pays nothing ties with what was not drawn."""
    mdp = TabularMDP([[-1, -1]], [[1.0, 0.0]], 1)
    result = pg_gorp(mdp, m=1, runs=20_000, rng=np.random.default_rng(0))
    assert close(result.success_rate, 0.75, 20_000)
    never = pg_gorp(mdp, m=1, runs=100, rng=np.random.default_rng(0), exploration_policy=[[0.0, 1.0]])
    assert never.success_rate == 0
    # importance weights: 1 / 0.9 times as much for action 0 as for action 1, at a ninth of the chance
    weighted = TabularMDP([[-1, -1]], [[1.0, 0.95]], 1)
    result = pg_gorp(weighted, m=50_000, runs=20, rng=np.random.default_rng(0), exploration_policy=[[0.1, 0.9]])
    assert result.success_rate == 1


def test_fqi_gorp_equals_gorp_in_the_limit(rng: np.random.Generator) -> None:
    for seed in range(4):
        mdp = tiny_mdp(seed)
        chosen = [f(mdp, k=2, m=4000, runs=60, rng=rng) for f in (gorp, fqi_gorp)]
        assert {r.success_rate == 1 for r in chosen} in ({True}, {False})
    worst = examples.worst_case_qvi(4)
    assert [fqi_gorp(worst, k=k, m=1000, runs=20, rng=rng).success_rate for k in (1, 2, 3, 4)] == [0, 0, 0, 1]


def test_fqi_gorp_with_one_visit_each() -> None:
    """T = 1, k = 1, A m = 2 episodes: fails only if both miss the action that pays."""
    mdp = TabularMDP([[-1, -1]], [[1.0, 0.0]], 1)
    result = fqi_gorp(mdp, k=1, m=1, runs=20_000, rng=np.random.default_rng(0))
    assert close(result.success_rate, 0.75, 20_000)


def test_theorem_2_1_exhaustive_search(rng: np.random.Generator) -> None:
    mdp = examples.sparse_rewards(5, 3)  # one sequence in 243 is optimal
    result = exhaustive_search(mdp, runs=2000, rng=rng)
    assert result.timesteps == 5 * 122
    assert close(result.success_rate, 122 / 243, 2000)
    for seed in range(4):
        tiny = tiny_mdp(seed)  # 16 sequences, of which 8 are tried
        twin = Twin(tiny)
        laws = [twin.sequence_law(0, 0, sequence) for sequence in itertools.product((0, 1), repeat=4)]
        num_optimal = sum(twin.best(0, 0) in law for law in laws)
        exact = 1 - math.comb(16 - num_optimal, 8) / math.comb(16, 8)
        assert close(exhaustive_search(tiny, runs=2000, rng=rng).success_rate, exact, 2000)
    with pytest.raises(EfhorizonError, match=r"3\^30 action sequences are too many"):
        exhaustive_search(examples.sparse_rewards(30, 3), rng=rng)


def test_theorem_d_1_rmax_always_succeeds(rng: np.random.Generator) -> None:
    mdps = [random_mdp(rng, states, actions, 8) for states in (2, 5, 12, 30) for actions in (2, 4)]
    mdps += [example(6, 3) for example in examples.EXAMPLES]
    mdps += [TabularMDP([[0, -1]], [[-1.0, -1.0]], 5)]  # ending early is best, and no reward promises it
    for mdp in mdps:
        result = rmax(mdp, runs=20, rng=rng)
        assert result.optimal.all(), mdp
        assert (result.episodes <= mdp.num_states * mdp.num_actions).all()
        assert result.timesteps == mdp.num_states * mdp.num_actions * mdp.horizon
        assert (result.steps_played <= (result.episodes + 1) * mdp.horizon).all()


def test_rmax_needs_all_pairs_of_a_chain() -> None:
    """With one sequence paid at its very end, every other action of the chain promises as much until it is tried."""
    mdp = examples.sparse_rewards(6, 3)
    result = rmax(mdp, runs=300, rng=np.random.default_rng(0))
    assert result.episodes.max() == 2 * 6 + 1  # each wrong action costs an episode, and the right sequence one more


def test_covering_length_rl(rng: np.random.Generator) -> None:
    for mdp in [tiny_mdp(seed) for seed in range(6)] + [examples.sparse_rewards(4), examples.delayed_rewards(4)]:
        occupancies = Twin(mdp).occupancies()
        episodes = math.ceil(math.log(2 * len(occupancies)) / min(occupancies))  # Lemma D.3
        result = covering_length_rl(mdp, episodes=episodes, runs=RUNS, rng=rng)
        assert result.success_rate >= 0.5
        assert result.timesteps == mdp.horizon * episodes
    one = covering_length_rl(examples.sparse_rewards(3), episodes=1, runs=20_000, rng=rng)
    assert close(one.success_rate, 1 / 8, 20_000)  # it keeps to the one sequence it has seen


def test_theorem_d_4_plan_over_window(rng: np.random.Generator) -> None:
    for seed in range(8):
        mdp = tiny_mdp(seed)
        result = plan_over_window(mdp, window=mdp.horizon, runs=50, rng=rng)
        assert result.optimal.all()
        assert result.timesteps == mdp.horizon**2 * mdp.num_actions**mdp.horizon
    dense, delayed = examples.dense_rewards(6, 3), examples.delayed_rewards(6, 3)
    assert plan_over_window(dense, window=1, runs=50, rng=rng).optimal.all()  # W = 1
    assert plan_over_window(delayed, window=6, runs=50, rng=rng).optimal.all()  # W = T
    blind = plan_over_window(delayed, window=5, runs=6000, rng=rng)
    assert close(blind.success_rate, 1 / 3, 6000)  # only the first action is a guess
    with pytest.raises(EfhorizonError, match="window must be at most the horizon 6, got 9"):
        plan_over_window(dense, window=9, rng=rng)


@pytest.mark.parametrize(
    "algorithm", [pg_gorp, fqi_gorp, exhaustive_search, rmax, covering_length_rl, plan_over_window]
)
def test_all_are_reproducible_and_refuse_unfinished_tables(algorithm) -> None:  # type: ignore[no-untyped-def]
    settings = {pg_gorp: {"m": 3}, fqi_gorp: {"k": 2, "m": 1}, covering_length_rl: {"episodes": 3}}
    given = {plan_over_window: {"window": 2}, **settings}.get(algorithm, {})
    mdp = tiny_mdp(3)
    one, two = (algorithm(mdp, runs=30, rng=np.random.default_rng(5), **given) for _ in range(2))
    assert (one.actions == two.actions).all()
    unfinished = TabularMDP([[0, 1], [-1, -1]], np.zeros((2, 2)), 3, unexplored=[False, True])
    with pytest.raises(EfhorizonError, match="unfinished"):
        algorithm(unfinished, rng=np.random.default_rng(0), **given)
    with pytest.raises(EfhorizonError, match="runs must be a positive integer"):
        algorithm(mdp, runs=0, rng=np.random.default_rng(0), **given)
