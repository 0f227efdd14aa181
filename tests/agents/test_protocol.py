"""When a run counts as solved."""

from __future__ import annotations

import math

import numpy as np
import pytest

from efhorizon.agents.deep.protocol import (
    Protocol,
    RunRecord,
    algorithm_sample_complexity,
    evaluation_in,
    setting_sample_complexity,
)


def record(**rules: int | None) -> RunRecord:
    return RunRecord(0, Protocol(**{"max_steps": 1000, "window": 4, **rules}), optimal_units=7, unit=0.5)


def tell(run: RunRecord, *units: int, first: int = 10) -> None:
    run.episodes(first + 10 * np.arange(len(units)), np.array(units))


def test_an_optimal_evaluation_ends_a_run() -> None:
    run = record()
    run.evaluated(100, 6)
    assert not run.is_finished
    run.evaluated(200, 7)
    run.evaluated(300, 0)  # too late to count
    result = run.result()
    assert (result.sample_complexity, result.solved_by, result.steps) == (200, "evaluation", 200)
    assert (result.best_return, result.final_return) == (3.5, 3.5)
    assert result.curve == [(100, 3.0, None), (200, 3.5, None)]


def test_more_than_half_of_the_last_episodes_end_a_run() -> None:
    run = record()
    tell(run, 7, 7, 7)
    assert not run.is_finished  # the window is not full
    tell(run, 0, first=40)
    assert run.result().sample_complexity == 40  # three of four


def test_the_evaluation_after_the_last_step_counts() -> None:
    """Also where that step ended an episode."""
    run = record()
    tell(run, 0, first=1000)
    assert run.is_finished
    run.evaluated(1000, 7)
    result = run.result()
    assert (result.sample_complexity, result.final_return, result.curve) == (1000, 3.5, [(1000, 3.5, 0.0)])


def test_exactly_half_does_not() -> None:
    run = record()
    tell(run, 0, 7, 0, 7, 0, 7)
    assert not run.is_finished
    tell(run, 7, 7, first=70)
    assert run.result().sample_complexity == 70
    assert run.result().solved_by == "training episodes"


def test_the_window_is_the_same_however_episodes_arrive(rng: np.random.Generator) -> None:
    for _ in range(50):
        units = np.where(rng.random(60) < 0.5, 7, 3)
        at_once, one_by_one = record(window=9, max_steps=10_000), record(window=9, max_steps=10_000)
        tell(at_once, *units)
        for number, value in enumerate(units):
            tell(one_by_one, value, first=10 + 10 * number)
        sums = [(units[end - 9 : end] == 7).sum() for end in range(9, 61)]
        expected = next((10 * (9 + place) for place, total in enumerate(sums) if total > 4), None)
        assert at_once.result().sample_complexity == one_by_one.result().sample_complexity == expected


def test_without_a_window_episodes_do_not_count_but_are_averaged() -> None:
    run = record(window=None)
    tell(run, 7, 7, 7, 7, 7, 0)
    assert not run.is_finished
    run.evaluated(100, 2)
    assert run.result().curve == [(100, 1.0, pytest.approx(3.5 * 5 / 6))]
    assert run.result().best_return == 3.5


def test_nothing_counts_beyond_the_budget() -> None:
    run = record()
    run.evaluated(1001, 7)
    tell(run, 7, 7, 7, 7, first=1001)
    run.passed(1024)
    assert run.is_finished
    assert run.result().sample_complexity is None
    assert run.result().steps == 1000


def test_medians_and_the_least() -> None:
    assert setting_sample_complexity([5, 1, None, 3, 9]) == 5
    assert math.isinf(setting_sample_complexity([5, None, None]))
    assert algorithm_sample_complexity([[None, None], [4, 6]]) == 5


def test_evaluations_due() -> None:
    assert evaluation_in(0, 9_999, 10_000) is None
    assert evaluation_in(0, 10_000, 10_000) == 10_000
    assert evaluation_in(10_000, 20_480, 10_000) == 20_000
