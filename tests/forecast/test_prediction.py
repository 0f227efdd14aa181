"""Forecasts of the model that is shipped: what makes them larger, wider, or come with a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from usual_features import USUAL

from efhorizon.forecast.features import sparseness
from efhorizon.forecast.prediction import ALGORITHMS, BUDGETS, Algorithm, forecast, forecasts

both = pytest.mark.parametrize("algorithm", ALGORITHMS)


@both
def test_a_forecast_has_chances_that_rise_and_an_interval_around_its_median(algorithm: Algorithm) -> None:
    found = forecast(USUAL, algorithm)
    assert list(found.solved_within) == list(BUDGETS)
    chances = list(found.solved_within.values())
    assert chances == sorted(chances)
    assert all(0 <= chance <= 1 for chance in chances)
    assert 0 < found.timesteps.low < found.timesteps.median < found.timesteps.high
    assert found.notes == ()


@both
@settings(max_examples=60, deadline=None)
@given(
    low=st.floats(0, 20),
    more=st.floats(0, 20),
    states=st.integers(1, 10**9),
    horizon=st.integers(1, 10**4),
    num_actions=st.integers(1, 100),
    flags=st.tuples(*[st.booleans()] * 4),
    chance=st.floats(0, 1),
)
def test_a_larger_bound_is_never_easier(
    algorithm: Algorithm,
    low: float,
    more: float,
    states: int,
    horizon: int,
    num_actions: int,
    flags: tuple[bool, bool, bool, bool],
    chance: float,
) -> None:
    is_image, is_goal, can_lose, has_policy = flags
    easy = replace(
        USUAL,
        bound=low,
        num_states=states,
        horizon=horizon,
        num_actions=num_actions,
        is_image=is_image,
        is_goal=is_goal,
        can_lose=can_lose,
        has_policy=has_policy,
        optimal_chance=chance,
    )
    one, other = forecast(easy, algorithm), forecast(replace(easy, bound=low + more), algorithm)
    assert one.timesteps.low <= other.timesteps.low
    assert one.timesteps.median <= other.timesteps.median
    assert one.timesteps.high <= other.timesteps.high
    assert all(one.solved_within[budget] >= other.solved_within[budget] for budget in BUDGETS)


@both
def test_rarer_optimal_episodes_are_never_easier(algorithm: Algorithm) -> None:
    found = [forecast(replace(USUAL, optimal_chance=p), algorithm).timesteps.median for p in (0.5, 1e-3, 1e-9, 0.0)]
    assert found == sorted(found)


def test_the_bound_matters() -> None:
    for algorithm in ALGORITHMS:
        hard = forecast(replace(USUAL, bound=11.0), algorithm).timesteps.median
        assert hard > 3 * forecast(USUAL, algorithm).timesteps.median


@both
def test_what_is_unlike_everything_gets_a_wider_interval_and_sentences(algorithm: Algorithm) -> None:
    usual = forecast(USUAL, algorithm)
    odd = forecast(replace(USUAL, num_actions=3000, horizon=50_000), algorithm)
    assert odd.timesteps.high / odd.timesteps.low > (usual.timesteps.high / usual.timesteps.low) ** 1.5
    assert odd.notes[0].startswith(f"It is unlike the MDPs that {algorithm.upper()} was seen on")
    assert any("number of actions is 3,000" in note for note in odd.notes)
    assert any("horizon is 50,000" in note for note in odd.notes)


def test_no_finite_bound_is_never_easier_than_a_typical_one_and_said() -> None:
    for algorithm in ALGORITHMS:
        none = forecast(replace(USUAL, bound=None, bound_kind="none", min_k=5), algorithm)
        assert any("No finite bound" in note for note in none.notes)
        assert none.timesteps.median >= forecast(replace(USUAL, bound=5.0), algorithm).timesteps.median


@pytest.mark.parametrize(("has_policy", "whose"), [(False, "random"), (True, "the policy's")])
def test_mdps_that_exploration_solves_are_said_to_be(has_policy: bool, whose: str) -> None:
    found = forecast(replace(USUAL, bound=4.5, optimal_chance=0.76, has_policy=has_policy), "ppo")
    assert any(note.startswith(f"76% of {whose} episodes are optimal already") for note in found.notes)


def test_unknown_observations_are_said_to_be_assumed() -> None:
    assert any("flat observations are assumed" in note for note in forecast(replace(USUAL, is_image=None), "ppo").notes)


def test_nothing_to_learn_takes_nothing() -> None:
    assert sparseness(1.0, 1.0, 1.0) is None
    found = forecast(replace(USUAL, sparseness=None), "dqn")
    assert set(found.solved_within.values()) == {1.0}
    assert found.timesteps.high == 0
    assert "nothing to learn" in found.notes[0]


def test_json() -> None:
    content = {algorithm: each.as_json() for algorithm, each in forecasts(USUAL).items()}
    assert set(content) == {"ppo", "dqn"}
    for each in content.values():
        assert set(each) == {"solved_within", "timesteps", "model", "notes"}
        assert set(each["timesteps"]) == {"low", "median", "high"}
        assert list(each["solved_within"]) == [str(budget) for budget in BUDGETS]
        assert each["model"].startswith("forecast-")
