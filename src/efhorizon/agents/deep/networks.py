"""The networks of Stable-Baselines3: same shapes and initialisation.

    flat observations   PPO: two MLPs, 64-64, one for the policy and one for the value; DQN: one MLP, 64-64
    images              Nature CNN (32 8x8/4, 64 4x4/2, 64 3x3/1, 512), then linear heads
                        PPO shares it between policy and value

`flat` computes the first kind, `images` the second.

The parameters of a network are one vector `theta` [n], so that Adam is one loop over it; `Network.unpacked` gives the
arrays by name. A weight of the first flat layer stands for as many columns as its multiplicity says (see
`observations`): it is their sum, so it moves by that many times their common update.

Legend: B batch, G columns, A actions, H hidden units, n parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.observations import FlatColumns, ObservedTable

HIDDEN = 64  # units of both hidden layers, SB3's default
CNN_FEATURES = 512
CNN_LAYERS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # filters, size, stride
HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN = math.sqrt(2), 0.01, 1.0  # of SB3's orthogonal initialisation
BETA_1, BETA_2 = 0.9, 0.999  # torch's Adam


@dataclass(frozen=True)
class Network:
    """What maps observations to outputs: `actor_critic` gives logits and a value, `q` the values of actions."""

    kind: Literal["actor_critic", "q"]
    num_actions: int
    flat: FlatColumns | None
    image_shape: tuple[int, int, int] | None  # [H, W, C]

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parameters by name, in the order of `theta`."""
        towers = self._towers
        outputs = {"pi": self.num_actions, "vf": 1, "q": self.num_actions}
        shapes: dict[str, tuple[int, ...]] = {}
        if self.flat is not None:
            for tower in towers:
                shapes[f"{tower}.0.w"] = (len(self.flat.multiplicity), HIDDEN)
                shapes[f"{tower}.0.b"] = (HIDDEN,)
                shapes[f"{tower}.1.w"] = (HIDDEN, HIDDEN)
                shapes[f"{tower}.1.b"] = (HIDDEN,)
        for name, shape in self._cnn_shapes().items():
            shapes[f"{name}.w"], shapes[f"{name}.b"] = shape, shape[-1:]
        features = HIDDEN if self.flat is not None else CNN_FEATURES
        for tower in towers:
            shapes[f"{tower}.out.w"] = (features, outputs[tower])
            shapes[f"{tower}.out.b"] = (outputs[tower],)
        return shapes

    @cached_property
    def multiplicity(self) -> NDArray[np.float32]:
        """How many parameters of the full network each of `theta` stands for, [n]."""
        parts = []
        for name, shape in self.shapes.items():
            count = np.ones(shape, np.float32)
            if self.flat is not None and name.endswith(".0.w"):
                count *= self.flat.multiplicity[:, None]
            parts.append(count.ravel())
        return np.concatenate(parts)

    def unpacked(self, theta: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        parameters, start = {}, 0
        for name, shape in self.shapes.items():
            stop = start + math.prod(shape)
            parameters[name] = theta[start:stop].reshape(shape)
            start = stop
        return parameters

    def initial(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Fresh parameters `theta` [n], as Stable-Baselines3 draws it: orthogonal for PPO, torch's own for DQN."""
        parameters: dict[str, NDArray[Any]] = {}
        for name, shape in self.shapes.items():
            is_merged = self.flat is not None and name.endswith(".0.w")
            full = (self.flat.width, HIDDEN) if is_merged and self.flat is not None else shape
            if self.kind == "q":
                limit = self._fan_in(name) ** -0.5
                drawn = rng.uniform(-limit, limit, full)
            elif name.endswith(".b"):
                drawn = np.zeros(shape)
            else:
                gain = {"pi.out.w": POLICY_GAIN, "vf.out.w": VALUE_GAIN}.get(name, HIDDEN_GAIN)
                drawn = gain * _orthogonal(rng, (math.prod(full[:-1]), full[-1])).reshape(full)
            parameters[name] = self._merged_rows(drawn) if is_merged else drawn
        return self._flattened(parameters)

    def from_torch(self, state: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """`theta` from the state dictionary of a Stable-Baselines3 policy, as numpy arrays."""
        parameters: dict[str, Any] = {}
        for name, shape in self.shapes.items():
            layer, part = name.rsplit(".", 1)
            array = np.asarray(state[self._torch_name(name)], np.float32)
            if part == "w" and array.ndim == 4:  # OIHW to HWIO
                array = array.transpose(2, 3, 1, 0)
            elif layer == "linear" and part == "w":  # torch flattens CHW, we HWC
                height, width, channels = self._cnn_output()
                array = array.reshape(-1, channels, height, width).transpose(2, 3, 1, 0).reshape(shape)
            elif part == "w":
                array = array.T
                if self.flat is not None and layer.endswith(".0"):
                    array = self._merged_rows(array)
            parameters[name] = array.reshape(shape)
        return self._flattened(parameters)

    @property
    def torch_shapes(self) -> dict[str, tuple[int, ...]]:
        """What `from_torch` reads, by name: torch has outputs first, inputs last, and merges no columns."""
        shapes = {self._torch_name(name): shape[::-1] for name, shape in self.shapes.items()}
        if self.flat is not None:
            for tower in self._towers:
                shapes[self._torch_name(f"{tower}.0.w")] = (HIDDEN, self.flat.width)
        return shapes

    @property
    def _towers(self) -> tuple[str, ...]:
        return ("pi", "vf") if self.kind == "actor_critic" else ("q",)

    def _flattened(self, parameters: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        flattened: NDArray[Any] = np.concatenate([parameters[name].ravel() for name in self.shapes])
        return flattened.astype(np.float32)

    def _merged_rows(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Weights [D, H] of all columns, summed within each group: [G, H]."""
        assert self.flat is not None
        used = self.flat.groups >= 0
        total = np.zeros((len(self.flat.multiplicity), weights.shape[1]))
        np.add.at(total, self.flat.groups[used], weights[used])
        return total

    def _cnn_shapes(self) -> dict[str, tuple[int, ...]]:
        if self.image_shape is None:
            return {}
        shapes: dict[str, tuple[int, ...]] = {}
        channels = self.image_shape[2]
        for number, (filters, size, _) in enumerate(CNN_LAYERS):
            shapes[f"cnn.{number}"] = (size, size, channels, filters)
            channels = filters
        shapes["linear"] = (math.prod(self._cnn_output()), CNN_FEATURES)
        return shapes

    def _cnn_output(self) -> tuple[int, int, int]:
        assert self.image_shape is not None
        height, width, channels = self.image_shape
        for filters, size, stride in CNN_LAYERS:
            height, width, channels = (height - size) // stride + 1, (width - size) // stride + 1, filters
        return height, width, channels

    def _fan_in(self, name: str) -> int:
        layer = name.rsplit(".", 1)[0]
        if self.flat is not None and layer.endswith(".0"):
            return self.flat.width
        return math.prod(self.shapes[f"{layer}.w"][:-1])

    def _torch_name(self, name: str) -> str:
        """Stable-Baselines3's name of a parameter."""
        layer, part = name.rsplit(".", 1)
        return f"{self._torch_layer(layer)}.{'weight' if part == 'w' else 'bias'}"

    def _torch_layer(self, layer: str) -> str:
        prefix = "" if self.kind == "actor_critic" else "q_net."
        tower, _, position = layer.partition(".")
        if tower == "cnn":
            return f"{prefix}features_extractor.cnn.{2 * int(position)}"
        if tower == "linear":
            return f"{prefix}features_extractor.linear.0"
        if tower == "q":
            return f"q_net.q_net.{(0 if self.flat is None else 4) if position == 'out' else 2 * int(position)}"
        if position == "out":
            return {"pi": "action_net", "vf": "value_net"}[tower]
        return f"mlp_extractor.{'policy' if tower == 'pi' else 'value'}_net.{2 * int(position)}"


def network_for(kind: Literal["actor_critic", "q"], table: ObservedTable) -> Network:
    """The network that Stable-Baselines3 would make for these observations."""
    if isinstance(table.seen, FlatColumns):
        return Network(kind, table.num_actions, table.seen, None)
    height, width, channels = table.seen.frames.shape[1:]
    return Network(kind, table.num_actions, None, (height, width, channels * table.seen.stacks.shape[1]))


def first_parameters(
    network: Network, seeds: Sequence[int], initial: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Where each seed starts [B, n]: at its own random parameters, or at those given."""
    drawn = [network.initial(np.random.default_rng(seed)) if initial is None else initial for seed in seeds]
    return np.stack(drawn).astype(np.float32)


def _orthogonal(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """A random matrix [inputs, outputs] with orthonormal rows or columns, as torch's orthogonal_ draws it."""
    q, r = np.linalg.qr(rng.standard_normal((max(shape), min(shape))))
    q *= np.sign(np.diagonal(r))
    return q if shape[0] >= shape[1] else q.T
