"""The sb3 backend, and what both backends see, on live environments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon.agents.deep.observations import (
    FlatColumns,
    ImageStacks,
    ObservedTable,
    UntrainableTableError,
    observed_table,
)
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.build.framestack import histories
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.mdp import TabularMDP

GRIDWORLD = "MiniGrid-Empty-5x5-v0"


def observation_of(table: ObservedTable, node: int) -> np.ndarray:
    number = table.observation[node]
    if isinstance(table.seen, ImageStacks):
        stack = table.seen.frames[table.seen.stacks[number]]
        return np.concatenate(list(stack), axis=-1)
    groups = table.seen.groups
    return np.where(groups >= 0, table.seen.values[number][np.maximum(groups, 0)], 0).astype(np.uint8)


def check_against_live(name: str, mdp: TabularMDP, rng: np.random.Generator, num_episodes: int) -> None:
    """Random episodes on the table and on the environment show and pay the same."""
    from efhorizon.agents.deep.sb3 import LearnerEnv

    table = observed_table(mdp)
    env = LearnerEnv(name, unit=table.unit, bootstraps_at_horizon=table.bootstraps_at_horizon)
    for _ in range(num_episodes):
        shown, _ = env.reset()
        node, state, time, units, is_over = 0, 0, 0, 0, False
        while not is_over:
            assert table.state[node] == state
            np.testing.assert_array_equal(observation_of(table, node), shown)
            action = int(rng.integers(table.num_actions))
            shown, reward, terminated, truncated, info = env.step(action)
            assert reward == pytest.approx(table.rewards[node, action])
            units += table.reward_units[node, action]
            node, state, time = table.transitions[node, action], mdp.transitions[state, action], time + 1
            is_over = terminated or truncated
            is_late = time == table.horizon
            assert is_over == (node < 0 or is_late)
            assert truncated == (table.bootstraps_at_horizon and is_late and node >= 0)
        assert info["units"] == units


def test_a_gridworld_shows_what_the_table_says(gridworld: TabularMDP, rng: np.random.Generator) -> None:
    table = observed_table(gridworld)
    assert isinstance(table.seen, FlatColumns)
    assert table.seen.width > 2000 > 100 > len(table.seen.multiplicity)
    check_against_live(GRIDWORLD, gridworld, rng, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["freeway_10_fs30", "maze_easy_l0_30_fs1", "MiniGrid-DoorKey-5x5-v0"])
def test_other_suites_show_what_their_tables_say(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    options = Options(out=tmp_path, num_workers=1, verify_episodes=0)
    mdp = build(catalogue_target(name), options).mdp
    assert mdp is not None
    check_against_live(name, mdp, rng, 5)


def test_grey_frames_are_the_emulator_s() -> None:
    pytest.importorskip("ale_py")
    from efhorizon.suites.atari import observed_frame
    from efhorizon.suites.atari_simulator import AtariSimulator

    simulator = AtariSimulator("ms_pacman", 30)
    simulator.reset()
    for action in range(4):
        simulator.step(action)
        np.testing.assert_array_equal(observed_frame(simulator.screen())[:, :, 0], simulator.observation_frame())


def test_histories_are_unrolled_and_only_reachable_ones() -> None:
    transitions = np.array([[1, 2], [3, 3], [3, -1], [3, -1]], np.int32)  # two ways to state 3, which is a loop
    states, following, screens = histories(transitions, np.array([5, 6, 7, 6], np.int32), 2)
    assert states.tolist() == [0, 1, 2, 3, 3]
    assert screens.tolist() == [[5, 5], [5, 6], [5, 7], [6, 6], [7, 6]]
    for node, row in enumerate(following):
        for action, successor in enumerate(row):
            expected = transitions[states[node], action]
            assert (states[successor] if successor >= 0 else -1) == expected
            if successor >= 0:
                assert screens[successor, 0] == screens[node, 1]


def test_both_backends_solve_a_small_gridworld(gridworld: TabularMDP) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    from efhorizon.agents.deep import ppo, sb3
    from efhorizon.agents.deep.protocol import Protocol

    table, settings = observed_table(gridworld), PPOSettings(gamma=0.99)
    protocol = Protocol(max_steps=40_000)
    seen: list[int] = []

    def on_progress(runs: list[Any]) -> None:
        seen.append(runs[0].steps)

    (live,) = sb3.train(GRIDWORLD, table, settings, protocol, [0], on_progress=on_progress)
    results = ppo.train(table, settings, protocol, [0, 1], on_progress=on_progress)
    for result in (live, *results):
        assert result.sample_complexity is not None
        assert result.steps == result.sample_complexity < 15_000
        assert result.best_return == 1.0


def test_tables_that_cannot_be_trained_on_are_refused(gridworld: TabularMDP) -> None:
    unfinished = TabularMDP(
        gridworld.transitions,
        gridworld.rewards,
        gridworld.horizon,
        screens=gridworld.screens,
        screen_mapping=gridworld.screen_mapping,
        unexplored=np.arange(gridworld.num_states) == 3,
        metadata=gridworld.metadata,
    )
    with pytest.raises(UntrainableTableError, match="unfinished"):
        observed_table(unfinished)
