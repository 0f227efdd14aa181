"""Other measures of hardness: closed forms on tiny MDPs, slow twins in fractions, and what does not change them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from brute_force import Exact
from toy_mdps import random_mdp, shuffled

from efhorizon import TabularMDP
from efhorizon.bounds import examples
from efhorizon.bounds.analysis import analyze
from efhorizon.bounds.measures import Measure, Measured, checked_measure
from efhorizon.bounds.registry import DuplicateBoundError, hardness_measure, registered_measures, unregister
from efhorizon.bounds.rivals import diameter as diameters
from efhorizon.bounds.rivals.diameter import diameter, exact_diameter
from efhorizon.bounds.rivals.inverse_gaps import inverse_gaps
from efhorizon.bounds.rivals.number_of_states import number_of_states
from efhorizon.bounds.rivals.optimal_episode import optimal_episode
from efhorizon.bounds.rivals.value_norm import value_norm
from efhorizon.planning.problem import Problem, problem

EXACT = (number_of_states, diameter, inverse_gaps, value_norm, optimal_episode)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    unregister("mine")


def bandit(num_actions: int) -> TabularMDP:
    """One step; the first of A actions pays 1."""
    return TabularMDP([[-1] * num_actions], [[1.0] + [0.0] * (num_actions - 1)], horizon=1)


def lock(length: int) -> TabularMDP:
    """Action 1 is right, action 0 leads back to the start; the last right action pays 1 and ends the episode."""
    transitions = [[0, state + 1] for state in range(length - 1)] + [[0, -1]]
    return TabularMDP(transitions, [[0.0, 0.0]] * (length - 1) + [[0.0, 1.0]], horizon=length)


def measured(mdp: TabularMDP) -> list[float | None]:
    given = problem(mdp)
    return [measure(given).value for measure in EXACT]


@pytest.mark.parametrize("num_actions", [2, 3, 7])
def test_a_bandit(num_actions: int) -> None:
    spread = math.sqrt(num_actions - 1) / num_actions  # of one 1 among A - 1 zeros
    expected = [1, 0, num_actions - 1, pytest.approx(spread), pytest.approx(1 / num_actions)]
    assert measured(bandit(num_actions)) == expected


@pytest.mark.parametrize("length", [2, 5, 8])
def test_a_combination_lock(length: int) -> None:
    """Furthest apart: start and last state, and a state from the one before it. On the way each wrong action costs all;
    everywhere else it is too late, and every action is worth the same."""
    assert measured(lock(length)) == [length, length - 1, length, 0.5, 0.5**length]


def test_a_chain_that_ends_at_the_first_mistake() -> None:
    """Paid 1 for each right action (Figure 2b): the gap at time t is T - t, of returns that differ by up to T."""
    horizon = 5
    found = inverse_gaps(problem(examples.dense_rewards(horizon)))
    assert found.value == pytest.approx(float(sum(Fraction(horizon, horizon - t) for t in range(horizon))))


def test_where_no_action_ends_an_episode_the_horizon_does() -> None:
    """A one-way street 0 -> 1 -> 1: back to the start leads over the end of the episode, T steps away."""
    street = TabularMDP([[1, 1], [1, 1]], [[0.0, 1.0], [0.0, 0.0]], horizon=6)
    assert diameter(problem(street)).value == 6
    ending = TabularMDP([[1, 1], [1, -1]], [[0.0, 1.0], [0.0, 0.0]], horizon=6)
    assert diameter(problem(ending)).value == 1


def twin(mdp: TabularMDP) -> list[Fraction | int | float]:
    """All five by their definitions, in fractions."""
    exact, pairs, layer = Exact(mdp), set[tuple[int, int]](), {0}
    for time in range(mdp.horizon):
        pairs |= {(time, state) for state in layer}
        layer = {exact.transitions[s][a] for s in layer for a in exact.actions} - {-1}
    spread = exact.optimal(0, 0) - exact.worst(0, 0)
    qs = {(t, s): [exact.backup(exact.optimal, t, s, a) for a in exact.actions] for t, s in pairs}
    gaps = [max(row) - q for row in qs.values() for q in row]
    variances = [sum(q * q for q in row) / len(row) - (sum(row) / len(row)) ** 2 for row in qs.values()]
    best = sum(total == exact.optimal(0, 0) for total in all_returns(exact, 0, 0))
    return [
        len({state for _, state in pairs}),
        slow_diameter(exact, {state for _, state in pairs}),
        sum((spread / gap for gap in gaps if gap), Fraction(0)),
        math.sqrt(max(variances)) / float(spread),
        Fraction(best, mdp.num_actions**mdp.horizon),
    ]


def all_returns(exact: Exact, time: int, state: int) -> Iterator[Fraction]:
    """The return of each of the A^T action sequences; those that go on after the end count as often as they are."""
    for action in exact.actions:
        following, reward = exact.transitions[state][action], exact.rewards[state][action]
        if following < 0 or time + 1 == exact.horizon:
            yield from [reward] * exact.num_actions ** (exact.horizon - time - 1)
        else:
            yield from (reward + rest for rest in all_returns(exact, time + 1, following))


def slow_diameter(exact: Exact, met: set[int]) -> int:
    """Floyd and Warshall, with a node for the end: it is at most T away from everywhere, and is the start."""
    num_states, end = len(exact.transitions), len(exact.transitions)
    far = 10**9
    steps = [[0 if i == j else far for j in range(end + 1)] for i in range(end + 1)]
    for state in range(num_states):
        steps[state][end] = exact.horizon
        for successor in exact.transitions[state]:
            target = end if successor < 0 else successor
            steps[state][target] = min(steps[state][target], 1)
    steps[end][0] = 0
    for via in range(end + 1):
        for i in range(end + 1):
            for j in range(end + 1):
                steps[i][j] = min(steps[i][j], steps[i][via] + steps[via][j])
    return max(steps[i][j] for i in met for j in met)


@pytest.mark.parametrize("seed", range(12))
def test_as_a_slow_twin_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3, 5, end_probability=0.05 * (seed % 4))
    assert measured(mdp) == [pytest.approx(float(number), rel=1e-12) for number in twin(mdp)]


@pytest.mark.parametrize("seed", range(5))
def test_names_of_states_and_the_scale_of_rewards_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 8, 3, 6)
    expected = [pytest.approx(value, rel=1e-12) for value in measured(mdp)]
    assert measured(shuffled(mdp, rng)) == expected
    assert measured(TabularMDP(mdp.transitions, 40 * mdp.rewards, mdp.horizon)) == expected


def test_a_large_table_has_no_diameter(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = lock(5)
    states = np.arange(5, dtype=np.int32)
    assert exact_diameter(mdp.transitions, states, mdp.horizon, 1000) == 4
    assert exact_diameter(mdp.transitions, states, mdp.horizon, 10) is None
    monkeypatch.setattr(diameters, "MOST_EDGES", 10)
    found = diameter(problem(mdp))
    assert (found.value, found.reason) == (None, "5 states are too many for all shortest paths between them")


def test_where_there_is_nothing_to_learn() -> None:
    given = problem(TabularMDP([[0, 0]], [[1.0, 1.0]], horizon=3))
    for measure in (inverse_gaps, value_norm):
        assert measure(given) == Measured(None, reason="every action sequence earns the same")


def test_every_measure_is_in_the_analysis_with_its_direction() -> None:
    found = analyze(lock(4)).as_json()["measures"]
    assert list(found) == [measure.name for measure in registered_measures()]
    assert found["num_states"] == {
        "value": 4.0, "low": None, "high": None, "reason": None, "note": None, "harder": "larger"
    }  # fmt: skip
    assert found["optimal_episode"]["harder"] == "smaller"
    given = problem(lock(4), policy=[[0.1, 0.9]] * 4)
    assert analyze(lock(4), exploration_policy=given.policy).as_json()["measures"] == {}  # they are about random play


def test_hardness_turns_measures_of_easiness_around() -> None:
    assert Measure.of(Measured(0.25), "smaller").hardness == -0.25
    assert Measure.of(Measured(3.0), "larger").hardness == 3
    assert Measure.of(Measured(None, reason="why"), "larger").hardness is None


def test_a_measure_of_ones_own() -> None:
    @hardness_measure("mine", title="my own", harder="larger")
    def mine(problem: Problem) -> object:
        return {1: 2.5, 2: math.nan, 3: None, 4: Measured(1, 0, 2)}[problem.mdp.horizon]

    def value(length: int) -> Measure:
        return analyze(lock(length)).measures["mine"]

    one = analyze(bandit(2)).measures["mine"]
    assert (one.value, one.harder) == (2.5, "larger")
    assert value(2).reason == "the measure 'mine' raised ValueError: nan is not a finite number"
    assert value(3).reason == "it does not apply"
    assert (value(4).low, value(4).high) == (0, 2)
    with pytest.raises(ValueError, match="needs a reason"):
        checked_measure(Measured(None))
    with pytest.raises(DuplicateBoundError, match="named 'diameter' already"):
        hardness_measure("diameter", title="again", harder="larger")(lambda problem: 1)
