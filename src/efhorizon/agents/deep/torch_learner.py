"""A network of `torch_layers` with its optimiser: what it says of observations, and steps of gradient descent by Adam.

A minibatch is computed in pieces of fixed size, which need less memory at a time than a whole one and so less of the
processor's time. Pieces are shared out among threads, and their gradients are added in order, so that the sum does not
depend on how many threads there are.

Legend: B batch, M minibatch, O outputs, n parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from efhorizon.agents.deep.networks import Network
from efhorizon.agents.deep.torch_layers import MAX_PIXEL, Layers, Packing, packed_vector

_VECTORS = {"theta": None, "first_moment": "exp_avg", "second_moment": "exp_avg_sq"}  # a state's, and Adam's names

Floats = NDArray[np.float32]
Loss = Callable[[torch.Tensor, slice], torch.Tensor]  # of the outputs for a slice of the minibatch


@dataclass(frozen=True)
class Optimiser:
    """How a network learns."""

    rate: float
    adam_epsilon: float
    max_gradient_norm: float
    piece: int  # samples that are passed at once
    is_half: bool = False  # whether layers compute in bfloat16


class TorchLearner:
    """Network and optimiser."""

    def __init__(
        self, network: Network, optimiser: Optimiser, theta: Floats, device: torch.device, threads: int
    ) -> None:
        self.packing, self._device, self._optimiser = Packing(network), device, optimiser
        self._master = torch.tensor(self.packing.packed(theta), device=device)
        self._adam = torch.optim.Adam([self._master], lr=optimiser.rate, eps=optimiser.adam_epsilon, fused=True)
        self._scaled = torch.empty_like(self._master)  # for pixels 0 .. 255: what `_layers` are views of
        self._layers = Layers(self._scaled, self.packing)
        self._num_scaled = self.packing.num_scaled
        self._pool = ThreadPoolExecutor(threads, initializer=begin_thread) if device.type == "cpu" else None
        self._refresh()

    def outputs(self, observations: torch.Tensor) -> Floats:
        """What the network says of prepared observations [B, ...], without gradients."""
        with torch.no_grad():
            found: Floats = self._passed(observations).cpu().numpy()
        return found

    def improve(self, observations: torch.Tensor, chosen: torch.Tensor, loss: Loss) -> None:
        """One gradient step on the observations `chosen` [M]; `loss` of slices of them is summed."""
        starts = range(0, len(chosen), self._optimiser.piece)
        pieces = [slice(start, min(start + self._optimiser.piece, len(chosen))) for start in starts]
        rows = observations.flatten(1)

        def gradient(piece: slice) -> list[torch.Tensor]:
            seen = rows.index_select(0, chosen[piece]).view(-1, *observations.shape[1:])
            return self._layers.gradient(loss(self._passed(seen), piece))

        is_shared = self._pool is not None and len(pieces) > 1
        gradients = self._pool.map(gradient, pieces) if is_shared and self._pool else map(gradient, pieces)
        total = packed_vector(_sum(gradients))
        total[: self._num_scaled] /= MAX_PIXEL
        self._master.grad = total
        torch.nn.utils.clip_grad_norm_([self._master], self._optimiser.max_gradient_norm)
        self._adam.step()
        self._refresh()

    def theta(self) -> Floats:
        """The parameters [n]: a copy."""
        return self.packing.unpacked(self._master.detach().cpu().numpy())

    def state(self) -> dict[str, NDArray[Any]]:
        """Parameters and Adam's two moments, each [n] in the order of `Network`, and its count of steps: copies."""
        adam = self._adam.state.get(self._master, {})
        vectors = {
            name: self._master if own is None else adam.get(own, torch.zeros_like(self._master))
            for name, own in _VECTORS.items()
        }
        found = {name: self.packing.unpacked(vector.detach().cpu().numpy()) for name, vector in vectors.items()}
        return {**found, "adam_steps": np.array(float(adam.get("step", 0.0)), np.float32)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        found = {
            name: torch.tensor(self.packing.packed(state[name].astype(np.float32)), device=self._device)
            for name in _VECTORS
        }
        self._master.copy_(found["theta"])
        moments = {own: found[name] for name, own in _VECTORS.items() if own is not None}
        steps = torch.tensor(float(state["adam_steps"]), device=self._device)
        self._adam.state[self._master] = {"step": steps, **moments}
        self._refresh()

    def frozen(self) -> Frozen:
        """A copy of the network that stays as it is now."""
        return Frozen(self._scaled.clone(), self.packing, self._device)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _refresh(self) -> None:
        """The parameters changed."""
        self._scaled.copy_(self._master)
        self._scaled[: self._num_scaled] /= MAX_PIXEL

    def _passed(self, observations: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._optimiser.is_half):
            return self._layers.outputs(observations.to(self._device)).float()


class Frozen:
    """A network without an optimiser."""

    def __init__(self, scaled: torch.Tensor, packing: Packing, device: torch.device) -> None:
        self._scaled, self._packing, self._device = scaled, packing, device
        self._layers = Layers(scaled, packing)

    def outputs(self, observations: torch.Tensor) -> Floats:
        with torch.no_grad():
            found: Floats = self._layers.outputs(observations.to(self._device)).cpu().numpy()
        return found

    def theta(self) -> Floats:
        """The parameters [n]: a copy. Dividing by 255 and multiplying again may round, so they are kept as they are."""
        return self._packing.unpacked(self._scaled.cpu().numpy())

    @classmethod
    def restored(cls, theta: Floats, packing: Packing, device: torch.device) -> Frozen:
        """From what `theta` returned."""
        return cls(torch.tensor(packing.packed(theta.astype(np.float32)), device=device), packing, device)


def _sum(gradients: Iterator[list[torch.Tensor]]) -> list[torch.Tensor]:
    """The sum of gradients by part, which is the first of them afterwards."""
    total = next(gradients)
    for more in gradients:
        for own, part in zip(total, more, strict=True):
            own.add_(part)
    return total


def begin_thread() -> None:
    """Denormal numbers count as 0: moments of weights that have long had no gradient would slow Adam down."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
