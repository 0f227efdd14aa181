"""Sticky actions: published figures, sticky 0, and a twin that plays the rule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from stochastic_twin import Twin

from efhorizon import analyze as analyze_deterministic
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.analysis import analyze
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sticky import InvalidStickinessError, num_published_states, sticky


def random_table(rng: np.random.Generator, states: int, actions: int, horizon: int) -> TabularMDP:
    return TabularMDP(
        rng.integers(-1, states, (states, actions)), rng.integers(0, 3, (states, actions)).astype(float), horizon
    )


@pytest.mark.parametrize("seed", range(25))
def test_sticky_0_is_the_deterministic_table(seed: int) -> None:
    mdp = random_table(np.random.default_rng(seed), 2 + seed % 5, 2, 2 + seed % 4)
    known = analyze_deterministic(mdp, max_k=1).as_json()
    found = analyze(sticky(mdp, 0.0)).as_json()
    assert found["num_states"] == known["num_states"]
    assert found["optimal_return"] == pytest.approx(known["optimal_return"], rel=1e-12)
    assert found["random_return"] == pytest.approx(known["exploration_return"], rel=1e-12)
    assert found["strict_min_k"] == known["min_k"]
    assert found["epw"] == known["epw"]
    tiny = analyze(sticky(mdp, 1e-9)).as_json()
    assert tiny["optimal_return"] == pytest.approx(known["optimal_return"], abs=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_the_rule_is_played_step_by_step(seed: int) -> None:
    """Values of (state, previous action) by the rule itself, in fractions, and the authors' count of states."""
    rng = np.random.default_rng(100 + seed)
    mdp = random_table(rng, 2 + seed % 5, 2 + seed % 2, 2 + seed % 4)
    chance = Fraction(1, 4)
    actions = range(mdp.num_actions)

    def value(time: int, state: int, previous: int | None, best: bool) -> Fraction:
        if time == mdp.horizon or state < 0:
            return Fraction(0)
        row = []
        for action in actions:
            total = Fraction(0)
            for executed, share in ((action, 1 if previous is None else 1 - chance), (previous, chance)):
                if executed is not None:
                    after = int(mdp.transitions[state, executed])
                    reward = Fraction(float(mdp.rewards[state, executed]))
                    total += share * (reward + value(time + 1, after, executed, best))
            row.append(total)
        return max(row) if best else sum(row, Fraction(0)) / len(row)

    made = sticky(mdp, 0.25)
    plan = Plan(made)
    assert plan.optimal.values.at_start == pytest.approx(float(value(0, 0, None, True)), abs=1e-13)
    assert plan.exploration().at_start == pytest.approx(float(value(0, 0, None, False)), abs=1e-13)
    met, layer = {(0, 0)}, {(0, 0)}
    for time in range(mdp.horizon - 1):
        following = set()
        for state, previous in layer:
            for action in {*actions} if time == 0 else {*actions, previous}:
                following.add((-1 if state < 0 else int(mdp.transitions[state, action]), action))
        layer = following
        met |= layer
    assert num_published_states(made, plan.layers) == len(met)
    assert Twin(made).at_start(Twin(made).values("max")[0]) == value(0, 0, None, True)


def test_figures_in_closed_form() -> None:
    """Two actions; only action 1 pays, at every step: with sticky actions it is right to keep to it."""
    mdp = TabularMDP([[0, 0]], [[0.0, 1.0]], horizon=3)
    found = analyze(sticky(mdp, 0.25)).as_json()
    assert (found["optimal_return"], found["worst_return"]) == (3.0, 0.0)
    assert found["random_return"] == 1.5
    assert (found["min_k"], found["epw"]) == (1, 1)
    assert found["num_states"] == 2  # (0, 0), which is also the start, and (0, 1)


@pytest.mark.parametrize("chance", [-0.1, 1.0, float("nan")])
def test_a_chance_that_is_none_is_refused(chance: float) -> None:
    with pytest.raises(InvalidStickinessError):
        sticky(TabularMDP([[0]], [[0.0]], 1), chance)


@pytest.mark.parametrize("seed", range(20))
def test_without_chance_the_stochastic_horizon_bounds_the_effective_horizon(seed: int) -> None:
    """Theorem 5.4 of the paper, with its constants: where returns lie in [0, 1], Q V* <= 1, so

    H_k  <=  k + log_A(1 / Delta_k^2) + log_A(6 log(2 T A^k))
    """
    rng = np.random.default_rng(seed)
    mdp = random_table(rng, 5, 2 + seed % 2, 2 + seed % 4)
    optimal = Plan(sticky(mdp, 0.0)).optimal.values.at_start
    if optimal == 0:
        pytest.skip("nothing to earn")
    mdp = TabularMDP(mdp.transitions, np.maximum(mdp.rewards, 0) / optimal, mdp.horizon)
    found = analyze(sticky(mdp, 0.0))
    exact = analyze_deterministic(mdp, max_k=mdp.horizon)
    episodes = {entry.k: entry.exact_m for entry in exact.effective_horizon.by_k if entry.exact_m is not None}
    compared = 0
    for sweep in found.sweeps:
        if not sweep.solvable or sweep.gap_undecided or sweep.k not in episodes:
            continue
        slack = np.log(6 * np.log(2 * mdp.horizon * mdp.num_actions**sweep.k)) / np.log(mdp.num_actions)
        gap = 1.0 if sweep.gap is None else sweep.gap
        bound = sweep.k + np.log(1 / gap**2) / np.log(mdp.num_actions) + slack
        assert sweep.k + np.log(episodes[sweep.k]) / np.log(mdp.num_actions) <= bound + 1e-9
        compared += 1
    assert compared
