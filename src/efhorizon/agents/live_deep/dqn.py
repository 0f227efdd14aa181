"""DQN on live environments of any kind: a run that can be stopped and goes on as if it had not been.

The loss is that of tables (`deep.dqn`). As many environments are played side by side as there are timesteps between
gradient steps (4), so that one step of all of them is followed by one gradient step, as the paper's settings say.

Legend: N environments, M samples of a minibatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.settings import DQNSettings
from efhorizon.agents.deep.torch_learner import Frozen, Optimiser, TorchLearner
from efhorizon.agents.live_deep.games import Array, network_of
from efhorizon.agents.live_deep.replay import Replay
from efhorizon.agents.live_deep.vector import LiveEnvs

BEHAVIOUR = 2  # raise it when the same inputs give another result: see io/behaviour.py

_PIECE = 16  # samples, on a CPU

Floats = NDArray[np.float32]


class LiveDQN:
    """Environments, networks, replay buffer and random numbers."""

    def __init__(
        self,
        settings: DQNSettings,
        envs: LiveEnvs,
        seed: int,
        device: torch.device,
        threads: int,
        frames: Path | None = None,
    ) -> None:
        self.settings, self._envs, self._device = settings, envs, device
        self._rng = np.random.default_rng(seed)
        network = network_of("q", envs.num_actions, envs.observations[0])
        piece = _PIECE if device.type == "cpu" else settings.minibatch
        optimiser = Optimiser(settings.rate, settings.adam_epsilon, settings.max_gradient_norm, piece)
        self.learner = TorchLearner(network, optimiser, network.initial(self._rng), device, threads)
        self._target = self.learner.frozen()
        self._replay = Replay(envs.observations, settings.buffer_size, envs.stack, frames)
        packing = self.learner.packing
        self._seen = torch.empty((settings.minibatch, *packing.observation_shape), dtype=packing.dtype)
        self._all = torch.arange(settings.minibatch)
        self.steps = 0

    def update(self) -> list[float]:
        """A step of every environment and a gradient step; the returns of episodes that ended, in points."""
        settings, envs = self.settings, self._envs
        action = self._explored(self._outputs(envs.observations).argmax(axis=1))
        found = envs.step(action)
        self._replay.add(action, found.reward, found.is_done, found.last, envs.observations)
        before, self.steps = self.steps, self.steps + len(action)
        if self.steps // settings.target_interval > before // settings.target_interval:
            self._target = self.learner.frozen()
        self._learn()
        return list(found.returns)

    def greedy(self, observations: Array) -> NDArray[np.int64]:
        """The actions [B] of the largest value after observations [B, ...]."""
        found: NDArray[np.int64] = self._outputs(observations).argmax(axis=1)
        return found

    @property
    def epsilon(self) -> float:
        """The share of random actions now."""
        settings = self.settings
        falling = self.steps / (settings.exploration_fraction * settings.schedule_steps)
        return max(settings.final_epsilon, 1 - (1 - settings.final_epsilon) * falling)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything that the run needs to go on besides its frames, as arrays and JSON: copies."""
        self._replay.flush()
        arrays, metadata = self._envs.state()
        own = {**self.learner.state(), "target": self._target.theta(), **self._replay.state()}
        return {**own, **arrays}, {**metadata, "steps": self.steps, "random": self._rng.bit_generator.state}

    def restore(self, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        """Go on from what `state` returned, in a run with the same settings."""
        self.learner.restore(arrays)
        self._target = Frozen.restored(arrays["target"], self.learner.packing, self._device)
        self._replay.restore(arrays)
        self._envs.restore(arrays, metadata)
        self.steps = int(metadata["steps"])
        self._rng.bit_generator.state = metadata["random"]

    def close(self) -> None:
        self.learner.close()

    def _explored(self, best: NDArray[np.int64]) -> NDArray[np.int64]:
        is_random = self._rng.random(len(best)) < self.epsilon
        return np.where(is_random, self._rng.integers(self._envs.num_actions, size=len(best)), best)

    def _learn(self) -> None:
        """A gradient step on a minibatch."""
        drawn, packing = self._replay.drawn(self.settings.minibatch, self._rng), self.learner.packing
        packing.prepared(drawn.following, self._seen.numpy())
        best = self._target.outputs(self._seen).max(axis=1)
        wanted = torch.from_numpy(drawn.reward + (~drawn.is_end) * np.float32(self.settings.gamma) * best)
        packing.prepared(drawn.seen, self._seen.numpy())
        wanted, action = wanted.to(self._device), torch.from_numpy(drawn.action).to(self._device)

        def loss(outputs: torch.Tensor, piece: slice) -> torch.Tensor:
            values = outputs.gather(1, action[piece, None])[:, 0]
            return functional.smooth_l1_loss(values, wanted[piece], reduction="sum") / len(wanted)

        self.learner.improve(self._seen, self._all, loss)

    def _outputs(self, observations: Array) -> Floats:
        packing = self.learner.packing
        seen = torch.empty((len(observations), *packing.observation_shape), dtype=packing.dtype)
        packing.prepared(observations, seen.numpy())
        return self.learner.outputs(seen)
