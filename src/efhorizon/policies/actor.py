"""The actor of a Stable-Baselines3 policy in torch: from observations to logits, by the names of its parameters.

    images   Nature CNN on pixels in [0, 1]: features_extractor.cnn.{0, 2, 4}, features_extractor.linear.0, action_net
    flat     an MLP with ReLU on the numbers as they are: mlp_extractor.policy_net.{0, 2}, action_net

Legend: B batch, A actions, D numbers of a flat observation.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from efhorizon.agents.deep.networks import CNN_LAYERS

Parameters = dict[str, torch.Tensor]


def logits(parameters: Parameters, observations: torch.Tensor) -> torch.Tensor:
    """What the actor says [B, A] of observations, uint8 [B, C, H, W] or [B, D]."""
    if observations.ndim == 4:
        hidden = observations.to(torch.float32, memory_format=torch.channels_last) / 255.0
        for number, (_, _, stride) in enumerate(CNN_LAYERS):
            name = f"features_extractor.cnn.{2 * number}"
            hidden = functional.conv2d(hidden, parameters[f"{name}.weight"], parameters[f"{name}.bias"], stride)
            hidden = functional.relu(hidden)
        hidden = _rectified(parameters, "features_extractor.linear.0", hidden.flatten(1))
    else:
        hidden = observations.to(torch.float32)
        for number in (0, 2):
            hidden = _rectified(parameters, f"mlp_extractor.policy_net.{number}", hidden)
    return _linear(parameters, "action_net", hidden)


def _rectified(parameters: Parameters, layer: str, inputs: torch.Tensor) -> torch.Tensor:
    return functional.relu(_linear(parameters, layer, inputs))


def _linear(parameters: Parameters, layer: str, inputs: torch.Tensor) -> torch.Tensor:
    return functional.linear(inputs, parameters[f"{layer}.weight"], parameters[f"{layer}.bias"])
