"""PPO's loss of a minibatch that is computed in pieces.

    L = - E[min(r A, clip(r, 1 - c, 1 + c) A)] + vf E[(V - R)^2] - ent E[H],   r = pi(a | s) / pi_old(a | s)

with the advantages A normalised within the minibatch; a piece's share is its sum divided by the minibatch's size.

Legend: M samples of a minibatch, B of a piece, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch.nn import functional

_EPSILON = 1e-8  # that of Stable-Baselines3


class LossSettings(Protocol):
    """What the loss depends on, of `PPOSettings` and of pretraining's settings."""

    @property
    def clip(self) -> float: ...
    @property
    def entropy_weight(self) -> float: ...
    @property
    def value_weight(self) -> float: ...


@dataclass(frozen=True)
class Samples:
    """What is learned from, besides images; every field [M]."""

    action: torch.Tensor
    log_probability: torch.Tensor  # of the action, when it was taken
    advantage: torch.Tensor
    target: torch.Tensor  # of the value

    def __getitem__(self, places: torch.Tensor | slice) -> Samples:
        return Samples(*(getattr(self, name)[places] for name in self.__dataclass_fields__))

    def to(self, device: torch.device) -> Samples:
        return Samples(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


class MinibatchLoss:
    """The loss of one minibatch, called with the outputs [B, A + 1] of each piece."""

    def __init__(self, settings: LossSettings, samples: Samples, device: torch.device) -> None:
        advantage = samples.advantage
        normal = (advantage - advantage.mean()) / (advantage.std() + _EPSILON)
        self._settings, self._size = settings, len(advantage)
        self._samples = Samples(samples.action, samples.log_probability, normal, samples.target).to(device)
        self._sums: dict[int, torch.Tensor] = {}  # of each piece: entropy, value loss, clipped ratios

    def __call__(self, outputs: torch.Tensor, piece: slice) -> torch.Tensor:
        settings, samples = self._settings, self._samples[piece]
        log_policy = functional.log_softmax(outputs[:, :-1], dim=1)
        ratio = torch.exp(log_policy.gather(1, samples.action[:, None])[:, 0] - samples.log_probability)
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        policy_loss = -torch.minimum(samples.advantage * ratio, samples.advantage * clipped).sum()
        entropy = -(log_policy.exp() * log_policy).sum()
        value_loss = functional.mse_loss(outputs[:, -1], samples.target, reduction="sum")
        with torch.no_grad():
            self._sums[piece.start] = torch.stack([entropy, value_loss, (ratio != clipped).sum()])
        return (policy_loss - settings.entropy_weight * entropy + settings.value_weight * value_loss) / self._size

    def means(self) -> torch.Tensor:
        """Entropy, value loss and share of clipped ratios, over the whole minibatch: [3]."""
        sums = torch.stack([self._sums[start] for start in sorted(self._sums)])
        return sums.sum(dim=0).cpu() / self._size
