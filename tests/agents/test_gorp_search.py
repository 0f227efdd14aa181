"""The search for m: against exact probabilities, within its budget, with honest uncertainty; and learning curves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gorp_twin import Twin, tiny_mdp

from efhorizon import EfhorizonError, TabularMDP
from efhorizon.agents.tabular.gorp import gorp
from efhorizon.agents.tabular.gorp_search import GorpSearch, Trial, gorp_sample_complexity, learning_curve
from efhorizon.bounds import examples
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target


def exact_m(mdp: TabularMDP, k: int) -> int:
    twin = Twin(mdp)
    return next(m for m in range(1, 50) if twin.success(k, m) >= 0.5)


def test_finds_the_exact_m() -> None:
    """One action in two pays, with chance 1/8 after the right start, so ties are many: the smallest m is known."""
    for mdp in (examples.sparse_rewards(4), examples.sparse_rewards(5), tiny_mdp(1)):
        search = gorp_sample_complexity(mdp, k=1, runs=20_001, rng=np.random.default_rng(0))
        assert search.m is not None
        assert abs(search.m - exact_m(mdp, 1)) <= 1
        assert search.m_low is not None
        assert search.m_high is not None
        assert search.m_low <= search.m <= search.m_high <= search.m_low + 2
        assert search.sample_complexity == mdp.horizon**2 * mdp.num_actions * search.m
        assert search.is_monotone


def test_few_runs_say_how_uncertain_they_are() -> None:
    mdp = examples.sparse_rewards(6)
    exact = gorp_sample_complexity(mdp, k=1, runs=20_001, rng=np.random.default_rng(0)).m
    covered = 0
    for seed in range(20):
        search = gorp_sample_complexity(mdp, k=1, rng=np.random.default_rng(seed))
        assert search.runs == 101
        assert search.m_low is not None
        assert search.m is not None
        assert search.m_high is not None
        assert search.m_low <= search.m <= search.m_high
        assert search.m_low < search.m_high
        covered += search.m_low <= exact <= search.m_high
    assert covered >= 17  # 95 percent promised


def test_same_seed_same_result() -> None:
    mdp = examples.sparse_rewards(5)
    tried: list[Trial] = []
    one = gorp_sample_complexity(mdp, k=1, rng=np.random.default_rng(7), on_trial=tried.append)
    two = gorp_sample_complexity(mdp, k=1, rng=np.random.default_rng(7))
    assert one.trials == two.trials
    assert sorted(trial.m for trial in tried) == [trial.m for trial in one.trials]  # each m once


def test_no_m_suffices() -> None:
    mdp = examples.worst_case_qvi(4)
    search = gorp_sample_complexity(mdp, k=1, rng=np.random.default_rng(0), budget=10_000)
    assert (search.m, search.m_high, search.sample_complexity) == (None, None, None)
    assert search.results.timesteps == search.max_m * 16 * 2  # the runs that came closest
    assert search.max_m == 10_000 // (16 * 2)
    assert search.trials[-1].m == search.max_m
    assert search.success_rate == 0
    assert gorp_sample_complexity(mdp, k=4, rng=np.random.default_rng(0)).m == 1
    with pytest.raises(EfhorizonError, match="even m = 1 takes 32 timesteps, more than the budget of 31"):
        gorp_sample_complexity(mdp, k=1, rng=np.random.default_rng(0), budget=31)


def test_intervals() -> None:
    low, high = Trial(m=1, num_optimal=50, runs=100).interval
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)  # Wilson (1927)
    assert Trial(m=1, num_optimal=0, runs=100).interval[0] == 0
    assert Trial(m=1, num_optimal=51, runs=101).succeeded
    assert not Trial(m=1, num_optimal=50, runs=101).succeeded
    assert Trial(m=1, num_optimal=50, runs=100).succeeded  # half of an even number is enough
    assert not Trial(m=1, num_optimal=49, runs=100).succeeded

    def monotone(*counts: int) -> bool:
        trials = tuple(Trial(m, count, 101) for m, count in enumerate(counts, 1))
        return GorpSearch(1, 101, None, None, None, 9, 1, trials, None).is_monotone

    assert monotone(10, 50, 45, 60)
    assert not monotone(80, 20, 60)


@pytest.mark.parametrize("policy", [None, [[0.25, 0.75]] * 5])
def test_learning_curve(policy: list[list[float]] | None) -> None:
    mdp = tiny_mdp(2)
    runs = gorp(mdp, k=1, m=4, runs=50, rng=np.random.default_rng(0), exploration_policy=policy)
    curve = learning_curve(mdp, runs, policy)
    assert curve.timesteps.tolist() == [time * 4 * 2 * 4 for time in range(5)]
    assert curve.timesteps[-1] == runs.timesteps
    law = Twin(mdp, None if policy is None else np.array(policy)).law(0, 0)
    assert curve.returns[:, 0] == pytest.approx([float(sum(x * p for x, p in law.items()))] * 50)
    assert curve.returns[:, -1] == pytest.approx(runs.returns)
    ordered = np.sort(curve.returns[:41], axis=0)  # of 41 runs, the 10th percentile is the fifth smallest
    of_41 = replace(curve, returns=curve.returns[:41])
    assert of_41.percentiles == pytest.approx(ordered[[20, 4, 36]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "extra", "m", "tolerance"),
    [("freeway_10_fs30", "ale_py", 18, 1), ("MiniGrid-KeyCorridorS3R1-v0", "minigrid", 28, 2)],
)
def test_search_on_bridge(name: str, extra: str, m: int, tolerance: int, tmp_path: Path) -> None:
    """The exact m of two published MDPs, by 20,001 runs for each m tried."""
    pytest.importorskip(extra)
    mdp = build(catalogue_target(name), Options(out=tmp_path, num_workers=1)).mdp
    assert mdp is not None
    search = gorp_sample_complexity(mdp, k=1, runs=20_001, rng=np.random.default_rng(0))
    assert search.m is not None
    assert abs(search.m - m) <= tolerance
