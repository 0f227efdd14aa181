"""Policies as functions: from observations to probabilities of actions.

A policy network takes what the live environment shows, as uint8: images [B, H, W, C] (with frame stacks the frames are
channels, oldest first) or flat vectors [B, D]. It comes from

    F.npz   arrays named as in Stable-Baselines3's state dictionary (PPO's actor and critic, or DQN's q_net)
    F.zip   a file that Stable-Baselines3 saved: only its policy.pth is read, with torch's safe loader
    F.pth   a state dictionary that torch saved, read in the same way

or is any Python callable. Nothing is ever unpickled.

Legend: B batch, H x W x C an image, D numbers of a flat observation, A actions.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class PolicyNetwork(Protocol):
    """What a policy says of observations: [B, ...] uint8 in, probabilities [B, A] float64 out."""

    @property
    def num_actions(self) -> int: ...

    def __call__(self, observations: NDArray[np.uint8], /) -> NDArray[Any]: ...
