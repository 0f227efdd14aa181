"""The learner of pretraining: the Nature CNN on Procgen's images as actor and critic.

Legend: A actions, n parameters.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from efhorizon.agents.deep.torch_learner import Optimiser, TorchLearner, begin_thread
from efhorizon.policies.nature_cnn import network
from efhorizon.policies.pretraining_settings import PretrainingSettings

__all__ = ["ActorCritic", "begin_thread"]

_PIECE = 512  # images, on a CPU


class ActorCritic(TorchLearner):
    """Network and optimiser. Outputs are logits and value, [B, A + 1]."""

    def __init__(
        self, settings: PretrainingSettings, theta: NDArray[np.float32], device: torch.device, threads: int
    ) -> None:
        optimiser = Optimiser(
            rate=settings.rate,
            adam_epsilon=settings.adam_epsilon,
            max_gradient_norm=settings.max_gradient_norm,
            piece=_PIECE if device.type == "cpu" else settings.minibatch,
            is_half=settings.precision == "bfloat16",
        )
        super().__init__(network(settings.num_actions), optimiser, theta, device, threads)
