"""The Procgen simulator: published counts, exact restoring, steps that stop at the end, errors in one line."""

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
from efhorizon.suites import procgen_library
from efhorizon.suites.procgen import ProcgenSimulator
from efhorizon.suites.replay import restore_is_exact
from efhorizon.suites.simulator import MissingExtraError, Simulator, SimulatorError

try:
    ENV_NAMES = procgen_library.game_names()
except MissingExtraError as error:
    pytest.skip(str(error), allow_module_level=True)


def test_is_a_simulator() -> None:
    assert isinstance(ProcgenSimulator("maze", "easy", 0, 1, 9), Simulator)


def test_published_counts_of_maze_easy_l0_30_fs1() -> None:
    simulator = ProcgenSimulator("maze", "easy", 0, 1, 9)
    simulator.reset()
    screens = {simulator.screen().tobytes()}
    layer = [simulator.get_state()]
    num_states = 0
    for _ in range(30):
        num_states += len(layer)
        next_layer: dict[bytes, bytes] = {}
        for state in layer:
            for action in range(simulator.num_actions):
                simulator.set_state(state)
                transition = simulator.step(action)
                if not transition.terminated:
                    screens.add(simulator.screen().tobytes())
                    next_state = simulator.get_state()
                    next_layer[simulator.identity(next_state)] = next_state
        layer = list(next_layer.values())
    assert num_states == 2227
    assert len(screens) == 9


@pytest.mark.parametrize("game", ENV_NAMES)
def test_restoring_is_exact(game: str) -> None:
    report = restore_is_exact(lambda: ProcgenSimulator(game, "easy", 0, 8, 9), 2, 10, np.random.default_rng(0))
    assert report.exact, report


def test_exploration_level_is_a_level_of_its_own() -> None:
    exploration, hard = (ProcgenSimulator("maze", difficulty, 0, 1, 9) for difficulty in ("exploration", "hard"))
    assert (exploration.screen() != hard.screen()).any()
    report = restore_is_exact(lambda: ProcgenSimulator("maze", "exploration", 0, 1, 9), 1, 10, np.random.default_rng(0))
    assert report.exact, report


def test_the_screen_is_restored_too() -> None:
    simulator = ProcgenSimulator("coinrun", "easy", 1, 8, 9)
    start_screen = simulator.screen()
    simulator.step(7)
    state, screen = simulator.get_state(), simulator.screen()
    assert screen.shape == (64, 64, 3)
    assert screen.dtype == np.uint8
    assert (screen != start_screen).any()
    simulator.step(7)
    simulator.set_state(state)
    np.testing.assert_array_equal(simulator.screen(), screen)
    simulator.reset()
    np.testing.assert_array_equal(simulator.screen(), start_screen)
    np.testing.assert_array_equal(simulator.picture(), start_screen)


def test_a_step_repeats_its_action_and_stops_at_the_end() -> None:
    """Dodgeball ends soon: a step of eight frames that reaches the end must not play on in the next episode."""
    long_steps, short_steps = (ProcgenSimulator("dodgeball", "easy", 0, frameskip, 10) for frameskip in (8, 1))
    rng = np.random.default_rng(1)
    num_early_ends = 0
    for _ in range(20):
        long_steps.reset()
        short_steps.reset()
        terminated = False
        while not terminated:
            action = int(rng.integers(10))
            reward, terminated = long_steps.step(action)
            total_reward, num_frames, ended = 0.0, 0, False
            while num_frames < 8 and not ended:
                frame_reward, ended = short_steps.step(action)
                total_reward += frame_reward
                num_frames += 1
            assert (reward, terminated) == (total_reward, ended)
            num_early_ends += num_frames < 8
            if not terminated:
                assert long_steps.get_state() == short_steps.get_state()
    assert num_early_ends > 0


def test_a_state_goes_on_in_another_process_which_prints_nothing_else(tmp_path: Path) -> None:
    simulator = ProcgenSimulator("starpilot", "hard", 0, 8, 11)
    simulator.step(9)
    (tmp_path / "state").write_bytes(simulator.get_state())
    reward, _ = simulator.step(2)
    program = (
        "import hashlib, pathlib; from efhorizon.suites.procgen import ProcgenSimulator\n"
        "simulator = ProcgenSimulator('starpilot', 'hard', 0, 8, 11)\n"
        "simulator.set_state(pathlib.Path('state').read_bytes())\n"
        "print(simulator.step(2).reward)\n"
        "for data in (simulator.get_state(), simulator.screen().tobytes()): print(hashlib.sha256(data).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(efhorizon.__file__).parents[1])}
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    expected = [simulator.get_state(), simulator.screen().tobytes()]
    assert process.stdout.split() == [str(reward), *(hashlib.sha256(data).hexdigest() for data in expected)]
    assert process.stderr == ""


def test_malformed_states_are_refused() -> None:
    """The library would end the whole process."""
    simulator = ProcgenSimulator("maze", "easy", 0, 1, 9)
    state = simulator.get_state()
    other_level, other_game = (ProcgenSimulator(game, "easy", 1, 1, 9).get_state() for game in ("maze", "heist"))
    for bad in (b"", state[:100], state[:-1], state + b"\0", other_level, other_game):
        with pytest.raises(SimulatorError, match="not a state of this Procgen level"):
            simulator.set_state(bad)
    assert simulator.get_state() == state


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mase", "easy", 0, 1, 9), "no game called 'mase'"),
        (("maze", "medium", 0, 1, 9), "difficulty .* 'medium'"),
        (("bigfish", "exploration", 0, 1, 9), "no exploration level"),
        (("maze", "exploration", 1, 1, 9), "one exploration level"),
        (("maze", "easy", -1, 1, 9), "level must be"),
        (("maze", "easy", 2**31 - 1, 1, 9), "level must be"),
        (("maze", "easy", 0, 0, 9), "frameskip"),
        (("maze", "easy", 0, 1, 16), r"num_actions must be in 1 \.\. 15"),
    ],
)
def test_bad_arguments(arguments: Any, message: str) -> None:
    with pytest.raises(SimulatorError, match=message):
        ProcgenSimulator(*arguments)


def test_actions_out_of_range() -> None:
    simulator = ProcgenSimulator("maze", "easy", 0, 1, 9)
    for action in (-1, 9):
        with pytest.raises(SimulatorError, match=r"0 \.\. 8"):
            simulator.step(action)


def test_missing_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("procgen", "procgen.env", "procgen_gym", "procgen_gym.env"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"procgen.*efhorizon\[procgen\]"):
        ProcgenSimulator("maze", "easy", 0, 1, 9)
