"""The Nature CNN on Procgen's images: the shapes of `torch_layers`, and Stable-Baselines3's names of its parameters.

Legend: B images, A actions, n parameters.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.networks import CNN_LAYERS, Network
from efhorizon.agents.deep.torch_layers import Packing, cut_into_blocks

__all__ = ["BLOCKS_SHAPE", "IMAGE_SHAPE", "cut_into_blocks", "network", "packed", "state_dictionary", "unpacked"]

IMAGE_SHAPE = (64, 64, 3)  # Procgen's
BLOCKS_SHAPE = (15, 15, 48)

Floats = NDArray[np.float32]


def network(num_actions: int) -> Network:
    """The network of Procgen's tables."""
    return Network("actor_critic", num_actions, None, IMAGE_SHAPE)


def packed(theta: Floats, num_actions: int) -> Floats:
    """The packed vector [n] of `theta`."""
    return _packing(num_actions).packed(theta)


def unpacked(vector: Floats, num_actions: int) -> Floats:
    """`theta` [n] of the packed vector."""
    return _packing(num_actions).unpacked(vector)


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


def _last_side() -> int:
    """Height and width of the last convolution's outputs."""
    side = IMAGE_SHAPE[0]
    for _, size, stride in CNN_LAYERS:
        side = (side - size) // stride + 1
    return side


@cache
def _packing(num_actions: int) -> Packing:
    return Packing(network(num_actions))
