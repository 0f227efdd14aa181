"""Many levels at once against the tables' simulator, one at a time: screens, rewards, ends; and which levels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from efhorizon import catalog
from efhorizon.policies.pretraining_settings import PretrainingError, settings_for
from efhorizon.policies.procgen_levels import ProcgenLevels, bridge_levels, check_levels
from efhorizon.suites import procgen

pytest.importorskip("procgen")

GAMES = ["maze", "fruitbot", "leaper", "coinrun"]  # frameskip 1, 8, 6, 8; fruitbot's and leaper's episodes are short


@pytest.mark.parametrize("game", GAMES)
def test_environments_do_what_the_simulator_does(game: str) -> None:
    """Also in steps that end an episode, after which the level is seen from its start again."""
    settings = settings_for(game, first_level=5, num_levels=1, num_envs=3, num_minibatches=1)
    levels = ProcgenLevels(settings, seed=1)
    simulator = procgen.ProcgenSimulator(game, "easy", 5, settings.frameskip, settings.num_actions)
    start = simulator.screen().copy()
    rng = np.random.default_rng(0)
    num_ends = 0
    for _ in range(150):
        action = int(rng.integers(settings.num_actions))
        simulator_step = simulator.step(action)
        reward, is_over = levels.step(np.full(3, action, np.int32))
        np.testing.assert_array_equal(reward, np.float32(simulator_step.reward))
        np.testing.assert_array_equal(is_over, simulator_step.terminated)
        if simulator_step.terminated:
            num_ends += 1
            simulator.reset()
            np.testing.assert_array_equal(simulator.screen(), start)
        np.testing.assert_array_equal(levels.images, np.stack([simulator.screen()] * 3))
    if game in ("fruitbot", "leaper"):
        assert num_ends > 3
    simulator.close()
    levels.close()


@pytest.mark.parametrize("game", GAMES)
def test_states_go_to_another_set_of_environments(game: str) -> None:
    settings = settings_for(game, num_envs=4)
    one, other = ProcgenLevels(settings, seed=1), ProcgenLevels(settings, seed=2, num_threads=2)
    rng = np.random.default_rng(0)
    for _ in range(20):
        one.step(rng.integers(settings.num_actions, size=4).astype(np.int32))
    assert (one.images != other.images).any()
    other.restore(one.states())
    for _ in range(60):  # new levels are drawn meanwhile
        np.testing.assert_array_equal(one.images, other.images)
        actions = rng.integers(settings.num_actions, size=4).astype(np.int32)
        for mine, its in zip(one.step(actions), other.step(actions), strict=True):
            np.testing.assert_array_equal(mine, its)
    one.close()
    other.close()


def test_a_state_of_another_game_is_refused() -> None:
    maze, coinrun = (ProcgenLevels(settings_for(game, num_envs=2), seed=0) for game in ("maze", "coinrun"))
    with pytest.raises(procgen.SimulatorError, match="not a state of the game"):
        maze.restore(coinrun.states())


@pytest.mark.parametrize("game", sorted(procgen.GAMES))
def test_no_level_of_bridge_is_played(game: str) -> None:
    settings = settings_for(game)
    check_levels(settings)
    of_catalogue = {
        entry.level
        for entry in catalog.entries("procgen")
        if entry.game == game and entry.difficulty in ("easy", "hard")
    }
    assert of_catalogue == {0, 1, 2}
    assert of_catalogue <= bridge_levels(game)
    assert len(settings.levels) == 500
    assert not bridge_levels(game) & set(settings.levels)
    for level in bridge_levels(game):
        with pytest.raises(PretrainingError, match=f"contain BRIDGE's level {level} of {game}"):
            check_levels(dataclasses.replace(settings, first_level=level))


def test_exploration_levels_count_as_bridge_s() -> None:
    """Their seeds are the library's own: the screen of maze's is that of the hard level with that number."""
    (seed,) = bridge_levels("maze") - {0, 1, 2}
    hard = procgen.ProcgenSimulator("maze", "hard", seed, 1, 9)
    exploration = procgen.ProcgenSimulator("maze", "exploration", 0, 1, 9)
    np.testing.assert_array_equal(hard.screen(), exploration.screen())
    assert len(bridge_levels("bigfish")) == 3


@pytest.mark.parametrize("levels", [(-1, 2), (2**31 - 2, 10)])
def test_numbers_that_are_no_levels_are_refused(levels: tuple[int, int]) -> None:
    settings = dataclasses.replace(settings_for("maze"), first_level=levels[0], num_levels=levels[1])
    with pytest.raises(PretrainingError, match=r"levels must be in 0 \.\. 2147483646"):
        check_levels(settings)
