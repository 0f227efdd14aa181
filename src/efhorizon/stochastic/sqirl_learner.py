"""SQIRL's regression with a network: an MLP with one head for each step of k.

Head 1 is fitted to returns (Q^1), head j to r + max_a' of head j - 1 in the next state (Q^j). Adam, over the samples of
all timesteps so far. Observations have numbers, so that those that come again are kept once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

HIDDEN = 64


@dataclass(frozen=True)
class SqirlSettings:
    """The authors' numbers."""

    rate: float = 1e-4
    batch: int = 128
    epochs: int = 10


class HeadsLearner:
    """The network, its optimiser, and the samples of each head so far."""

    def __init__(
        self, seen: NDArray[np.float32], num_heads: int, num_actions: int, seed: int, settings: SqirlSettings
    ) -> None:
        import torch  # takes seconds

        self._torch: Any = torch
        torch.manual_seed(seed)
        self._shape, self._settings = (num_heads, num_actions), settings
        self._seen: Any = torch.as_tensor(np.ascontiguousarray(seen))
        self._network: Any = torch.nn.Sequential(
            torch.nn.Linear(seen.shape[1], HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, num_heads * num_actions),
        )
        self._optimiser: Any = torch.optim.Adam(self._network.parameters(), lr=settings.rate)
        self._samples: list[list[tuple[NDArray[Any], ...]]] = [[] for _ in range(num_heads)]
        self._rng = np.random.default_rng([seed, 3])

    def see(self, seen: NDArray[np.float32]) -> None:
        """More observations than were known so far, those first: their numbers stay the same."""
        self._seen = self._torch.as_tensor(np.ascontiguousarray(seen))

    def add(
        self,
        head: int,
        observation: NDArray[np.int32],
        action: NDArray[np.int32],
        reward: NDArray[np.float64],
        following: NDArray[np.int32],
    ) -> None:
        """Samples for one head; `following` is -1 where the episode was over."""
        self._samples[head].append((observation.copy(), action.copy(), reward.copy(), following.copy()))

    def fit(self) -> None:
        """Head after head, each on its own samples, with targets from the head before.

        By one thread: several would share small matrices, and mostly wait for each other.
        """
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(1)
        try:
            self._fit()
        finally:
            self._torch.set_num_threads(before)

    def _fit(self) -> None:
        torch = self._torch
        for head, samples in enumerate(self._samples):
            if not samples:
                continue
            observation, action, reward, following = (np.concatenate(part) for part in zip(*samples, strict=True))
            target = reward.astype(np.float32)
            if head > 0:
                goes_on = following >= 0
                target[goes_on] += self._values(head - 1)[following[goes_on]]
            targets, actions = torch.as_tensor(target), torch.as_tensor(action.astype(np.int64))
            for _ in range(self._settings.epochs):
                order = self._rng.permutation(len(target))
                for begun in range(0, len(order), self._settings.batch):
                    chosen = order[begun : begun + self._settings.batch]
                    outputs = self._network(self._seen[observation[chosen]])
                    rows = outputs.reshape(len(chosen), *self._shape)[:, head]
                    picked = rows.gather(1, actions[chosen][:, None])[:, 0]
                    loss = ((picked - targets[chosen]) ** 2).mean()
                    self._optimiser.zero_grad()
                    loss.backward()
                    self._optimiser.step()

    def greedy(self, head: int) -> NDArray[np.int32]:
        """The action of the largest value for each observation [U]."""
        found: NDArray[np.int32] = self._outputs(head).argmax(axis=1).astype(np.int32)
        return found

    def weights(self) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """A copy of the weights and biases of each layer: what the network is now."""
        layers = [self._network[place] for place in (0, 2, 4)]
        return [(layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy()) for layer in layers]

    def _values(self, head: int) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._outputs(head).max(axis=1)
        return found

    def _outputs(self, head: int) -> NDArray[np.float32]:
        with self._torch.no_grad():
            outputs = self._network(self._seen).reshape(len(self._seen), *self._shape)
        found: NDArray[np.float32] = outputs[:, head].numpy()
        return found
