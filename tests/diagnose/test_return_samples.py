"""Intervals for means and gaps against exact coverage, and decisions with known answers."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from efhorizon.diagnose.decisions import contenders, decision
from efhorizon.diagnose.random_play import chance_of, random_play
from efhorizon.diagnose.samples import Sample, gap_between, mean_between


def binary(ones: int, size: int) -> Sample:
    return Sample({0.0: size - ones, 1.0: ones})


@pytest.mark.parametrize("p", [0.02, 0.2, 0.5])
def test_coverage_of_a_mean(p: float) -> None:
    """Summed over all samples, not simulated."""
    size = 60
    found = [mean_between(binary(ones, size), 0.0, 1.0) for ones in range(size + 1)]
    covered = sum(binom.pmf(ones, size, p) for ones, each in enumerate(found) if each.low <= p <= each.high)
    assert 0.86 <= covered <= 0.99


@pytest.mark.parametrize(("p", "q"), [(0.1, 0.02), (0.3, 0.3), (0.02, 0.0)])
def test_coverage_of_a_gap(p: float, q: float) -> None:
    size = 40
    covered = 0.0
    for one in range(size + 1):
        for two in range(size + 1):
            weight = binom.pmf(one, size, p) * binom.pmf(two, size, q)
            if weight > 1e-7:
                found = gap_between(binary(one, size), binary(two, size), 0.0, 1.0)
                covered += weight * (found.low <= p - q <= found.high)
    assert 0.85 <= covered <= 1.0


def test_a_clear_decision_is_settled_and_an_even_one_is_not() -> None:
    clear = decision({(0,): binary(0, 50), (1,): binary(40, 50)}, 2)
    assert (clear.action, clear.is_settled, clear.has_signal) == (1, True, True)
    assert 1 <= clear.m.low <= clear.m.estimate <= clear.m.high < 10
    even = decision({(0,): binary(3, 50), (1,): binary(3, 50)}, 2)
    assert not even.is_settled
    assert even.m.estimate == even.m.high == math.inf


def test_no_reward_at_all_is_no_signal_but_not_certainty() -> None:
    found = decision({(0,): binary(0, 50), (1,): binary(0, 50)}, 2)
    assert not found.has_signal
    assert found.gap.low < 0 < found.gap.high
    assert all(each.value.high > 0.01 for each in found.actions)


def test_the_value_of_an_action_is_that_of_its_best_sequence() -> None:
    samples = {(0, 0): binary(0, 20), (0, 1): binary(18, 20), (1, 0): binary(9, 20), (1, 1): binary(9, 20)}
    found = decision(samples, 2)
    assert found.action == 0
    assert found.actions[0].value.estimate == pytest.approx(0.9)
    assert found.gap.estimate == pytest.approx(0.45)


def test_only_close_sequences_get_more_episodes() -> None:
    samples = {(0,): binary(20, 40), (1,): binary(18, 40), (2,): binary(0, 40)}
    assert contenders(samples) == [(0,), (1,)]
    assert contenders({(0,): binary(40, 40), (1,): binary(0, 40)}) == []


def test_random_play() -> None:
    found = random_play([0.0, 0.0, 1.0, 3.0], [5, 5, 2, 8], [0, 0, 2, 4])
    assert (found.mean_return.estimate, found.best_return, found.worst_return) == (1.0, 3.0, 0.0)
    assert found.rewarded.estimate == 0.5
    assert found.median_first_reward == 3.0
    assert found.mean_return.low < 1.0 < found.mean_return.high
    assert chance_of([0.0, 1.0, 1.0, 1.0], 1.0) == 0.75
    assert chance_of([0.0] * 10, 1.0) == 0.05  # half an episode in ten
