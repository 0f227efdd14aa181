"""The networks of `networks` in torch, for observations that come from anywhere: the Nature CNN and the MLPs.

The CNN's first filters are 8 pixels wide and move by 4. Cut into blocks of 4 x 4 pixels, an image is convolved with
filters of 2 x 2 blocks that move by one: the same sums, for which processors have better code than for images with
three channels. With four channels, as a stack of grey frames has, the image as it is takes two thirds of that time.
Rows and columns at the end that the second layer has no use for are never seen, nor are they in Stable-Baselines3: of
64 x 64 pixels 15 x 15 blocks remain.

On a CPU few images at a time go through the convolutions, so that what lies between two layers stays in the cache.

Parameters are one vector `theta` [n] in the order of `networks.Network`, or packed: the same numbers in the order in
which torch's functions take them.

Legend: B observations, A actions, O outputs (A + 1 of an actor and critic, A of action values), n parameters.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.networks import CNN_FEATURES, CNN_LAYERS, HIDDEN, Network
from efhorizon.agents.deep.torch_linear import linear
from efhorizon.agents.deep.torch_still import Still, first_layer, still_picture
from efhorizon.compiled import compiled

MAX_PIXEL = 255.0
_BLOCK = CNN_LAYERS[0][2]  # pixels
_CHANNELS_UNCUT = 4  # of images that are not cut into blocks
_IMAGES_AT_ONCE = 32  # on a CPU

Floats = NDArray[np.float32]


@compiled
def cut_into_blocks(images: Any, out: Any) -> None:
    """Images [B, H, W, C] as blocks [B, rows, columns, 16 C], written to `out`."""
    channels = images.shape[3]
    for which in range(len(images)):
        for row in range(out.shape[1] * _BLOCK):
            block_row, inner_row = row // _BLOCK, row % _BLOCK
            for column in range(out.shape[2] * _BLOCK):
                place = channels * (_BLOCK * inner_row + column % _BLOCK)
                block = out[which, block_row, column // _BLOCK]
                for channel in range(channels):
                    block[place + channel] = images[which, row, column, channel]


class Packing:
    """Where each parameter of a network is in its packed vector, and what the network computes from its parts."""

    def __init__(self, network: Network) -> None:
        self.network = network

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Of one observation as `outputs` takes it."""
        network = self.network
        if network.flat is not None:
            return (network.flat.width,)
        assert network.image_shape is not None
        *sides, channels = network.image_shape
        if not self._is_cut:
            return network.image_shape
        return (*(_blocks(side) for side in sides), channels * _BLOCK**2)

    @property
    def strides(self) -> tuple[int, ...]:
        """How far the filters of each layer move."""
        own = [stride for _, _, stride in CNN_LAYERS]
        return (1, *own[1:]) if self._is_cut else tuple(own)

    def still(self, observations: torch.Tensor) -> Still | None:
        """A picture from which prepared observations [B, ...] differ little, if there is one that saves work."""
        is_image = self.network.flat is None and not self._is_cut
        return still_picture(observations) if is_image and observations.device.type == "cpu" else None

    @cached_property
    def _is_cut(self) -> bool:
        return self.network.image_shape is not None and self.network.image_shape[2] != _CHANNELS_UNCUT

    @cached_property
    def num_scaled(self) -> int:
        """How many of the first packed parameters are multiplied with pixels 0 .. 255."""
        return 0 if self.network.flat is not None else math.prod(self.shapes[0])

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Weights and bias of each layer, packed: outputs first, filters as [filters, height, width, channels]."""
        outputs = self.network.num_actions + (self.network.kind == "actor_critic")
        if self.network.flat is not None:
            tower = [(HIDDEN, self.network.flat.width), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,)]
            if self.network.kind == "q":
                return [*tower, (outputs, HIDDEN), (outputs,)]
            heads = [(outputs - 1, HIDDEN), (outputs - 1,), (1, HIDDEN), (1,)]
            return [*tower, *tower, *heads]
        shapes: list[tuple[int, ...]] = []
        rows, columns, channels = self.observation_shape
        for (filters, size, stride), step in zip(CNN_LAYERS, self.strides, strict=True):
            across = size * step // stride
            shapes += [(filters, across, across, channels), (filters,)]
            rows, columns, channels = (rows - across) // step + 1, (columns - across) // step + 1, filters
        shapes += [(CNN_FEATURES, channels * rows * columns), (CNN_FEATURES,)]
        return [*shapes, (outputs, CNN_FEATURES), (outputs,)]

    def packed(self, theta: Floats) -> Floats:
        """The packed vector [n] of `theta`."""
        found: Floats = theta[self._order]
        return found

    def unpacked(self, vector: Floats) -> Floats:
        """`theta` [n] of the packed vector."""
        theta = np.empty_like(vector)
        theta[self._order] = vector
        return theta

    def prepared(self, observations: NDArray[Any], out: NDArray[Any]) -> None:
        """Observations [B, ...] as `Layers.outputs` takes them, written to `out`."""
        if self._is_cut:
            cut_into_blocks(observations, out)
        else:
            out[:] = observations.reshape(out.shape)

    @property
    def dtype(self) -> torch.dtype:
        """Of observations as `Layers.outputs` takes them."""
        return torch.uint8 if self.network.flat is None else torch.float32

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """For each place of the packed vector, the place in `theta`."""
        network = self.network
        count = sum(math.prod(shape) for shape in network.shapes.values())
        places: dict[str, NDArray[np.int64]] = network.unpacked(np.arange(count))  # type: ignore[arg-type, assignment]
        if network.flat is not None:
            return np.concatenate([array.T.ravel() for array in places.values()])
        filters = places["cnn.0.w"]  # [8, 8, C, F]
        if self._is_cut:
            first = filters.reshape(2, _BLOCK, 2, _BLOCK, *filters.shape[2:]).transpose(5, 0, 2, 1, 3, 4)
        else:
            first = filters.transpose(3, 0, 1, 2)
        names = ("pi", "vf") if network.kind == "actor_critic" else ("q",)
        heads = [np.concatenate([places[f"{name}.out.{part}"] for name in names], axis=-1) for part in ("w", "b")]
        parts = [first, places["cnn.0.b"]]
        for number in range(1, len(CNN_LAYERS)):
            parts += [places[f"cnn.{number}.w"].transpose(3, 0, 1, 2), places[f"cnn.{number}.b"]]
        parts += [places["linear.w"].T, places["linear.b"], heads[0].T, heads[1]]
        return np.concatenate([part.ravel() for part in parts])


class Layers:
    """The parameters by layer, each a leaf that is a view of one packed vector [n]."""

    def __init__(self, vector: torch.Tensor, packing: Packing) -> None:
        self._packing = packing
        self.parts: list[torch.Tensor] = []  # weights and bias of each layer
        start = 0
        for shape in packing.shapes:
            part = vector[start : start + math.prod(shape)].view(shape)
            self.parts.append((part.permute(0, 3, 1, 2) if part.ndim == 4 else part).detach().requires_grad_())
            start += math.prod(shape)
        assert start == len(vector)

    def outputs(self, observations: torch.Tensor, still: Still | None = None) -> torch.Tensor:
        """Outputs [B, O] of vectors [B, D], or of prepared images of numbers 0 .. 255, as float32.

        The first filters must have been divided by 255. `still` is a picture from which the images differ little.
        """
        if self._packing.network.flat is not None:
            return self._dense(observations)
        size = _IMAGES_AT_ONCE if observations.device.type == "cpu" else len(observations)
        convolved = [self._convolved(few, still) for few in torch.split(observations, size)]
        weights, bias, *head = self.parts[-4:]
        features = linear(convolved[0] if len(convolved) == 1 else torch.cat(convolved), weights, bias).relu_()
        return linear(features, *head)

    def _convolved(self, images: torch.Tensor, still: Still | None) -> torch.Tensor:
        layers = list(zip(self.parts[::2], self.parts[1::2], self._packing.strides, strict=False))
        weights, bias, stride = layers[0]
        if still is None:
            hidden = functional.conv2d(images.to(torch.float32).permute(0, 3, 1, 2), weights, bias, stride).relu_()
        else:
            hidden = first_layer(images, weights, bias, still)
        for weights, bias, stride in layers[1:]:
            hidden = functional.conv2d(hidden, weights, bias, stride).relu_()
        return hidden.permute(0, 2, 3, 1).flatten(1)  # as it lies in memory

    def gradient(self, loss: torch.Tensor) -> list[torch.Tensor]:
        """The gradient of a loss by each part."""
        return list(torch.autograd.grad(loss, self.parts))

    def _dense(self, observations: torch.Tensor) -> torch.Tensor:
        """An MLP for each output: logits and value, or action values."""
        heads = self.parts[4:] if self._packing.network.kind == "q" else self.parts[8:]
        found = []
        for number in range(len(heads) // 2):
            tower = self.parts[4 * number : 4 * number + 4]
            hidden = functional.linear(observations, *tower[:2]).relu_()
            hidden = functional.linear(hidden, *tower[2:]).relu_()
            found.append(functional.linear(hidden, *heads[2 * number : 2 * number + 2]))
        return torch.cat(found, dim=1)


def _blocks(side: int) -> int:
    """How many blocks of an image's side are seen."""
    first = (side - CNN_LAYERS[0][1]) // _BLOCK + 1
    _, size, stride = CNN_LAYERS[1]
    return (first - size) // stride * stride + size + 1
