"""Learning curves from rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation_data import row_record

from efhorizon.render.learning_curves import Curve, best_settings, settings_of, thinned
from efhorizon.study.records import Row


def row(
    curve: list[list[float | None]],
    *,
    algorithm: str = "ppo",
    setting: str = "a",
    seed: int = 0,
    sample_complexity: int | None = None,
    optimal_return: float = 10.0,
) -> Row:
    return row_record(
        "mdp",
        algorithm,
        setting=setting,
        seed=seed,
        sample_complexity=sample_complexity,
        optimal_return=optimal_return,
        learning_curve=curve,
    )


def test_median_and_range_over_seeds() -> None:
    (found,) = settings_of(
        [
            row([[10, 1, None], [20, 2, None]], seed=0),
            row([[10, 5, 1.0], [20, 8, 1.0]], seed=1),
            row([[10, 3, None], [20, 9, None]], seed=2),
        ]
    )
    assert found.curve is not None
    assert found.curve.steps.tolist() == [10, 20]
    assert found.curve.median.tolist() == [3, 8]
    assert found.curve.low.tolist() == [1, 2]
    assert found.curve.high.tolist() == [5, 9]
    assert (found.num_runs, found.sample_complexity) == (3, math.inf)


def test_a_run_that_was_optimal_stays_optimal() -> None:
    (found,) = settings_of(
        [
            row([[10, 4, None], [20, 10, None]], seed=0, sample_complexity=20),
            row([[10, 2, None], [20, 3, None], [30, 4, None]], seed=1),
        ]
    )
    assert found.curve is not None
    assert found.curve.high.tolist() == [4, 10, 10]
    assert found.curve.low.tolist() == [2, 3, 4]


def test_optimal_by_training_episodes_between_two_evaluations() -> None:
    (found,) = settings_of([row([[10, 4, None], [20, 5, None]], sample_complexity=25)])
    assert found.curve is not None
    assert found.curve.steps.tolist() == [10, 20, 25]
    assert found.curve.median.tolist() == [4, 5, 10]


def test_optimal_before_the_first_evaluation() -> None:
    (found,) = settings_of([row([], sample_complexity=7)])
    assert found.curve is not None
    assert (found.curve.steps.tolist(), found.curve.median.tolist()) == ([7], [10])


def test_gorp_brings_its_own_percentiles() -> None:
    (found,) = settings_of([row([[100, 5, 2, 8], [50, 1, 0, 3]], algorithm="gorp", setting="k1")])
    assert found.curve is not None
    assert found.curve.steps.tolist() == [50, 100]
    assert found.curve.median.tolist() == [1, 5]
    assert found.curve.low.tolist() == [0, 2]
    assert found.curve.high.tolist() == [3, 8]
    assert found.num_runs == 101


def test_the_best_setting_comes_first() -> None:
    """First by the timesteps needed, then, where none got there, by the final return; PPO before DQN before GORP."""
    found = settings_of(
        [
            row([[10, 1, None]], algorithm="dqn", setting="low"),
            row([[10, 2, None]], algorithm="dqn", setting="high"),
            row([[10, 10, None]], algorithm="ppo", setting="slow", sample_complexity=10),
            row([[5, 10, None]], algorithm="ppo", setting="quick", sample_complexity=5),
        ]
    )
    assert [(each.algorithm, each.setting) for each in found] == [
        ("ppo", "quick"),
        ("ppo", "slow"),
        ("dqn", "high"),
        ("dqn", "low"),
    ]
    assert [each.setting for each in best_settings(found)] == ["quick", "high"]


def test_no_points_no_curve() -> None:
    (found,) = settings_of([row([])])
    assert found.curve is None


@pytest.mark.parametrize("logarithmic", [True, False])
def test_thinned_curves_keep_the_whole_range_and_both_ends(logarithmic: bool) -> None:
    steps = np.arange(1, 2001, dtype=float)
    rng = np.random.default_rng(0)
    middle = rng.normal(size=2000)
    curve = Curve("ppo", "a", 5, steps, middle, middle - 1, middle + 1)
    few = thinned(curve, logarithmic=logarithmic, max_points=100)
    assert len(few.steps) <= 100
    assert few.steps[-1] == 2000
    assert few.low.min() == curve.low.min()
    assert few.high.max() == curve.high.max()
    assert (few.low <= few.median).all()
    assert (few.median <= few.high).all()


def test_a_short_curve_is_left_alone() -> None:
    steps = np.arange(10.0)
    curve = Curve("ppo", "a", 1, steps, steps, steps, steps)
    assert thinned(curve, max_points=10) is curve
