"""What random play needs: the chances by brute force, the median by simulation, the mean length by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from efhorizon.agents.deep.protocol import Protocol, RunRecord
from efhorizon.agents.deep.random_play import RandomPlay, _not_yet, median_episodes, random_play
from efhorizon.bounds import examples
from efhorizon.mdp import TabularMDP


@pytest.mark.parametrize(("window", "p"), [(2, 0.3), (3, 0.5), (4, 0.3), (5, 0.6), (6, 0.45)])
def test_chances_are_those_of_all_sequences(window: int, p: float) -> None:
    for times, found in enumerate(_not_yet(p, window), start=1):
        chance = 0.0
        for flags in itertools.product((0, 1), repeat=times * window):
            if all(2 * sum(flags[at : at + window]) <= window for at in range((times - 1) * window + 1)):
                chance += p ** sum(flags) * (1 - p) ** (len(flags) - sum(flags))
        assert found == pytest.approx(chance, abs=1e-12)


@pytest.mark.parametrize(("p", "tolerance"), [(0.6, 0.0), (0.48, 0.1), (0.43, 0.1), (0.4, 0.1)])
def test_the_median_is_that_of_the_protocol_itself(p: float, tolerance: float) -> None:
    rng, needed = np.random.default_rng(0), []
    for seed in range(400):
        run = RunRecord(seed, Protocol(max_steps=20_000), optimal_units=1, unit=1.0)
        run.episodes(np.arange(1, 20_001), (rng.random(20_000) < p).astype(np.int64))
        needed.append(run.result().sample_complexity or 20_000)
    assert median_episodes(p, 100) == pytest.approx(float(np.median(needed)), rel=tolerance)


def test_the_median_grows_as_optimal_episodes_get_rarer() -> None:
    found = [median_episodes(p, 100) for p in (0.9, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)]
    assert found == sorted(found)
    assert found[0] == 100
    assert found[-2:] == [math.inf, math.inf]


def test_random_play_on_a_table() -> None:
    ends_half_the_time = TabularMDP(np.array([[0, -1]]), np.array([[0.0, 1.0]]), 3)
    found = random_play(ends_half_the_time)
    assert found == RandomPlay(optimal_probability=pytest.approx(7 / 8), length=pytest.approx(1 + 1 / 2 + 1 / 4))
    assert found.steps_needed(100) == pytest.approx(175)
    assert found.steps_needed(None) == math.inf  # only evaluations count, and those are greedy


def test_a_hard_table_is_never_solved_by_luck() -> None:
    assert random_play(examples.sparse_rewards(8)).steps_needed(100) == math.inf
