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
from efhorizon.agents.deep.torch_layers import MAX_PIXEL, Layers, Packing
from efhorizon.agents.deep.torch_still import Still

_MOMENTS = {"first_moment": "exp_avg", "second_moment": "exp_avg_sq"}  # a state's names, and Adam's
_TINY = 1e-6  # as in torch's clip_grad_norm_

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
        self._layers = Layers(self._master, self.packing)
        self._weights = self._layers.parts.copy()  # by part: what Adam changes
        self._adam = torch.optim.Adam(self._weights, lr=optimiser.rate, eps=optimiser.adam_epsilon, fused=True)
        self._pool = ThreadPoolExecutor(threads, initializer=begin_thread) if device.type == "cpu" else None
        self._refresh()

    def outputs(self, observations: torch.Tensor) -> Floats:
        """What the network says of prepared observations [B, ...], without gradients."""
        with torch.inference_mode():
            found: Floats = self._passed(observations).cpu().numpy()
        return found

    def improve(self, observations: torch.Tensor, chosen: torch.Tensor, loss: Loss, still: Still | None = None) -> None:
        """One gradient step on the observations `chosen` [M]; `loss` of slices of them is summed.

        `still` is what `still` said of the observations, if it was asked.
        """
        starts = range(0, len(chosen), self._optimiser.piece)
        pieces = [slice(start, min(start + self._optimiser.piece, len(chosen))) for start in starts]
        rows = observations.flatten(1)

        def gradient(piece: slice) -> list[torch.Tensor]:
            seen = rows.index_select(0, chosen[piece]).view(-1, *observations.shape[1:])
            return self._layers.gradient(loss(self._passed(seen, still), piece))

        is_shared = self._pool is not None and len(pieces) > 1
        gradients = self._pool.map(gradient, pieces) if is_shared and self._pool else map(gradient, pieces)
        total = _sum(gradients)
        if self.packing.num_scaled:
            total[0] /= MAX_PIXEL
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(total)))
        if norm > self._optimiser.max_gradient_norm:
            torch._foreach_mul_(total, self._optimiser.max_gradient_norm / (norm + _TINY))
        for weights, own in zip(self._weights, total, strict=True):
            weights.grad = own
        self._adam.step()
        self._refresh()

    def still(self, observations: torch.Tensor) -> Still | None:
        """A picture from which these observations differ little, with which `improve` is faster; None: do without."""
        is_plain = self._device.type == "cpu" and not self._optimiser.is_half
        return self.packing.still(observations) if is_plain else None

    def theta(self) -> Floats:
        """The parameters [n]: a copy."""
        return self.packing.unpacked(self._master.detach().cpu().numpy())

    def state(self) -> dict[str, NDArray[Any]]:
        """Parameters and Adam's two moments, each [n] in the order of `Network`, and its count of steps: copies."""
        adam = [self._adam.state.get(weights, {}) for weights in self._weights]
        found = {name: torch.zeros_like(self._master) for name in _MOMENTS}
        for name, vector in found.items():
            for part, own in zip(Layers(vector, self.packing).parts, adam, strict=True):
                part.data.copy_(own.get(_MOMENTS[name], part.data))
        vectors = {"theta": self._master, **found}
        return {
            **{name: self.packing.unpacked(vector.detach().cpu().numpy()) for name, vector in vectors.items()},
            "adam_steps": np.array(float(adam[0].get("step", 0.0)), np.float32),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        found = {
            name: torch.tensor(self.packing.packed(state[name].astype(np.float32)), device=self._device)
            for name in ("theta", *_MOMENTS)
        }
        self._master.copy_(found["theta"])
        moments = {own: Layers(found[name], self.packing).parts for name, own in _MOMENTS.items()}
        for place, weights in enumerate(self._weights):
            steps = torch.tensor(float(state["adam_steps"]), device=self._device)
            own = {name: parts[place].detach() for name, parts in moments.items()}
            self._adam.state[weights] = {"step": steps, **own}
        self._refresh()

    def frozen(self) -> Frozen:
        """A copy of the network that stays as it is now."""
        return Frozen(self._master.clone(), self.packing, self._device)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _refresh(self) -> None:
        """The parameters changed."""
        if self.packing.num_scaled:
            self._layers.parts[0] = scaled(self._weights[0])

    def _passed(self, observations: torch.Tensor, still: Still | None = None) -> torch.Tensor:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._optimiser.is_half):
            return self._layers.outputs(observations.to(self._device), still).float()


class Frozen:
    """A network without an optimiser."""

    def __init__(self, vector: torch.Tensor, packing: Packing, device: torch.device) -> None:
        self._vector, self._packing, self._device = vector, packing, device
        self._layers = Layers(vector, packing)
        if packing.num_scaled:
            self._layers.parts[0] = scaled(self._layers.parts[0])

    def outputs(self, observations: torch.Tensor) -> Floats:
        with torch.inference_mode():
            found: Floats = self._layers.outputs(observations.to(self._device)).cpu().numpy()
        return found

    def theta(self) -> Floats:
        """The parameters [n]: a copy."""
        return self._packing.unpacked(self._vector.cpu().numpy())

    @classmethod
    def restored(cls, theta: Floats, packing: Packing, device: torch.device) -> Frozen:
        """From what `theta` returned."""
        return cls(torch.tensor(packing.packed(theta.astype(np.float32)), device=device), packing, device)


def scaled(filters: torch.Tensor) -> torch.Tensor:
    """The first filters for pixels 0 .. 255, as a leaf."""
    return (filters.detach() / MAX_PIXEL).requires_grad_()


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
