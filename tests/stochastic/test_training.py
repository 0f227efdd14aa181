"""PPO and DQN with sticky actions; value iteration without the sticky table."""

from __future__ import annotations

import numpy as np
import pytest

from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.observed import NotStickyError, sticky_observed_table
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sqirl_network import SqirlSettings, sqirl_network
from efhorizon.stochastic.sticky import sticky
from efhorizon.stochastic.sticky_values import sticky_values
from efhorizon.stochastic.training import is_solved, train_sticky


@pytest.fixture
def corridor() -> TabularMDP:
    """Six cells; the far end pays."""
    steps = [[max(0, cell - 1), cell + 1 if cell < 5 else -1] for cell in range(6)]
    return TabularMDP(steps, [[0, 0]] * 5 + [[0, 1]], horizon=12, metadata={"id": "corridor"})


@pytest.mark.parametrize("seed", range(10))
def test_values_without_the_sticky_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = TabularMDP(rng.integers(-1, 6, (6, 3)), rng.integers(-1, 3, (6, 3)).astype(float), 1 + seed)
    made = sticky(mdp, 0.25)
    plan = Plan(made)
    found = sticky_values(mdp, 0.25)
    assert found.at_start == pytest.approx(plan.optimal.values.at_start, abs=1e-13)
    assert made.base_states is not None
    assert made.previous_actions is not None
    later = Plan(made.with_horizon(max(2, mdp.horizon + 1)))  # V_1 of one step more is V_0 of all but the start
    states = later.layers.layer(1)
    known = later.optimal.values.numbers[later.layers.span(1)]
    assert found.values[made.base_states[states], made.previous_actions[states]] == pytest.approx(known, abs=1e-13)


def test_agents_do_not_see_the_previous_action(corridor: TabularMDP) -> None:
    table, made = sticky_observed_table(corridor, 0.25)
    assert made.base_states is not None
    assert table.num_observations == 6
    assert (table.observation == made.base_states).all()
    assert len(table.transitions) == made.num_states > 6
    with pytest.raises(NotStickyError):
        sticky_observed_table(corridor, 0.0)


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("ppo", PPOSettings(gamma=1.0)),
        pytest.param("dqn", DQNSettings(gamma=1.0, schedule_steps=20_000), marks=pytest.mark.slow),
    ],
)
def test_learners_solve_a_sticky_corridor(corridor: TabularMDP, algorithm: str, settings: PPOSettings) -> None:
    runs = train_sticky(corridor, 0.25, algorithm, settings, [0, 1], max_steps=60_000, evaluation_interval=5_000)  # type: ignore[arg-type]
    optimal = Plan(sticky(corridor, 0.25)).optimal.values.at_start
    assert all(run.sample_complexity is not None for run in runs)
    assert all(is_solved(run.final_return, optimal) for run in runs)
    again = train_sticky(corridor, 0.25, algorithm, settings, [0, 1], max_steps=60_000, evaluation_interval=5_000)  # type: ignore[arg-type]
    assert [run.curve for run in again] == [run.curve for run in runs]


def test_the_chance_is_drawn_as_often_as_it_should() -> None:
    """A learner that never updates plays the sticky rule: how often the previous action is executed."""
    from efhorizon.agents.deep.flat import executed, game_of
    from efhorizon.agents.streams import streams

    mdp = TabularMDP([[0, 0, 0]], [[0.0, 1.0, 2.0]], horizon=5, metadata={"id": "still"})
    game = game_of(sticky_observed_table(mdp, 0.25)[0])
    words = streams(np.random.default_rng(0), 1)[0]
    assert {executed(0, 2, words, game) for _ in range(50)} == {2}  # the first step
    node = int(game.transitions[0, 1])
    drawn = np.array([executed(node, 2, words, game) for _ in range(20_000)])
    assert set(drawn.tolist()) == {1, 2}
    assert (drawn == 1).mean() == pytest.approx(0.25, abs=0.015)


@pytest.mark.slow
def test_sqirl_with_a_network_solves_a_sticky_corridor(corridor: TabularMDP) -> None:
    table, made = sticky_observed_table(corridor, 0.25)
    plan = Plan(made)
    settings = SqirlSettings(rate=1e-3)  # a tiny problem with few batches
    runs = [sqirl_network(plan, table, k=2, m=80, seed=seed, settings=settings) for seed in (0,)]
    assert all(run.is_success for run in runs)
    again = sqirl_network(plan, table, k=2, m=80, seed=0, settings=settings)
    assert (again.found_return, again.timesteps) == (runs[0].found_return, runs[0].timesteps)
    random = plan.exploration().at_start
    assert runs[0].optimal_return > 1.2 * random
