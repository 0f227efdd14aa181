"""The Nature CNN as actor and critic, trained on live images: forward passes, gradients in pieces, Adam.

Parameters are one vector `theta` in the order of `networks.Network`. A minibatch is computed in pieces of fixed size
whose gradients are added in order: a piece fits into the processor's cache, pieces are shared out among threads, and
the sum does not depend on how many there are.

Legend: B batch, M minibatch, A actions, n parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.networks import CNN_LAYERS, Network
from efhorizon.policies.pretraining_settings import PretrainingSettings

IMAGE_SHAPE = (64, 64, 3)  # Procgen's
_PIECE = 256  # images of a gradient's piece
_MAX_PIXEL = 255.0

Floats = NDArray[np.float32]
Loss = Callable[[torch.Tensor, slice], torch.Tensor]  # of the outputs for a slice of the minibatch


class ActorCritic:
    """Network and optimiser. Outputs are logits and value, [B, A + 1]."""

    def __init__(self, settings: PretrainingSettings, theta: Floats, device: torch.device, threads: int) -> None:
        self.network = network(settings.num_actions)
        self._device, self._is_cpu = device, device.type == "cpu"
        self._theta = torch.tensor(theta, device=device)
        self._adam = torch.optim.Adam([self._theta], lr=settings.rate, eps=settings.adam_epsilon, fused=True)
        self._max_gradient_norm = settings.max_gradient_norm
        self._leaves = {
            name: self._theta[place].view(shape).requires_grad_()
            for (name, shape), place in zip(self.network.shapes.items(), _places(self.network), strict=True)
        }
        self._is_half = settings.precision == "bfloat16"
        self._pool = ThreadPoolExecutor(threads, initializer=_begin_thread) if threads > 1 and self._is_cpu else None

    def outputs(self, images: torch.Tensor) -> Floats:
        """What the network says of images [B, 64, 64, 3], without gradients."""
        with torch.no_grad():
            found: Floats = self._passed(images.to(self._device)).cpu().numpy()
        return found

    def improve(self, images: torch.Tensor, chosen: torch.Tensor, loss: Loss) -> None:
        """One gradient step on the images `chosen` [M]; `loss` of slices of them is summed."""
        size = _PIECE if self._is_cpu else len(chosen)
        pieces = [slice(begin, min(begin + size, len(chosen))) for begin in range(0, len(chosen), size)]

        def gradient(piece: slice) -> torch.Tensor:
            outputs = self._passed(images[chosen[piece]].to(self._device))
            found = torch.autograd.grad(loss(outputs, piece), list(self._leaves.values()))
            return torch.cat([part.reshape(-1) for part in found])

        gradients = self._pool.map(gradient, pieces) if self._pool else map(gradient, pieces)
        total = next(iter(gradients))
        for part in gradients:
            total += part
        self._theta.grad = total
        torch.nn.utils.clip_grad_norm_([self._theta], self._max_gradient_norm)
        self._adam.step()

    def state(self) -> dict[str, NDArray[np.float32]]:
        """Parameters, Adam's two moments, each [n], and its count of steps: copies."""
        adam = self._adam.state.get(self._theta, {})
        zeros = torch.zeros_like(self._theta)
        tensors = {
            "theta": self._theta,
            "first_moment": adam.get("exp_avg", zeros),
            "second_moment": adam.get("exp_avg_sq", zeros),
            "adam_steps": adam.get("step", torch.zeros(())),
        }
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}

    def restore(self, state: dict[str, NDArray[np.float32]]) -> None:
        """Go on from what `state` returned."""
        tensors = {name: torch.tensor(state[name], device=self._device) for name in self.state()}
        self._theta.copy_(tensors["theta"])
        self._adam.state[self._theta] = {
            "step": tensors["adam_steps"].to(torch.float32),
            "exp_avg": tensors["first_moment"],
            "exp_avg_sq": tensors["second_moment"],
        }

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _passed(self, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._is_half):
            hidden = images.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
            for number, (_, _, stride) in enumerate(CNN_LAYERS):
                weights, bias = self._leaves[f"cnn.{number}.w"], self._leaves[f"cnn.{number}.b"]
                filters = (weights / _MAX_PIXEL if number == 0 else weights).permute(3, 2, 0, 1)
                hidden = functional.relu(functional.conv2d(hidden, filters, bias, stride))
            flat = hidden.permute(0, 2, 3, 1).flatten(1)
            features = functional.relu(flat @ self._leaves["linear.w"] + self._leaves["linear.b"])
            heads = [features @ self._leaves[f"{head}.out.w"] + self._leaves[f"{head}.out.b"] for head in ("pi", "vf")]
        return torch.cat(heads, dim=1).float()


def network(num_actions: int) -> Network:
    """The network of Procgen's tables."""
    return Network("actor_critic", num_actions, None, IMAGE_SHAPE)


def state_dictionary(made: Network, theta: Floats) -> dict[str, Floats]:
    """Parameters under Stable-Baselines3's names and in torch's layout: what `Network.from_torch` reads."""
    state = {}
    named = zip(made.unpacked(theta).items(), made.torch_shapes.items(), strict=True)
    for (name, array), (torch_name, shape) in named:
        if name == "linear.w":  # we flatten HWC, torch CHW
            channels = CNN_LAYERS[-1][0]
            places = round((len(array) // channels) ** 0.5)
            array = array.reshape(places, places, channels, -1).transpose(3, 2, 0, 1).reshape(shape)
        elif array.ndim == 4:  # HWIO to OIHW
            array = array.transpose(3, 2, 0, 1)
        state[torch_name] = np.ascontiguousarray(array.T if array.ndim == 2 and name != "linear.w" else array)
    return state


def _places(made: Network) -> list[slice]:
    """Where each parameter lies in `theta`."""
    ends = np.cumsum([int(np.prod(shape)) for shape in made.shapes.values()]).tolist()
    return [slice(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _begin_thread() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
