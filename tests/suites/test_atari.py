"""The Atari simulator: published counts, exact restoring, one life, Skiing's extra frames, errors in one line."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efhorizon
from efhorizon.suites.atari_simulator import AtariSimulator, grey_frame
from efhorizon.suites.replay import restore_is_exact
from efhorizon.suites.simulator import MissingExtraError, Simulator, SimulatorError

ale_py: Any = pytest.importorskip("ale_py")


def raw_emulator(game: str) -> Any:
    """ALE itself, set up by hand, to check the simulator against."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 0)
    ale.setInt("system_random_seed", 4753849)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    ale.reset_game()
    return ale


def test_is_a_simulator() -> None:
    assert isinstance(AtariSimulator("freeway", 30), Simulator)


def test_published_counts_of_freeway_10_fs30() -> None:
    simulator = AtariSimulator("freeway", 30)
    simulator.reset()
    screens = {simulator.screen().tobytes()}
    layer = [simulator.get_state()]
    layer_sizes = []
    for _ in range(10):
        layer_sizes.append(len(layer))
        next_layer: dict[bytes, bytes] = {}
        for state in layer:
            for action in range(simulator.num_actions):
                simulator.set_state(state)
                transition = simulator.step(action)
                screens.add(simulator.screen().tobytes())
                if not transition.terminated:
                    next_state = simulator.get_state()
                    next_layer[simulator.identity(next_state)] = next_state
        layer = list(next_layer.values())
    assert layer_sizes == [1, 3, 5, 8, 14, 20, 42, 70, 93, 143]
    assert sum(layer_sizes) == 399
    assert len(screens) == 263


SCREEN_DIGEST_BYTES = 16


def emulator_state(simulator: AtariSimulator) -> bytes:
    """A snapshot without what it says of the screen."""
    return simulator.get_state()[:-SCREEN_DIGEST_BYTES]


def test_states_that_show_different_screens_are_different() -> None:
    """Kangaroo: these two games leave the emulator in the same state, and a different picture on the screen."""
    games = AtariSimulator("kangaroo", 30), AtariSimulator("kangaroo", 30)
    for simulator, actions in zip(games, ([0, 0, 0, 0, 0, 0, 3, 12, 0], [0, 0, 0, 0, 0, 1, 2, 6, 4]), strict=True):
        for action in actions:
            simulator.step(action)
    first, second = games
    assert emulator_state(first) == emulator_state(second)
    assert not np.array_equal(first.screen(), second.screen())
    assert first.get_state() != second.get_state()


def test_a_restored_state_is_the_same_before_a_step() -> None:
    simulator = AtariSimulator("pong", 30)
    simulator.step(1)
    state = simulator.get_state()
    simulator.step(2)
    simulator.set_state(state)
    assert simulator.get_state() == state


def test_rollouts_equal_the_bare_emulator() -> None:
    simulator, ale = AtariSimulator("breakout", 30), raw_emulator("breakout")
    ale_actions = [action.value for action in ale.getMinimalActionSet()]
    for action in (1, 2, 0):
        transition = simulator.step(action)
        assert transition == (sum(ale.act(ale_actions[action]) for _ in range(30)), False)
        assert emulator_state(simulator) == ale.cloneState().serialize()
        np.testing.assert_array_equal(simulator.picture(), ale.getScreenRGB())
        np.testing.assert_array_equal(simulator.observation_frame(), grey_frame(ale.getScreenGrayscale()))


@pytest.mark.parametrize(
    ("game", "frameskip"), [("pong", 30), ("amidar", 30), ("berzerk", 30), ("montezuma_revenge", 24), ("qbert", 30)]
)
def test_restoring_is_exact(game: str, frameskip: int) -> None:
    report = restore_is_exact(lambda: AtariSimulator(game, frameskip), 2, 6, np.random.default_rng(0))
    assert report.exact, report


@pytest.mark.parametrize("game", ["pong", "qbert"])
def test_reset_leads_back_to_the_start(game: str) -> None:
    simulator = AtariSimulator(game, 30)
    state, screen, frame = simulator.get_state(), simulator.screen(), simulator.observation_frame()
    simulator.step(2)
    assert simulator.get_state() != state
    simulator.reset()
    assert simulator.get_state() == state
    np.testing.assert_array_equal(simulator.screen(), screen)
    np.testing.assert_array_equal(simulator.observation_frame(), frame)


@pytest.mark.parametrize("game", ["freeway", "qbert"])
def test_a_state_goes_on_in_another_process_which_prints_nothing_else(game: str, tmp_path: Path) -> None:
    simulator = AtariSimulator(game, 30)
    simulator.step(1)
    (tmp_path / "state").write_bytes(simulator.get_state())
    reward, _ = simulator.step(2)
    program = (
        "import hashlib, pathlib; from efhorizon.suites.atari_simulator import AtariSimulator\n"
        f"simulator = AtariSimulator({game!r}, 30); simulator.set_state(pathlib.Path('state').read_bytes())\n"
        "print(simulator.step(2).reward)\n"
        "for data in (simulator.get_state(), simulator.screen().tobytes()): print(hashlib.sha256(data).hexdigest())\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(efhorizon.__file__).parents[1]),
        "ALE_ROMS_DIR": str(Path(ale_py.roms.__file__).parent),  # makes ale-py print a line
    }
    output = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    expected = [simulator.get_state(), simulator.screen().tobytes()]
    assert output.split() == [str(reward), *(hashlib.sha256(data).hexdigest() for data in expected)]


def test_a_life_lost_inside_a_step_ends_the_episode_after_all_its_frames() -> None:
    simulator, ale = AtariSimulator("breakout", 30), raw_emulator("breakout")
    for action in (1, *[0] * 9):
        lives = [ale.lives()]
        for _ in range(30):
            ale.act(action)
            lives.append(ale.lives())
        transition = simulator.step(action)
        assert transition.terminated == (lives[-1] < lives[0])
        if transition.terminated:
            break
    assert lives[0] > lives[20] == lives[-1], "the life is lost well before the last frame"
    assert emulator_state(simulator) == ale.cloneState().serialize()


def test_a_bonus_life_does_not_hide_a_lost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = AtariSimulator("pong", 5)

    class Emulator:
        lives_after_frame = iter([3, 3, 2, 3, 3, 3])

        def act(self, action: int) -> int:
            return 1

        def lives(self) -> int:
            return next(self.lives_after_frame)

        def game_over(self) -> bool:
            return False

    monkeypatch.setattr(simulator, "_ale", Emulator())
    assert simulator.step(0) == (5.0, True)


def test_skiing_plays_on_after_its_last_step() -> None:
    simulator, plain, ale = (
        AtariSimulator("skiing", 30, final_noops_after=2),
        AtariSimulator("skiing", 30),
        raw_emulator("skiing"),
    )
    assert simulator.step(1) == plain.step(1)
    state = simulator.get_state()
    assert state == plain.get_state()
    last = simulator.step(2)
    ale.restoreState(ale_py.ALEState(state[:-SCREEN_DIGEST_BYTES]))
    action = ale.getMinimalActionSet()[2].value
    step_reward = sum(ale.act(action) for _ in range(30))
    final_reward = sum(ale.act(0) for _ in range(200 * 30))
    assert ale.game_over()
    assert plain.step(2).reward == step_reward
    assert final_reward != 0
    assert last.reward == step_reward + final_reward
    assert emulator_state(simulator) == ale.cloneState().serialize()
    simulator.set_state(state)
    assert simulator.step(2) == last, "the number of the step comes from the state"


def test_no_screen_between_restore_and_step() -> None:
    simulator = AtariSimulator("pong", 30)
    simulator.step(1)
    state = simulator.get_state()
    simulator.set_state(state)
    for view in (simulator.screen, simulator.picture, simulator.observation_frame):
        with pytest.raises(SimulatorError, match="until the next step"):
            view()
    simulator.step(0)
    assert simulator.screen().shape == (210, 160, 1)
    assert simulator.observation_frame().shape == (84, 84)


def test_malformed_states_are_refused() -> None:
    simulator = AtariSimulator("pong", 30)
    state = simulator.get_state()
    for bad in (b"", state[:-1], state + b"\0", AtariSimulator("freeway", 30).get_state()):
        with pytest.raises(SimulatorError, match="not a state of pong"):
            simulator.set_state(bad)
    assert simulator.get_state() == state


def test_an_unfinished_frame_is_refused_unless_it_is_the_start() -> None:
    simulator = AtariSimulator("qbert", 30)
    start = simulator.get_state()
    simulator.set_state(start)
    other = start[:8] + b"\1" + start[9:]  # another frame number
    with pytest.raises(SimulatorError, match="inside a frame"):
        simulator.set_state(other)


def test_bad_arguments() -> None:
    with pytest.raises(SimulatorError, match="no game called 'ping'"):
        AtariSimulator("ping", 30)
    with pytest.raises(SimulatorError, match="frameskip"):
        AtariSimulator("pong", 0)
    with pytest.raises(SimulatorError, match="final_noops_after"):
        AtariSimulator("skiing", 30, final_noops_after=0)
    simulator = AtariSimulator("pong", 30)
    for action in (-1, simulator.num_actions):
        with pytest.raises(SimulatorError, match=r"0 \.\. 5"):
            simulator.step(action)


def test_rom_md5() -> None:
    assert AtariSimulator("freeway", 30).rom_md5 == "8e0ab801b1705a740b476b7f588c6d16"


@pytest.mark.parametrize("module", ["ale_py", "cv2"])
def test_missing_modules_are_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = AtariSimulator("pong", 30)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"{module}.*efhorizon\[atari\]"):
        AtariSimulator("pong", 30) if module == "ale_py" else simulator.observation_frame()


@pytest.mark.parametrize("game", ["amidar", "atlantis", "boxing", "hero", "ms_pacman", "seaquest", "solaris"])
def test_the_palette_is_that_of_the_emulator(game: str) -> None:
    simulator, ale = AtariSimulator(game, 30), raw_emulator(game)
    actions = [action.value for action in ale.getMinimalActionSet()]
    for action in range(6):
        simulator.step(action % len(actions))
        for _ in range(30):
            ale.act(actions[action % len(actions)])
        np.testing.assert_array_equal(simulator.picture(), ale.getScreenRGB())
