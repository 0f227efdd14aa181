"""Leaving one family out, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation_data import sample

from efhorizon.evaluation.leave_one_out import Threshold, best_threshold, leave_one_family_out

INF = math.inf


def test_best_threshold_by_hand() -> None:
    assert best_threshold(np.array([1.0, 2, 5, 6]), np.array([True, True, False, False])) == Threshold(2.0, 5.0)
    assert best_threshold(np.array([1.0, 2]), np.array([True, True])) == Threshold(2.0, None)
    assert best_threshold(np.array([1.0, 2]), np.array([False, False])) == Threshold(-INF, 1.0)
    # after 1, after 3 and after 5 two of three are right: the one in the middle is taken
    cuts = best_threshold(np.array([1.0, 2, 3, 4, 5]), np.array([True, False, True, False, True]))
    assert cuts == Threshold(3.0, 4.0)
    tied = best_threshold(np.array([1.0, INF, INF]), np.array([True, True, True]))
    assert tied == Threshold(INF, None)


def test_between_two_predictions_the_nearer_decides() -> None:
    threshold = Threshold(2.0, 5.0)
    assert [threshold.is_solved(at) for at in (2, 3, 3.4, 3.6, 5, INF)] == [True, True, True, False, False, False]
    beyond = Threshold(2.0, INF)
    assert [beyond.is_solved(at) for at in (2, 1000, INF)] == [True, True, False]
    assert not Threshold(-INF, 1.0).is_solved(0.0)
    assert Threshold(INF, None).is_solved(INF)


def test_accuracy_on_games_left_out_by_hand() -> None:
    given = sample([1, 2, 8, 9, 5], [1, 2, INF, INF, 3])
    # without e (at 5, solved): the cut is between 2 and 8, and 5 is as near to both: told unsolved, wrong.
    # without a: 2, 5 solved, 8, 9 not: right. b: right. c: cut between 5 and 9, 8 is told unsolved: right. d: right.
    found = leave_one_family_out(given, ["a", "b", "c", "d", "e"])
    assert (found.num_families, found.accuracy) == (5, pytest.approx(4 / 5))


def test_all_mdps_of_a_game_leave_together() -> None:
    # family a is solved at high predictions; b and c say the contrary: fitted on them, both of a are wrong
    given = sample([8, 9, 1, 2, 8.5, 9.5], [1, 2, 3, 4, INF, INF])
    found = leave_one_family_out(given, ["a", "a", "b", "b", "c", "c"])
    # without b: 8, 9 solved, 8.5, 9.5 not: best cuts after 8 and after 9; b is told solved: right.
    # without c: all others are solved, so all of c is told solved: wrong.
    assert found.accuracy == pytest.approx(2 / 6)


def test_range_of_the_correlation_by_hand() -> None:
    # in order but for the last: without it the correlation is 1; without another it is that of 3 in order and one last
    given = sample([1, 2, 3, 4, 0], [1, 2, 3, 4, 5])
    found = leave_one_family_out(given, ["a", "b", "c", "d", "e"])
    assert found.correlation_high == pytest.approx(1.0)
    assert found.correlation_high_without == "e"
    # 1 - 6 (9 + 1 + 1 + 1) / (4 * 15)
    assert found.correlation_low == pytest.approx(1 - 6 * 12 / 60)
    assert found.correlation_low_without == "a"


def test_stated_results() -> None:
    alone = leave_one_family_out(sample([1, 2], [1, 2]), ["a", "a"])
    assert (alone.accuracy, alone.accuracy_reason) == (None, "there is no other family to fit a threshold on")
    assert (alone.correlation_low, alone.correlation_reason) == (None, "undefined without any one family")
    equal = leave_one_family_out(sample([1, 1], [1, 2]), ["a", "b"])
    assert equal.correlation_reason == "all predictions are equal"
    nothing = leave_one_family_out(sample([], []), [])
    assert (nothing.num_families, nothing.accuracy) == (0, None)
