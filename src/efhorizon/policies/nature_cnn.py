"""The Nature CNN on Procgen's images, with its first layer as a convolution of blocks.

The first layer's filters are 8 pixels wide and move by 4. Cut into blocks of 4 x 4 pixels with 48 numbers each, an
image is convolved with filters of 2 x 2 blocks that move by one: the same sums, for which processors have better code
than for images with three channels. The second layer has no use for the last row and column of the first one's outputs,
so the last 4 rows and columns of 64 x 64 pixels are never seen, nor are they in Stable-Baselines3: 15 x 15 blocks
remain.

Parameters are one vector `theta` [n] in the order of `networks.Network`, or packed: the same numbers in the order in
which convolutions take them.

Legend: B images, A actions, n parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.networks import CNN_FEATURES, CNN_LAYERS, Network
from efhorizon.compiled import compiled

IMAGE_SHAPE = (64, 64, 3)  # Procgen's
BLOCKS_SHAPE = (15, 15, 48)
MAX_PIXEL = 255.0
_BLOCK = CNN_LAYERS[0][2]  # pixels

Floats = NDArray[np.float32]


def network(num_actions: int) -> Network:
    """The network of Procgen's tables."""
    return Network("actor_critic", num_actions, None, IMAGE_SHAPE)


@compiled
def cut_into_blocks(images: Any, out: Any) -> None:
    """Images [B, 64, 64, 3] as blocks [B, 15, 15, 48], written to `out`."""
    num_blocks = out.shape[1]
    for which in range(len(images)):
        for row in range(num_blocks * _BLOCK):
            block_row, inner_row = row // _BLOCK, row % _BLOCK
            for column in range(num_blocks * _BLOCK):
                place = 3 * (_BLOCK * inner_row + column % _BLOCK)
                block = out[which, block_row, column // _BLOCK]
                for colour in range(3):
                    block[place + colour] = images[which, row, column, colour]


class Layers:
    """The parameters by layer, each a leaf that is a view of one packed vector [n]."""

    def __init__(self, vector: torch.Tensor, num_actions: int) -> None:
        self._shapes = _layer_shapes(num_actions)
        self.parts: list[torch.Tensor] = []  # weights and bias of each layer
        start = 0
        for shape in self._shapes:
            part = vector[start : start + math.prod(shape)].view(shape)
            self.parts.append((part.permute(0, 3, 1, 2) if part.ndim == 4 else part).detach().requires_grad_())
            start += math.prod(shape)
        assert start == len(vector)

    def outputs(self, blocks: torch.Tensor) -> torch.Tensor:
        """Logits and value [B, A + 1] of images as blocks [B, 15, 15, 48] of numbers 0 .. 255, as float32.

        The first filters must have been divided by 255.
        """
        hidden = blocks.to(torch.float32).permute(0, 3, 1, 2)
        strides = (1, *(stride for _, _, stride in CNN_LAYERS[1:]))
        for layer, stride in enumerate(strides):
            weights, bias = self.parts[2 * layer : 2 * layer + 2]
            hidden = functional.conv2d(hidden, weights, bias, stride).relu_()
        flat = hidden.permute(0, 2, 3, 1).flatten(1)  # as it lies in memory
        features = functional.linear(flat, *self.parts[-4:-2]).relu_()
        return functional.linear(features, *self.parts[-2:])

    def gradient(self, loss: torch.Tensor) -> list[torch.Tensor]:
        """The gradient of a loss by each part."""
        return list(torch.autograd.grad(loss, self.parts))


def packed_vector(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Parts by layer, such as a gradient, as one packed vector [n]."""
    return torch.cat([(part.permute(0, 2, 3, 1) if part.ndim == 4 else part).reshape(-1) for part in parts])


def packed(theta: Floats, num_actions: int) -> Floats:
    """The packed vector [n] of `theta`."""
    found: Floats = theta[_packed_order(num_actions)]
    return found


def unpacked(vector: Floats, num_actions: int) -> Floats:
    """`theta` [n] of the packed vector."""
    theta = np.empty_like(vector)
    theta[_packed_order(num_actions)] = vector
    return theta


def state_dictionary(theta: Floats, num_actions: int) -> dict[str, Floats]:
    """Parameters under Stable-Baselines3's names and in torch's layout: what `Network.from_torch` reads."""
    made, state = network(num_actions), {}
    for (name, array), (torch_name, shape) in zip(made.unpacked(theta).items(), made.torch_shapes.items(), strict=True):
        if name == "linear.w":  # we flatten HWC, torch CHW
            side, channels = _last_side(), CNN_LAYERS[-1][0]
            found = array.reshape(side, side, channels, -1).transpose(3, 2, 0, 1)
        else:  # HWIO to OIHW
            found = array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T
        state[torch_name] = np.ascontiguousarray(found).reshape(shape)
    return state


def _layer_shapes(num_actions: int) -> list[tuple[int, ...]]:
    """Weights and bias of each layer, packed: filters as [filters, height, width, channels]."""
    shapes: list[tuple[int, ...]] = []
    channels = BLOCKS_SHAPE[2]
    for number, (filters, size, stride) in enumerate(CNN_LAYERS):
        across = size if number else size // stride
        shapes += [(filters, across, across, channels), (filters,)]
        channels = filters
    shapes += [(CNN_FEATURES, channels * _last_side() ** 2), (CNN_FEATURES,)]
    return [*shapes, (num_actions + 1, CNN_FEATURES), (num_actions + 1,)]


def _last_side() -> int:
    """Height and width of the last convolution's outputs."""
    side = IMAGE_SHAPE[0]
    for _, size, stride in CNN_LAYERS:
        side = (side - size) // stride + 1
    return side


@cache
def _packed_order(num_actions: int) -> NDArray[np.int64]:
    """For each place of the packed vector, the place in `theta`."""
    made = network(num_actions)
    count = sum(math.prod(shape) for shape in made.shapes.values())
    places: dict[str, NDArray[np.int64]] = made.unpacked(np.arange(count))  # type: ignore[arg-type, assignment]
    filters = places["cnn.0.w"]  # [8, 8, 3, F]
    cut = filters.reshape(2, _BLOCK, 2, _BLOCK, *filters.shape[2:]).transpose(5, 0, 2, 1, 3, 4)
    heads = [np.concatenate([places[f"pi.out.{part}"], places[f"vf.out.{part}"]], axis=-1) for part in ("w", "b")]
    parts = [cut, places["cnn.0.b"]]
    for number in range(1, len(CNN_LAYERS)):
        parts += [places[f"cnn.{number}.w"].transpose(3, 0, 1, 2), places[f"cnn.{number}.b"]]
    parts += [places["linear.w"].T, places["linear.b"], heads[0].T, heads[1]]
    return np.concatenate([part.ravel() for part in parts])
