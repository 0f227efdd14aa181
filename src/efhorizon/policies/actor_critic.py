"""The Nature CNN as actor and critic: what it says of images, and steps of gradient descent by Adam.

A minibatch is computed in pieces of fixed size, which need less memory at a time than a whole one and so less of the
processor's time. Pieces are shared out among threads, and their gradients are added in order, so that the sum does not
depend on how many threads there are.

Legend: B batch, M minibatch, A actions, n parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from efhorizon.policies.nature_cnn import MAX_PIXEL, Layers, packed, packed_vector, unpacked
from efhorizon.policies.pretraining_settings import PretrainingSettings

_PIECE = 512  # images, on a CPU
_VECTORS = {"theta": None, "first_moment": "exp_avg", "second_moment": "exp_avg_sq"}  # a state's, and Adam's names

Floats = NDArray[np.float32]
Loss = Callable[[torch.Tensor, slice], torch.Tensor]  # of the outputs for a slice of the minibatch


class ActorCritic:
    """Network and optimiser. Outputs are logits and value, [B, A + 1]."""

    def __init__(self, settings: PretrainingSettings, theta: Floats, device: torch.device, threads: int) -> None:
        self._num_actions, self._device = settings.num_actions, device
        self._is_half = settings.precision == "bfloat16"
        self._master = torch.tensor(packed(theta, self._num_actions), device=device)
        self._adam = torch.optim.Adam([self._master], lr=settings.rate, eps=settings.adam_epsilon, fused=True)
        self._max_gradient_norm = settings.max_gradient_norm
        self._scaled = torch.empty_like(self._master)  # for pixels 0 .. 255: what `_layers` are views of
        self._layers = Layers(self._scaled, self._num_actions)
        self._num_scaled = self._layers.parts[0].numel()
        is_cpu = device.type == "cpu"
        self._piece = _PIECE if is_cpu else settings.minibatch
        self._pool = ThreadPoolExecutor(threads, initializer=begin_thread) if is_cpu else None
        self._refresh()

    def outputs(self, blocks: torch.Tensor) -> Floats:
        """What the network says of images as blocks [B, 15, 15, 48], without gradients."""
        with torch.no_grad():
            found: Floats = self._passed(blocks).cpu().numpy()
        return found

    def improve(self, blocks: torch.Tensor, chosen: torch.Tensor, loss: Loss) -> None:
        """One gradient step on the images `chosen` [M]; `loss` of slices of them is summed."""
        starts = range(0, len(chosen), self._piece)
        pieces = [slice(start, min(start + self._piece, len(chosen))) for start in starts]
        rows = blocks.flatten(1)

        def gradient(piece: slice) -> list[torch.Tensor]:
            seen = rows.index_select(0, chosen[piece]).view(-1, *blocks.shape[1:])
            return self._layers.gradient(loss(self._passed(seen), piece))

        gradients = map(gradient, pieces) if self._pool is None else self._pool.map(gradient, pieces)
        total = packed_vector(_sum(gradients))
        total[: self._num_scaled] /= MAX_PIXEL
        self._master.grad = total
        torch.nn.utils.clip_grad_norm_([self._master], self._max_gradient_norm)
        self._adam.step()
        self._refresh()

    def state(self) -> dict[str, NDArray[Any]]:
        """Parameters and Adam's two moments, each [n] in the order of `Network`, and its count of steps: copies."""
        adam = self._adam.state.get(self._master, {})
        vectors = {
            name: self._master if own is None else adam.get(own, torch.zeros_like(self._master))
            for name, own in _VECTORS.items()
        }
        found = {name: unpacked(vector.detach().cpu().numpy(), self._num_actions) for name, vector in vectors.items()}
        return {**found, "adam_steps": np.array(float(adam.get("step", 0.0)), np.float32)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        found = {
            name: torch.tensor(packed(state[name].astype(np.float32), self._num_actions), device=self._device)
            for name in _VECTORS
        }
        self._master.copy_(found["theta"])
        moments = {own: found[name] for name, own in _VECTORS.items() if own is not None}
        steps = torch.tensor(float(state["adam_steps"]), device=self._device)
        self._adam.state[self._master] = {"step": steps, **moments}
        self._refresh()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _refresh(self) -> None:
        """The parameters changed."""
        self._scaled.copy_(self._master)
        self._scaled[: self._num_scaled] /= MAX_PIXEL

    def _passed(self, blocks: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._is_half):
            return self._layers.outputs(blocks.to(self._device)).float()


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
