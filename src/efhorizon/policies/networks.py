"""Policies as functions: from observations to probabilities of actions.

A policy network takes what the live environment shows, as uint8: images [B, H, W, C] (with frame stacks the frames are
channels, oldest first) or flat vectors [B, D]. It comes from

    F.npz        arrays named as in Stable-Baselines3's state dictionary
    F.zip        a file that Stable-Baselines3 saved; only its policy.pth is read
    F.pth, F.pt  a state dictionary that torch saved

or is any Python callable. Files of torch are read with its safe loader: nothing is ever unpickled.

The arrays say what the network is: the CNN and MLPs of Stable-Baselines3 with any number of units, an actor (PPO, A2C,
behaviour cloning) or action values (DQN), whose softmax with a temperature is the policy.

Legend: B batch, H x W x C an image, D numbers of a flat observation, A actions.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.agents.deep.networks import CNN_LAYERS
from efhorizon.agents.deep.pretrained import load_parameters
from efhorizon.errors import EfhorizonError
from efhorizon.io.files import read_bytes
from efhorizon.io.npy import first_line
from efhorizon.suites.simulator import MissingExtraError

_MAX_BYTES = 1 << 30  # of a file with parameters; a Nature CNN has 7 MB
_SUM_TOLERANCE = 1e-5  # of probabilities in float32
_BATCH = 256  # observations of one pass: a limit on memory
_IMAGE_AXES = 4  # [B, H, W, C]


class InvalidNetworkError(EfhorizonError, ValueError):
    """A file that holds no policy, or a network that does not fit; the message is one line for the user."""


class PolicyNetwork(Protocol):
    """What a policy says of observations: [B, ...] uint8 in, probabilities [B, A] out."""

    @property
    def num_actions(self) -> int: ...

    def __call__(self, observations: NDArray[np.uint8], /) -> NDArray[Any]: ...


def load_network(path: str | Path, *, temperature: float = 1.0) -> PolicyNetwork:
    """The policy in a file. `temperature` divides action values (DQN) before the softmax."""
    return TorchPolicy(network_parameters(path), name=str(path), temperature=temperature)


def network_parameters(path: str | Path) -> dict[str, NDArray[np.float32]]:
    """The parameters in a file, by Stable-Baselines3's names."""
    path = Path(path)
    if path.suffix == ".npz":
        return load_parameters(path)
    if path.suffix == ".zip":
        return _state_dictionary(path, _policy_in_zip(path))
    if path.suffix in (".pth", ".pt"):
        return _state_dictionary(path, read_bytes(path, "a state dictionary", _MAX_BYTES))
    raise InvalidNetworkError(f"{path}: a network is a .npz, .zip, .pth or .pt file")


def probabilities(network: PolicyNetwork, observations: NDArray[np.uint8]) -> NDArray[np.float64]:
    """What a network says of many observations, [U, A], in batches; refuses what are no probabilities."""
    parts = [observations[start : start + _BATCH] for start in range(0, len(observations), _BATCH)]
    found = np.concatenate([_checked(network(part), len(part)) for part in parts])
    normalised: NDArray[np.float64] = found / found.sum(axis=1, keepdims=True)
    return normalised


class CallablePolicy:
    """A Python function from observations [B, ...] to probabilities [B, A]."""

    def __init__(self, function: Callable[[NDArray[np.uint8]], ArrayLike], num_actions: int) -> None:
        self._function, self.num_actions = function, num_actions

    def __call__(self, observations: NDArray[np.uint8], /) -> NDArray[Any]:
        found = np.asarray(self._function(observations))
        if found.shape != (len(observations), self.num_actions):
            raise InvalidNetworkError(
                f"the policy gives an array of shape {found.shape} for {len(observations)} observations and "
                f"{self.num_actions} actions"
            )
        return found


class TorchPolicy:
    """A network of Stable-Baselines3, from its parameters alone."""

    def __init__(
        self,
        parameters: Mapping[str, NDArray[Any]],
        *,
        name: str = "the network",
        temperature: float = 1.0,
    ) -> None:
        if not (math.isfinite(temperature) and temperature > 0):
            raise InvalidNetworkError(f"the temperature must be a positive number, got {temperature}")
        self._torch = _torch()
        self._name, self._temperature = name, temperature
        self.kind: Literal["actor", "action values"] = "actor" if "action_net.weight" in parameters else "action values"
        prefix = "" if self.kind == "actor" else "q_net."
        tower = "mlp_extractor.policy_net" if self.kind == "actor" else "q_net.q_net"
        self._filters = [
            self._layer(parameters, f"{prefix}features_extractor.cnn.{2 * number}", 4)
            for number in range(len(CNN_LAYERS))
            if f"{prefix}features_extractor.cnn.0.weight" in parameters
        ]
        self._features = self._layer(parameters, f"{prefix}features_extractor.linear.0", 2) if self._filters else None
        hidden = [self._layer(parameters, layer, 2) for layer in _layers(parameters, tower)]
        self._hidden = hidden if self.kind == "actor" else hidden[:-1]
        if self.kind == "actor":
            self._output = self._layer(parameters, "action_net", 2)
        elif hidden:
            self._output = hidden[-1]
        else:
            known = ", ".join(list(parameters)[:3]) or "nothing"
            raise InvalidNetworkError(
                f"{name}: no policy in it: neither action_net nor q_net of Stable-Baselines3 (it has {known})"
            )
        # Stable-Baselines3's activations: tanh in the MLP of an actor, else ReLU
        self._activation = self._torch.tanh if self.kind == "actor" else self._torch.relu
        self.num_actions = int(self._output[0].shape[0])

    def __call__(self, observations: NDArray[np.uint8], /) -> NDArray[Any]:
        torch = self._torch
        with torch.no_grad():
            preferences = self._preferences(torch.from_numpy(np.ascontiguousarray(observations)))
            if self.kind == "action values":
                preferences = preferences / self._temperature
            found: NDArray[Any] = torch.softmax(preferences.to(torch.float64), dim=1).numpy()
        return found

    def _preferences(self, observations: Any) -> Any:
        functional = self._torch.nn.functional
        if self._filters:
            channels = int(self._filters[0][0].shape[1])
            if observations.ndim != _IMAGE_AXES or observations.shape[3] != channels:
                raise InvalidNetworkError(
                    f"{self._name}: the network takes images with {channels} channels, not observations of shape "
                    f"{tuple(observations.shape[1:])}"
                )
            hidden = observations.permute(0, 3, 1, 2).contiguous().to(self._torch.float32) / 255.0
            for (weights, bias), (_, _, stride) in zip(self._filters, CNN_LAYERS, strict=True):
                if min(hidden.shape[2:]) < weights.shape[2]:
                    break  # an image too small for the filters: the next check says so
                hidden = functional.relu(functional.conv2d(hidden, weights, bias, stride))
            hidden = hidden.flatten(1)
            assert self._features is not None
            self._check_width(hidden, self._features, observations)
            hidden = functional.relu(functional.linear(hidden, *self._features))
        else:
            hidden = observations.to(self._torch.float32).flatten(1)
        for layer in (*self._hidden, self._output):
            self._check_width(hidden, layer, observations)
            hidden = functional.linear(hidden, *layer)
            hidden = hidden if layer is self._output else self._activation(hidden)
        return hidden

    def _check_width(self, hidden: Any, layer: tuple[Any, Any], observations: Any) -> None:
        if hidden.shape[1] != layer[0].shape[1]:
            raise InvalidNetworkError(
                f"{self._name}: the network does not take observations of shape {tuple(observations.shape[1:])}: "
                f"a layer has {layer[0].shape[1]} inputs, and they give {hidden.shape[1]}"
            )

    def _layer(self, parameters: Mapping[str, NDArray[Any]], layer: str, axes: int) -> tuple[Any, Any]:
        found = []
        for part, ndim in (("weight", axes), ("bias", 1)):
            array = parameters.get(f"{layer}.{part}")
            if array is None or array.ndim != ndim or not array.size:
                shape = "missing" if array is None else f"of shape {array.shape}"
                raise InvalidNetworkError(f"{self._name}: {layer}.{part} is {shape}")
            found.append(self._torch.from_numpy(np.array(array, np.float32)))
        if found[0].shape[0] != found[1].shape[0]:
            raise InvalidNetworkError(f"{self._name}: weight and bias of {layer} do not go together")
        return found[0], found[1]


def _layers(parameters: Mapping[str, Any], tower: str) -> list[str]:
    """The linear layers of a tower, in order."""
    found = [re.fullmatch(re.escape(tower) + r"\.(\d{1,3})\.weight", name) for name in parameters]
    return [f"{tower}.{number}" for number in sorted(int(match[1]) for match in found if match)]


def _checked(found: NDArray[Any], count: int) -> NDArray[np.float64]:
    array = np.asarray(found, np.float64)
    if array.ndim != 2 or len(array) != count:
        raise InvalidNetworkError(f"the policy gives an array of shape {array.shape} for {count} observations")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InvalidNetworkError("the policy gives probabilities that are negative or not finite")
    sums = array.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > _SUM_TOLERANCE:
        raise InvalidNetworkError(f"the policy gives probabilities that sum to {sums[worst]:.6g}, not 1")
    return array


def _policy_in_zip(path: Path) -> bytes:
    """The state dictionary in a file of Stable-Baselines3."""
    content = read_bytes(path, "a file of Stable-Baselines3", _MAX_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if "policy.pth" not in archive.namelist():
                raise InvalidNetworkError(f"{path}: no policy of Stable-Baselines3: there is no policy.pth in it")
            info = archive.getinfo("policy.pth")
            if info.file_size > _MAX_BYTES:
                raise InvalidNetworkError(f"{path}: policy.pth has {info.file_size:,} bytes, at most {_MAX_BYTES:,}")
            with archive.open(info) as file:
                return file.read(info.file_size + 1)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError) as error:
        raise InvalidNetworkError(f"{path}: not a file of Stable-Baselines3 ({first_line(error)})") from None


def _state_dictionary(path: Path, content: bytes) -> dict[str, NDArray[np.float32]]:
    """What torch saved, read by its safe loader."""
    torch = _torch()
    try:
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever is wrong with a file, torch says it with another exception
        reason = first_line(error)
        raise InvalidNetworkError(f"{path}: not a state dictionary that is safe to read ({reason})") from None
    if isinstance(loaded, dict) and isinstance(loaded.get("state_dict"), dict):
        loaded = loaded["state_dict"]
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in loaded.items()
    ):
        raise InvalidNetworkError(f"{path}: not a state dictionary: it holds {type(loaded).__name__}")
    arrays = {
        name: value.detach().to(torch.float32).numpy() for name, value in loaded.items() if value.is_floating_point()
    }
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InvalidNetworkError(f"{path}: the parameters {name} are not finite")
    return arrays


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("train", "torch") from None
    return torch
