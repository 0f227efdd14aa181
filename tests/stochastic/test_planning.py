"""Every kernel against fractions on random stochastic MDPs; FrozenLake's known values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from stochastic_twin import Twin, random_mdp

from efhorizon.errors import InvalidTableError
from efhorizon.stochastic.analysis import analyze
from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.stochastic.planning import Plan, policy_return
from efhorizon.stochastic.returns import return_distribution
from efhorizon.stochastic.sources.transition_function import from_transition_function, largest_difference
from efhorizon.stochastic.sweeps import sweeps
from efhorizon.suites.environment_source import environment_source

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_agree_with_fractions(seed: int) -> None:
    mdp = random_mdp(np.random.default_rng(seed), states=2 + seed % 4, actions=1 + seed % 3, horizon=1 + seed % 5)
    plan, twin = Plan(mdp), Twin(mdp)
    assert mdp.is_exact
    for values, rule in ((plan.optimal.values, "max"), (plan.exploration(), "mean"), (plan.worst, "min")):
        exact = twin.values(rule)
        assert values.at_start == pytest.approx(float(twin.at_start(exact[0])), abs=1e-13)
        for time, states in enumerate(twin.reachable()):
            assert plan.layers.layer(time).tolist() == sorted(states)
            known = [float(exact[time][state]) for state in sorted(states)]
            assert values.numbers[plan.layers.span(time)] == pytest.approx(known, abs=1e-13)
    occupancy = plan.occupancy()
    for time, chances in enumerate(twin.occupancy()):
        known = [float(chances[state]) for state in plan.layers.layer(time).tolist()]
        assert occupancy[plan.layers.span(time)] == pytest.approx(known, abs=1e-13)
    exact_returns = twin.return_distribution()
    found = return_distribution(plan)
    assert found.returns.tolist() == [float(value) for value in sorted(exact_returns)]
    assert found.probabilities == pytest.approx([float(exact_returns[value]) for value in sorted(exact_returns)])


@pytest.mark.parametrize("seed", SEEDS)
def test_q_value_iteration_agrees_with_fractions(seed: int) -> None:
    """Greedy actions, ties, J_k, solvability and gaps: ties are decided exactly, so none may differ."""
    mdp = random_mdp(
        np.random.default_rng(1000 + seed), states=2 + seed % 4, actions=2 + seed % 2, horizon=1 + seed % 5
    )
    plan, twin = Plan(mdp), Twin(mdp)
    for start, initial in (("mean", plan.exploration()), ("zero", plan.empty())):
        for sweep, qs in zip(sweeps(plan, initial), twin.q_functions(mdp.horizon, start=start), strict=True):
            assert (sweep.num_undecided, sweep.gap_undecided) == (0, False)
            assert sweep.greedy_return == pytest.approx(float(twin.worst_greedy(qs)), abs=1e-13)
            assert sweep.solvable == twin.solvable(qs)
            gap = twin.least_gap(qs)
            assert sweep.gap == (None if gap is None else pytest.approx(float(gap), rel=1e-9))


def test_the_horizon_is_its_definition() -> None:
    for seed in range(20):
        mdp = random_mdp(np.random.default_rng(seed), states=3, actions=2, horizon=3)
        twin, found = Twin(mdp), analyze(mdp)
        known = []
        for k, qs in enumerate(twin.q_functions(mdp.horizon), start=1):
            gap = twin.least_gap(qs)
            if twin.solvable(qs):
                known.append(float(k) if gap is None else k - 2 * float(np.log(float(gap))) / np.log(2))
        assert found.effective_horizon.value == pytest.approx(min(known))
        assert found.min_k in range(1, mdp.horizon + 1)


def test_frozen_lake_has_the_values_of_the_literature() -> None:
    """Without a time limit the best chance of crossing is 14/17 on the 4x4 map, and 1 on the 8x8 map."""
    small = from_transition_function(environment_source("FrozenLake-v1"), 1000, name="lake")
    assert Plan(small).optimal.values.at_start == pytest.approx(14 / 17, abs=1e-9)
    large = from_transition_function(environment_source("FrozenLake-v1", {"map_name": "8x8"}), 4000, name="lake")
    assert Plan(large).optimal.values.at_start == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("name", "horizon"), [("4x4", 25), ("8x8", 20)])
def test_frozen_lake_agrees_with_value_iteration_in_fractions(name: str, horizon: int) -> None:
    mdp = from_transition_function(environment_source("FrozenLake-v1", {"map_name": name}), horizon, name="lake")
    assert mdp.is_exact
    assert set(mdp.probability_fractions()) <= {Fraction(1, 3), Fraction(2, 3), Fraction(1)}
    twin = Twin(mdp)
    assert Plan(mdp).optimal.values.at_start == pytest.approx(float(twin.at_start(twin.values("max")[0])), abs=1e-14)


@pytest.mark.parametrize(
    ("name", "arguments", "horizon"),
    [
        ("FrozenLake-v1", {}, 30),
        ("Taxi-v4", {"is_rainy": True}, 20),
        ("CliffWalking-v1", {"is_slippery": True}, 30),
    ],
)
def test_played_episodes_agree_with_the_table(name: str, arguments: dict[str, bool], horizon: int) -> None:
    source = environment_source(name, arguments)
    mdp = from_transition_function(source, horizon, name=name)
    assert largest_difference(mdp, source.made(), 30, np.random.default_rng(0)) == 0.0


def test_policies_are_evaluated_exactly() -> None:
    mdp = random_mdp(np.random.default_rng(3), states=3, actions=2, horizon=3)
    policy = np.zeros((3, 3, 2))
    policy[:, :, 1] = 1.0
    twin = Twin(mdp)
    following = dict.fromkeys(range(3), Fraction(0))
    for _ in range(3):
        following = {state: twin.backup(state, 1, following) for state in range(3)}
    assert policy_return(mdp, policy) == pytest.approx(float(twin.at_start(following)))
    with pytest.raises(InvalidTableError, match="sum to 1"):
        policy_return(mdp, policy * 0.5)


def test_bad_tables_are_refused() -> None:
    with pytest.raises(InvalidTableError, match="sum to"):
        StochasticMDP.from_outcomes([[[(0.5, 1.0, 0)]]], horizon=2)
    with pytest.raises(InvalidTableError, match="outside"):
        StochasticMDP.from_outcomes([[[(1.0, 1.0, 1)]]], horizon=2)
    with pytest.raises(InvalidTableError, match="horizon"):
        StochasticMDP.from_outcomes([[[(1.0, 1.0, 0)]]], horizon=0)
