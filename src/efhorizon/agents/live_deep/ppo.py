"""PPO on live environments of any kind: a run that can be stopped after any update and goes on as if it had not been.

An update is a rollout of every environment, advantages, and gradient steps in minibatches; the loss is that of tables
and of pretraining (`ppo_loss`). Values and probabilities of a rollout are those with which it was played. The reward of
a step that cut an episode short includes what the value head expects from there on, as in Stable-Baselines3; a last
minibatch may be smaller, as there.

Legend: N environments, T steps of a rollout, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from efhorizon.agents.deep.ppo_images import generalised_advantages
from efhorizon.agents.deep.ppo_loss import MinibatchLoss, Samples
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.agents.deep.torch_learner import Optimiser, TorchLearner
from efhorizon.agents.live_deep.games import Array, network_of
from efhorizon.agents.live_deep.vector import LiveEnvs

BEHAVIOUR = 2  # raise it when the same inputs give another result: see io/behaviour.py

_PIECE = 128  # samples, on a CPU

Floats = NDArray[np.float32]


class LivePPO:
    """Environments, network and random numbers."""

    def __init__(self, settings: PPOSettings, envs: LiveEnvs, seed: int, device: torch.device, threads: int) -> None:
        self.settings, self._envs, self._device = settings, envs, device
        self._rng = np.random.default_rng(seed)
        network = network_of("actor_critic", envs.num_actions, envs.observations[0])
        piece = _PIECE if device.type == "cpu" else settings.minibatch
        optimiser = Optimiser(settings.rate, settings.adam_epsilon, settings.max_gradient_norm, piece)
        self.learner = TorchLearner(network, optimiser, network.initial(self._rng), device, threads)
        packing = self.learner.packing
        shape = (settings.rollout_length, settings.num_envs, *packing.observation_shape)
        self._seen = torch.empty(shape, dtype=packing.dtype)
        self.steps = 0

    def update(self) -> list[float]:
        """A rollout and the gradient steps; the returns of the episodes that ended, in points."""
        settings, returns = self.settings, list[float]()
        samples = self._rollout(returns)
        seen = self._seen.flatten(0, 1)
        still = self.learner.still(seen)
        for _ in range(settings.num_epochs):
            order = torch.from_numpy(self._rng.permutation(settings.samples))
            for chosen in torch.split(order, settings.minibatch):
                self.learner.improve(seen, chosen, MinibatchLoss(settings, samples[chosen], self._device), still)
        self.steps += settings.samples
        return returns

    def greedy(self, observations: Array) -> NDArray[np.int64]:
        """The most probable actions [B] after observations [B, ...]."""
        found: NDArray[np.int64] = self._outputs(observations)[:, :-1].argmax(axis=1)
        return found

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything that the run needs to go on, as arrays and JSON: copies."""
        arrays, metadata = self._envs.state()
        return {**self.learner.state(), **arrays}, {
            **metadata,
            "steps": self.steps,
            "random": self._rng.bit_generator.state,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        """Go on from what `state` returned, in a run with the same settings."""
        self.learner.restore(arrays)
        self._envs.restore(arrays, metadata)
        self.steps = int(metadata["steps"])
        self._rng.bit_generator.state = metadata["random"]

    def close(self) -> None:
        self.learner.close()

    def _rollout(self, returns: list[float]) -> Samples:
        """What the gradient steps learn from: every step, flattened."""
        settings, envs = self.settings, self._envs
        shape = (settings.rollout_length, settings.num_envs)
        noise = self._rng.gumbel(size=(*shape, envs.num_actions)).astype(np.float32)
        action, is_done = np.empty(shape, np.int64), np.empty(shape, np.bool_)
        reward, outputs = np.empty(shape, np.float32), np.empty((*shape, envs.num_actions + 1), np.float32)
        for step in range(settings.rollout_length):
            self.learner.packing.prepared(envs.observations, self._seen[step].numpy())
            outputs[step] = self.learner.outputs(self._seen[step])
            action[step] = (outputs[step, :, :-1] + noise[step]).argmax(axis=1)  # the Gumbel trick
            found = envs.step(action[step])
            reward[step], is_done[step] = found.reward, found.is_done
            if found.last:
                value = self._outputs(np.stack(list(found.last.values())))[:, -1]
                reward[step, list(found.last)] += settings.gamma * value
            returns += found.returns
        last_value = self._outputs(envs.observations)[:, -1]
        value = outputs[:, :, -1]
        advantage = generalised_advantages(reward, value, is_done, last_value, settings.gamma, settings.gae_lambda)
        taken = torch.from_numpy(action).flatten()
        log_policy = torch.from_numpy(outputs[:, :, :-1]).flatten(0, 1).log_softmax(dim=1)
        return Samples(
            action=taken,
            log_probability=log_policy.gather(1, taken[:, None])[:, 0],
            advantage=torch.from_numpy(advantage).flatten(),
            target=torch.from_numpy(advantage + value).flatten(),
        )

    def _outputs(self, observations: Array) -> Floats:
        packing = self.learner.packing
        seen = torch.empty((len(observations), *packing.observation_shape), dtype=packing.dtype)
        packing.prepared(observations, seen.numpy())
        return self.learner.outputs(seen)
