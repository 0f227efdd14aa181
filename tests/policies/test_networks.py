"""Policies from files: the same probabilities as Stable-Baselines3 computes, and one line for each file that is none."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from efhorizon.errors import EfhorizonError
from efhorizon.policies.networks import (
    CallablePolicy,
    InvalidNetworkError,
    load_network,
    network_parameters,
    probabilities,
)

torch = pytest.importorskip("torch")
stable_baselines3 = pytest.importorskip("stable_baselines3")

IMAGES = gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)
FLAT = gymnasium.spaces.Box(0, 255, (30,), np.uint8)


class Shown(gymnasium.Env[np.ndarray, int]):
    """Shows noise; five actions."""

    action_space = gymnasium.spaces.Discrete(5)

    def __init__(self, space: gymnasium.spaces.Box) -> None:
        self.observation_space = space

    def reset(self, **_: Any) -> Any:
        return self.observation_space.sample(), {}

    def step(self, action: int) -> Any:
        return self.observation_space.sample(), 0.0, False, False, {}


def model(algorithm: str, space: gymnasium.spaces.Box, **arguments: Any) -> Any:
    policy = "CnnPolicy" if len(space.shape) == 3 else "MlpPolicy"
    made = getattr(stable_baselines3, algorithm)(policy, Shown(space), seed=3, device="cpu", **arguments)
    with torch.no_grad():  # fresh heads are nearly uniform
        for parameter in made.policy.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return made


def expected(made: Any, observations: np.ndarray, temperature: float) -> np.ndarray:
    shown = np.moveaxis(observations, 3, 1) if observations.ndim == 4 else observations
    with torch.no_grad():
        seen = torch.as_tensor(np.ascontiguousarray(shown))
        if hasattr(made, "q_net"):
            return torch.softmax(made.q_net(seen) / temperature, dim=1).numpy()
        return made.policy.get_distribution(seen).distribution.probs.numpy()


@pytest.mark.parametrize("ending", ["zip", "pth", "npz"])
@pytest.mark.parametrize(
    ("algorithm", "space", "arguments"),
    [
        ("PPO", IMAGES, {}),
        ("PPO", FLAT, {}),
        ("PPO", FLAT, {"policy_kwargs": {"net_arch": [32, 32, 16]}}),
        ("DQN", IMAGES, {"buffer_size": 10}),
        ("DQN", FLAT, {"buffer_size": 10}),
    ],
)
def test_networks_of_stable_baselines3(
    algorithm: str, space: gymnasium.spaces.Box, arguments: dict[str, Any], ending: str, tmp_path: Path
) -> None:
    made = model(algorithm, space, **arguments)
    path = tmp_path / f"policy.{ending}"
    if ending == "zip":
        made.save(path)
    elif ending == "pth":
        torch.save(made.policy.state_dict(), path)
    else:
        np.savez(path, **{name: value.numpy() for name, value in made.policy.state_dict().items()})
    network = load_network(path, temperature=0.5)
    observations = np.random.default_rng(0).integers(256, size=(300, *space.shape), dtype=np.uint8)
    found = probabilities(network, observations)
    assert network.num_actions == 5
    np.testing.assert_allclose(found, expected(made, observations, 0.5), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    assert found.std() > 0.01  # the observations matter


def test_a_zip_with_code_in_its_data_runs_none(tmp_path: Path) -> None:
    """Stable-Baselines3 pickles its settings into `data`; they are not looked at."""
    made, path, marker = model("PPO", FLAT), tmp_path / "policy.zip", tmp_path / "marker"

    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (marker,))

    made.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more", pickle.dumps(Trap()))
    assert load_network(path).num_actions == 5
    buffer = io.BytesIO()
    torch.save({"action_net.weight": Trap()}, buffer)
    with zipfile.ZipFile(tmp_path / "trap.zip", "w") as archive:
        archive.writestr("policy.pth", buffer.getvalue())
    with pytest.raises(InvalidNetworkError, match="safe to read"):
        load_network(tmp_path / "trap.zip")
    assert not marker.exists()


def write(path: Path, content: bytes | dict[str, Any]) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    return path


def actor(**changes: Any) -> dict[str, Any]:
    layers = {
        "mlp_extractor.policy_net.0.weight": np.ones((4, 3), np.float32),
        "mlp_extractor.policy_net.0.bias": np.ones(4, np.float32),
        "action_net.weight": np.ones((2, 4), np.float32),
        "action_net.bias": np.ones(2, np.float32),
    }
    return {name: value for name, value in (layers | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.zip", b"nothing", "not a file of Stable-Baselines3"),
        ("a.zip", b"", "not a file of Stable-Baselines3"),
        ("a.pth", b"nothing", "safe to read"),
        ("a.pth", pickle.dumps({"x": 1}), "safe to read"),
        ("a.npz", b"nothing", "not a .npz of arrays"),
        ("a.npz", {"x": np.ones(3, np.float32)}, "no policy in it: neither action_net nor q_net"),
        ("a.npz", actor(**{"action_net.bias": None}), "action_net.bias is missing"),
        ("a.npz", actor(**{"action_net.weight": np.ones(3, np.float32)}), r"action_net.weight is of shape \(3,\)"),
        ("a.npz", actor(**{"action_net.bias": np.ones(3, np.float32)}), "of action_net do not go together"),
        ("a.npz", actor(**{"action_net.bias": np.full(2, np.nan, np.float32)}), "finite"),
        ("a.txt", b"", "a network is a .npz, .zip, .pth or .pt file"),
    ],
)
def test_files_that_are_no_policy(name: str, content: bytes | dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(EfhorizonError, match=message) as failure:
        load_network(write(tmp_path / name, content))
    assert "\n" not in str(failure.value)


def test_zips_without_a_policy(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data", "{}")
    with pytest.raises(InvalidNetworkError, match=r"there is no policy\.pth in it"):
        load_network(tmp_path / "a.zip")
    with pytest.raises(EfhorizonError, match="No such file"):
        load_network(tmp_path / "missing.zip")


def test_observations_that_do_not_fit(tmp_path: Path) -> None:
    flat = load_network(write(tmp_path / "a.npz", actor()))
    with pytest.raises(InvalidNetworkError, match=r"does not take observations of shape \(5,\): a layer has 3 inputs"):
        probabilities(flat, np.zeros((2, 5), np.uint8))
    model("PPO", IMAGES).save(tmp_path / "b.zip")
    images = load_network(tmp_path / "b.zip")
    with pytest.raises(InvalidNetworkError, match="takes images with 3 channels"):
        probabilities(images, np.zeros((2, 64, 64, 4), np.uint8))
    for size in (4, 84):
        with pytest.raises(InvalidNetworkError, match="does not take observations of shape"):
            probabilities(images, np.zeros((2, size, size, 3), np.uint8))
    with pytest.raises(InvalidNetworkError, match="temperature must be a positive number, got 0"):
        load_network(tmp_path / "b.zip", temperature=0.0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones((4, 3)), r"shape \(4, 3\) for 4 observations and 2 actions"),
        (np.full((4, 2), 0.4), "sum to 0.8, not 1"),
        (np.array([[1.5, -0.5]] * 4), "negative"),
        (np.full((4, 2), np.nan), "not finite"),
    ],
)
def test_functions_that_give_no_probabilities(answer: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidNetworkError, match=message):
        probabilities(CallablePolicy(lambda _: answer, 2), np.zeros((4, 3), np.uint8))


def test_the_parameters_are_those_that_train_takes(tmp_path: Path) -> None:
    made = model("PPO", FLAT)
    made.save(tmp_path / "policy.zip")
    found = network_parameters(tmp_path / "policy.zip")
    for name, value in made.policy.state_dict().items():
        np.testing.assert_array_equal(found[name], value.numpy())
