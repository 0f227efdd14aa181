"""The Nature CNN on the images of a table, in torch: what PPO and DQN share.

Many samples of a minibatch show the same image, so each distinct one is evaluated once; under fixed parameters, once
for as long as these last.

Legend: B batch, U observations, K frames of a stack, A actions, n parameters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.networks import CNN_LAYERS, network_for
from efhorizon.agents.deep.observations import ImageStacks, ObservedTable
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.io.machine import num_cores

_IMAGES_A_PASS = 256  # a limit on memory: a pass of 256 images needs some 100 MB

Learner = TypeVar("Learner")
Result = TypeVar("Result")
Numbers = NDArray[Any]  # of observations: int32 or int64


class Images:
    """All that can be seen in a table."""

    def __init__(self, table: ObservedTable) -> None:
        seen = table.seen
        assert isinstance(seen, ImageStacks)
        assert not table.bootstraps_at_horizon  # `observed_table` refuses images with such a horizon
        self._frames = torch.from_numpy(np.ascontiguousarray(np.moveaxis(seen.frames, 3, 1)))  # [F, C, H, W]
        self._stacks = torch.from_numpy(seen.stacks.astype(np.int64))  # [U, K]

    def __len__(self) -> int:
        return len(self._stacks)

    def shown(self, observation: Numbers) -> torch.Tensor:
        """Images of observation numbers [B], as the network takes them: in [0, 1], [B, K * C, H, W]."""
        stacked = self._frames[self._stacks[torch.from_numpy(observation)]].flatten(1, 2)
        return stacked.to(torch.float32, memory_format=torch.channels_last) / 255.0


class ImageNetwork:
    """The network of one seed and its optimiser: torch's clip_grad_norm_ and Adam.

    Outputs are one array: the logits and the value [B, A + 1] of an actor and critic, or action values [B, A].
    """

    def __init__(
        self,
        table: ObservedTable,
        images: Images,
        kind: Literal["actor_critic", "q"],
        theta: NDArray[np.float32],  # [n], see `networks`
        settings: PPOSettings | DQNSettings,
    ) -> None:
        self.images = images
        self._heads = ("pi", "vf") if kind == "actor_critic" else ("q",)
        self.parameters = {name: _leaf(array) for name, array in network_for(kind, table).unpacked(theta).items()}
        self._adam = torch.optim.Adam(self.parameters.values(), lr=settings.rate, eps=settings.adam_epsilon, fused=True)
        self._max_gradient_norm = settings.max_gradient_norm

    def outputs(self, observation: Numbers) -> torch.Tensor:
        """What the network says of observation numbers [B]."""
        distinct, place = np.unique(observation, return_inverse=True)
        return self._passed(self.images.shown(distinct))[torch.from_numpy(place)]

    def values(self, observation: Numbers) -> NDArray[np.float32]:
        """The same without gradients, in several passes if there are many."""
        passes = [observation[begun : begun + _IMAGES_A_PASS] for begun in range(0, len(observation), _IMAGES_A_PASS)]
        with torch.no_grad():
            return np.concatenate([self._passed(self.images.shown(part)).numpy() for part in passes])

    def improve(self, loss: torch.Tensor) -> None:
        """One gradient step."""
        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self._max_gradient_norm)
        self._adam.step()

    def frozen(self) -> ImageNetwork:
        """A copy that stays as it is now."""
        frozen = copy.copy(self)
        frozen.parameters = {name: tensor.detach().clone() for name, tensor in self.parameters.items()}
        return frozen

    def theta(self) -> NDArray[np.float32]:
        """The parameters as one vector [n], in the order of `networks.Network`."""
        parts = [tensor.detach() for tensor in self.parameters.values()]
        arrays = [(part.permute(2, 3, 1, 0) if part.ndim == 4 else part).numpy().ravel() for part in parts]
        return np.concatenate(arrays)

    def _passed(self, images: torch.Tensor) -> torch.Tensor:
        parameters, hidden = self.parameters, images
        for number, (_, _, stride) in enumerate(CNN_LAYERS):
            weights, bias = parameters[f"cnn.{number}.w"], parameters[f"cnn.{number}.b"]
            hidden = functional.relu(functional.conv2d(hidden, weights, bias, stride))
        flat = hidden.permute(0, 2, 3, 1).flatten(1)  # as it lies in memory
        features = functional.relu(flat @ parameters["linear.w"] + parameters["linear.b"])
        heads = [features @ parameters[f"{head}.out.w"] + parameters[f"{head}.out.b"] for head in self._heads]
        return torch.cat(heads, dim=1)


class Remembered:
    """Outputs under parameters that do not change meanwhile: each observation is evaluated when it is first met."""

    def __init__(self, network: ImageNetwork) -> None:
        self._network = network
        self._is_known = np.zeros(len(network.images), np.bool_)
        self._known: NDArray[np.float32] | None = None  # [U, A + 1] or [U, A]

    def __call__(self, observation: Numbers) -> NDArray[np.float32]:
        """Outputs for observation numbers [B]."""
        unknown = np.unique(observation[~self._is_known[observation]])
        if len(unknown):
            if len(self._is_known) <= _IMAGES_A_PASS:  # one pass over all costs little more than over some
                unknown = np.arange(len(self._is_known))
            found = self._network.values(unknown)
            if self._known is None:
                self._known = np.empty((len(self._is_known), found.shape[1]), np.float32)
            self._known[unknown], self._is_known[unknown] = found, True
        assert self._known is not None
        rows: NDArray[np.float32] = self._known[observation]
        return rows


def greedy_return(table: ObservedTable, preferences: Callable[[Numbers], NDArray[np.float32]]) -> int:
    """The return, in units, of the episode that takes the action with the largest preference in each state."""
    node, units = 0, 0
    for _ in range(table.horizon):
        action = int(preferences(table.observation[[node]])[0].argmax())
        units += int(table.reward_units[node, action])
        node = int(table.transitions[node, action])
        if node < 0:
            break
    return units


def each(learners: Sequence[Learner], work: Callable[[Learner], Result]) -> list[Result]:
    """`work` on the learner of each seed. Each seed is computed by one thread, however many cores there are:
    threads that share small matrices mostly wait for each other, and would round sums in another order.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(min(len(learners), num_cores()), initializer=_flush_denormals) as pool:
            return list(pool.map(work, learners))
    finally:
        torch.set_num_threads(before)


def _flush_denormals() -> None:
    """Take denormal numbers as 0: moments of weights that have long had no gradient would slow Adam down."""
    torch.set_flush_denormal(True)


def _leaf(array: NDArray[np.float32]) -> torch.Tensor:
    """A parameter as torch takes it; filters [size, size, C, filters] become [filters, C, size, size]."""
    tensor = torch.tensor(np.ascontiguousarray(array))
    if tensor.ndim == 4:
        tensor = tensor.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return tensor.requires_grad_()
