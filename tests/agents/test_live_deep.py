"""PPO and DQN on live environments: networks, environments, replay, resumption, and that they learn."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")

import torch
from torch.nn import functional

from efhorizon import EfhorizonError
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.agents.deep.torch_layers import Layers, Packing
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.agents.live_deep import training as module
from efhorizon.agents.live_deep.games import network_of, observation_reader
from efhorizon.agents.live_deep.replay import Replay
from efhorizon.agents.live_deep.training import Course, LiveTraining, train_live
from efhorizon.agents.live_deep.vector import LiveEnvs

CPU = torch.device("cpu")
CARTPOLE = EnvironmentName("CartPole-v1")
PPO = PPOSettings(gamma=0.99, rollout_length=64)
DQN = DQNSettings(gamma=0.99, schedule_steps=2_000, buffer_size=800, target_interval=100)


# --- networks


@pytest.mark.parametrize("kind", ["actor_critic", "q"])
def test_the_cnn_of_blocks_is_the_nature_cnn(kind: str) -> None:
    """Against torch's convolutions on the image itself."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 84, 84, 4)).astype(np.uint8)
    network = network_of(kind, 6, images[0])
    theta = (network.initial(rng) + 0.01 * rng.standard_normal(len(network.initial(rng)))).astype(np.float32)
    packing = Packing(network)
    np.testing.assert_array_equal(packing.unpacked(packing.packed(theta)), theta)
    vector = torch.tensor(packing.packed(theta))
    vector[: packing.num_scaled] /= 255
    blocks = torch.empty((3, *packing.observation_shape), dtype=torch.uint8)
    packing.prepared(images, blocks.numpy())
    found = Layers(vector, packing).outputs(blocks).detach().numpy()
    np.testing.assert_allclose(found, by_hand(network.unpacked(theta), images, kind), rtol=2e-4, atol=2e-4)


def by_hand(parts: dict[str, NDArray[np.float32]], images: NDArray[np.uint8], kind: str) -> NDArray[Any]:
    hidden = torch.tensor(images.transpose(0, 3, 1, 2).astype(np.float32) / 255)
    for layer, stride in enumerate((4, 2, 1)):
        weights = torch.tensor(parts[f"cnn.{layer}.w"].transpose(3, 2, 0, 1).copy())
        hidden = functional.relu(functional.conv2d(hidden, weights, torch.tensor(parts[f"cnn.{layer}.b"]), stride))
    flat = hidden.permute(0, 2, 3, 1).flatten(1).numpy()
    features = np.maximum(flat @ parts["linear.w"] + parts["linear.b"], 0)
    heads = ("pi", "vf") if kind == "actor_critic" else ("q",)
    return np.concatenate([features @ parts[f"{head}.out.w"] + parts[f"{head}.out.b"] for head in heads], axis=1)


@pytest.mark.parametrize("kind", ["actor_critic", "q"])
def test_the_mlps(kind: str) -> None:
    rng = np.random.default_rng(1)
    seen = rng.standard_normal((5, 7)).astype(np.float32)
    network = network_of(kind, 3, seen[0])
    packing, theta = Packing(network), network.initial(rng)
    parts, expected = network.unpacked(theta), []
    for head in ("pi", "vf") if kind == "actor_critic" else ("q",):
        hidden = np.maximum(seen @ parts[f"{head}.0.w"] + parts[f"{head}.0.b"], 0)
        hidden = np.maximum(hidden @ parts[f"{head}.1.w"] + parts[f"{head}.1.b"], 0)
        expected.append(hidden @ parts[f"{head}.out.w"] + parts[f"{head}.out.b"])
    found = Layers(torch.tensor(packing.packed(theta)), packing).outputs(torch.tensor(seen)).detach().numpy()
    np.testing.assert_allclose(found, np.concatenate(expected, axis=1), rtol=1e-4, atol=1e-5)


# --- environments


def test_spaces() -> None:
    from gymnasium import spaces

    space = spaces.Dict(
        {
            "number": spaces.Box(-1, 1, (2,), np.float32),
            "choice": spaces.Discrete(3),
            "bytes": spaces.Box(0, 255, (2, 2), np.uint8),
            "mission": spaces.Text(5),
        }
    )
    seen = {"number": [0.5, -0.5], "choice": 2, "bytes": np.full((2, 2), 255, np.uint8), "mission": "go"}
    read = observation_reader(space, "x")
    np.testing.assert_array_equal(np.sort(read(seen)), [-0.5, 0, 0, 0.5, 1, 1, 1, 1, 1])
    with pytest.raises(EfhorizonError, match="a network can read nothing"):
        observation_reader(spaces.Text(5), "x")
    image = observation_reader(spaces.Box(0, 255, (40, 40, 3), np.uint8), "x")
    assert image(np.zeros((40, 40, 3), np.uint8)).shape == (40, 40, 3)


def test_threads_change_nothing_and_states_come_back() -> None:
    pytest.importorskip("ale_py")
    name, rng = EnvironmentName("breakout_full"), np.random.default_rng(0)
    envs = [LiveEnvs(name, 3, [0], threads) for threads in (1, 2)]
    actions = rng.integers(4, size=(40, 3))
    for action in actions[:20]:
        one, other = (each.step(action) for each in envs)
        np.testing.assert_array_equal(one.reward, other.reward)
        np.testing.assert_array_equal(envs[0].observations, envs[1].observations)
    kept = envs[0].state()
    envs[1].restart()
    envs[1].restore(*kept)
    for action in actions[20:]:
        one, other = (each.step(action) for each in envs)
        assert one.returns == other.returns
        np.testing.assert_array_equal(envs[0].observations, envs[1].observations)
    for each in envs:
        each.close()


@pytest.mark.parametrize("shape", [(6, 6, 4), (5,)])
def test_replay_gives_back_what_was_seen(shape: tuple[int, ...]) -> None:
    """Against a list of all transitions, with ends, cuts and stacks of frames."""
    rng, stack, num = np.random.default_rng(0), shape[-1] if len(shape) == 3 else 1, 2
    dtype = np.uint8 if len(shape) == 3 else np.float32

    def frame() -> Any:
        return rng.integers(0, 256, (*shape[:-1], 1) if stack > 1 else shape).astype(dtype)

    def first() -> Any:
        return np.concatenate([frame()] * stack, axis=-1) if stack > 1 else frame()

    def following(seen: Any) -> Any:
        return np.concatenate([seen[..., 1:], frame()], axis=-1) if stack > 1 else frame()

    def fresh() -> Any:
        one = frame()
        return np.concatenate([one] * stack, axis=-1) if stack > 1 else one

    now = np.stack([fresh() for _ in range(num)])
    replay = Replay(now, 60, stack, None)
    known: dict[bytes, tuple[int, float, bool, Any]] = {}
    for step in range(200):
        action = rng.integers(3, size=num)
        reward = rng.standard_normal(num).astype(np.float32)
        after, is_done, last = now.copy(), np.zeros(num, np.bool_), {}
        for which in range(num):
            after[which] = following(now[which])
            fate = rng.random()
            entry = (int(action[which]), float(reward[which]), fate < 0.1, after[which].copy())
            known[now[which].tobytes()] = entry
            if fate < 0.2:
                is_done[which] = True
                if fate >= 0.1:
                    last[which] = after[which].copy()
                after[which] = fresh()
        replay.add(action, reward, is_done, last, after)
        now = after
        if step % 20 == 5:
            drawn = replay.drawn(40, rng)
            for place in range(40):
                its = known[drawn.seen[place].tobytes()]
                assert its[:3] == (drawn.action[place], drawn.reward[place], drawn.is_end[place])
                if not drawn.is_end[place]:
                    np.testing.assert_array_equal(its[3], drawn.following[place])


# --- learning


@pytest.mark.slow
def test_ppo_learns_cartpole() -> None:
    training = LiveTraining(CARTPOLE, PPOSettings(gamma=0.99, rate=1e-3), 0, 4_096)
    curve = train_live(training, max_steps=16_384, device=CPU, threads=1).curve
    first, last = curve[0][2], curve[-1][2]  # of training episodes
    assert first is not None
    assert last is not None
    assert last > 2.5 * first


class StoppedError(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("settings", [PPO, DQN], ids=["ppo", "dqn"])
def test_a_run_that_is_stopped_ends_as_it_would_have(
    settings: PPOSettings | DQNSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLACK", 512)  # a checkpoint at least every 256 timesteps
    training = LiveTraining(CARTPOLE, settings, 3, 500)
    limits = {"max_steps": 2_500, "device": CPU, "threads": 2}
    whole = train_live(training, **limits, checkpoint=tmp_path / "whole.checkpoint.npz")
    saved = tmp_path / "run.checkpoint.npz"
    for stop in (700, 1_300, 1_900):

        def on_progress(course: Course, stop: int = stop) -> None:
            if course.steps >= stop:
                raise StoppedError

        with pytest.raises(StoppedError):
            train_live(training, **limits, checkpoint=saved, on_progress=on_progress)
    found = train_live(training, **limits, checkpoint=saved)
    assert (found.curve, found.steps, found.best_return) == (whole.curve, whole.steps, whole.best_return)
    assert len(found.curve) >= 5
    other = LiveTraining(CARTPOLE, settings, 4, 500)
    with pytest.raises(EfhorizonError, match="a checkpoint of another run"):
        train_live(other, **limits, checkpoint=saved)


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.agents.live_deep import training as module

module.SLACK = 128  # a checkpoint at least every 64 timesteps
game, stop, saved = sys.argv[1], int(sys.argv[3]), Path(sys.argv[4])
common = {"gamma": 0.99}
settings = {
    "ppo": PPOSettings(rollout_length=32, **common),
    "dqn": DQNSettings(schedule_steps=1000, buffer_size=400, target_interval=100, **common),
}[sys.argv[2]]

def on_progress(course):
    if stop and course.steps >= stop:
        os.kill(os.getpid(), signal.SIGKILL)

training = module.LiveTraining(EnvironmentName(game), settings, 0, 200)
course = module.train_live(
    training, max_steps=1000, device=torch.device("cpu"), threads=2, checkpoint=saved, on_progress=on_progress
)
print(repr(course.curve), course.best_return, course.steps)
"""


def killed_three_times(game: str, algorithm: str, folder: Path) -> None:
    def run(stop: int, saved: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, game, algorithm, str(stop), str(saved)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    settings = (
        PPOSettings(gamma=0.99, rollout_length=32)
        if algorithm == "ppo"
        else DQNSettings(gamma=0.99, schedule_steps=1000, buffer_size=400, target_interval=100)
    )
    training = LiveTraining(EnvironmentName(game), settings, 0, 200)
    whole = train_live(training, max_steps=1000, device=CPU, threads=1)
    saved = folder / "run.checkpoint.npz"
    for stop in (256, 512, 768):
        assert run(stop, saved).returncode == -signal.SIGKILL
    assert run(0, saved).stdout == f"{whole.curve!r} {whole.best_return} {whole.steps}\n"


@pytest.mark.slow  # GORP's run is killed in test_gorp_curve.py
def test_killed_three_times(tmp_path: Path) -> None:
    killed_three_times("CartPole-v1", "dqn", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_killed_three_times_in_breakout(algorithm: str, tmp_path: Path) -> None:
    pytest.importorskip("ale_py")
    killed_three_times("breakout_200_fs4", algorithm, tmp_path)
