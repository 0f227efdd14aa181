"""The interval for the least m: closed forms of the chance of success, and what runs cannot limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from efhorizon.diagnose.doses import CLIMB, Run, counted, interval, next_doses, reaches
from efhorizon.diagnose.least_episodes import least_episodes

ACTIONS = 6


def one_rare_reward(m: int, p: float) -> float:
    """One decision that waits for a reward of chance p; without it, one action in six is right."""
    return 1 - (1 - p) ** m * (1 - 1 / ACTIONS)


def exact_m(p: float) -> int:
    return next(m for m in range(1, 10_000) if one_rare_reward(m, p) >= 0.5)


def survey(p: float, budget: float, rng: np.random.Generator) -> list[Run]:
    runs: list[Run] = []
    while doses := next_doses(runs, 1.0, budget, 1.0):
        runs += [Run(m, float(rng.random() < one_rare_reward(m, p)), m) for m in doses]
    return runs


@pytest.mark.parametrize("p", [pytest.param(0.01, marks=pytest.mark.slow), 0.1])
def test_intervals_cover_the_exact_m_and_are_narrow(p: float) -> None:
    rng, truth, covered, widths = np.random.default_rng(5), exact_m(p), [], []
    for _ in range(24):
        found = interval(survey(p, 36 * truth, rng), 1.0)  # 18 times the exact cost
        covered.append(found.low <= truth <= found.high)
        widths.append(found.width)
    assert 0.8 <= np.mean(covered) <= 1.0
    assert np.median(widths) <= 4


def test_more_runs_make_it_narrower() -> None:
    few = least_episodes([5, 10, 20], [2, 5, 8], [10, 10, 10])
    many = least_episodes([5, 10, 20], [40, 100, 160], [200, 200, 200])
    assert few.low < many.low <= 10 <= many.high < few.high
    assert many.estimate == pytest.approx(10, abs=1)


def test_without_any_success_there_is_no_upper_end() -> None:
    found = least_episodes([1, 2, 4, 8], [0, 0, 0, 0], [2, 2, 2, 2])
    assert found.estimate == found.high == math.inf
    assert found.low > 2


def test_always_successful_means_one_episode() -> None:
    found = least_episodes([1, 2, 4], [12, 4, 4], [12, 4, 4])
    assert (found.low, found.estimate, found.high) == (1, 1, 1)


def test_failures_far_above_do_not_hide_a_least_m() -> None:
    """Play by Q^k can settle on a wrong action where it has many episodes: LavaGapS6 with shaping, k = 1."""
    found = least_episodes([1, 2, 4, 8, 512, 1024], [0, 1, 5, 8, 0, 0], [8, 8, 8, 8, 6, 6])
    assert 2 <= found.low <= found.estimate <= found.high <= 8


def test_the_climb_depends_on_the_budget_alone() -> None:
    """A return that only looks like the best one must not end the search for a better one."""
    runs = [Run(2, 1.0, 2), Run(1, 1.0, 1)]
    doses = next_doses(runs, 1.0, 1000.0, 1.0)
    assert doses == [128, 64, 32, 16, 8, 4]
    assert 2 * max(doses) <= CLIMB * 1000


def test_a_settled_m_needs_no_more_runs_and_a_spent_budget_has_none() -> None:
    runs = [Run(1 << step, 1.0, 1 << step) for step in range(5)] + [Run(1, 1.0, 1)] * 30
    assert next_doses(runs, 1.0, 200.0, 1.0) == []
    assert next_doses([Run(1, 0.0, 10), Run(2, 0.0, 20)], 1.0, 31.0, 10.0) == []


def test_runs_count_as_successes_by_the_best_return() -> None:
    runs = [Run(1, 0.3, 5), Run(1, 0.1 + 0.2, 5), Run(2, 0.2, 5)]
    assert counted(runs, 0.3) == ([1, 2], [2, 0], [2, 1])
    assert reaches(0.1 + 0.2, 0.3)
    assert not reaches(0.3 - 1e-6, 0.3)
