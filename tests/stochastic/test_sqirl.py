"""SQIRL: its proved m, closed forms, and the values that its parts must have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from stochastic_twin import random_mdp

from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sqirl import InvalidSqirlError, least_m, sqirl
from efhorizon.stochastic.sqirl_bound import sufficient_m
from efhorizon.stochastic.sweeps import sweeps

# seeds of random MDPs (3 states, 2 actions, T = 3) whose proved m is small enough to be played
SEEDS = (6, 8, 10, 11, 13, 15, 20, 22, 33, 35, 37, 38, 43, 45)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_proved_m_succeeds_at_least_half_the_time(seed: int) -> None:
    mdp = random_mdp(np.random.default_rng(seed), states=3, actions=2, horizon=3)
    plan = Plan(mdp)
    bounds = [
        (bound.m, sweep.k) for sweep in sweeps(plan, plan.exploration()) if (bound := sufficient_m(plan, sweep)).m
    ]
    m, k = min(bounds)
    found = sqirl(plan, k=k, m=m, runs=6, rng=np.random.default_rng(1))
    assert found.success_rate >= 0.5
    least = least_m(plan, k=k, runs=60, rng=np.random.default_rng(2), most=m)
    assert least is not None
    assert least["m"] <= m


def test_success_in_closed_form() -> None:
    """One step, action 1 pays 1 with chance 1/2, action 0 nothing: m = 1 chooses the action that it played, unless it
    did not pay.

    With m = 2 the policy is right if action 1 was seen to pay, or if it was the only one played, or ties were drawn so.
    """
    half = Fraction(1, 2)
    mdp = StochasticMDP.from_outcomes([[[(Fraction(1), 0.0, -1)], [(half, 1.0, -1), (half, 0.0, -1)]]], horizon=1)
    plan = Plan(mdp)
    one = sqirl(plan, k=1, m=1, runs=4000, rng=np.random.default_rng(0))
    assert one.success_rate == pytest.approx(0.5, abs=0.03)  # the action that was played, whatever it paid
    # played (1, 1): always right; (0, 1) or (1, 0): right if it paid, else a tie; (0, 0): wrong
    two = sqirl(plan, k=1, m=2, runs=4000, rng=np.random.default_rng(1))
    assert two.success_rate == pytest.approx(0.25 + 0.5 * (0.5 + 0.25), abs=0.03)
    assert (two.timesteps == 2).all()


def test_fitted_steps_find_what_random_play_hides() -> None:
    """Q^1 prefers the safe action at the start; Q^2 sees that the other leads to a choice worth more."""
    sure = Fraction(1)
    mdp = StochasticMDP.from_outcomes(
        [
            [[(sure, 0.6, -1)], [(sure, 0.0, 1)]],  # 0.6 now, or state 1
            [[(sure, 0.0, -1)], [(sure, 1.0, -1)]],  # nothing, or 1: 0.5 by random play
        ],
        horizon=2,
    )
    plan = Plan(mdp)
    assert sqirl(plan, k=1, m=3000, runs=20, rng=np.random.default_rng(0)).success_rate == 0.0
    assert sqirl(plan, k=2, m=300, runs=20, rng=np.random.default_rng(0)).success_rate == 1.0


def test_the_chance_in_episodes_is_that_of_the_table() -> None:
    """All random: k = 1 and one step; the mean of a pair's samples comes close to Q."""
    mdp = random_mdp(np.random.default_rng(5), states=4, actions=2, horizon=3)
    found = sqirl(Plan(mdp), k=1, m=1, runs=3000, rng=np.random.default_rng(0))
    assert found.timesteps.min() >= 3
    assert found.timesteps.max() <= 9


@pytest.mark.parametrize(("k", "m"), [(0, 1), (4, 1), (1, 0)])
def test_numbers_that_make_no_sense_are_refused(k: int, m: int) -> None:
    mdp = random_mdp(np.random.default_rng(5), states=4, actions=2, horizon=3)
    with pytest.raises(InvalidSqirlError):
        sqirl(Plan(mdp), k=k, m=m, rng=np.random.default_rng(0))
