"""PPO with a CNN, for tables with images: the environments are looked up, the learner is torch's.

The parameters are fixed during a rollout, so the network sees every observation of it once.

Legend: B seeds, N environments, T steps of a rollout, A actions, M samples of a minibatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.images import ImageNetwork, Images, Remembered, each, greedy_return
from efhorizon.agents.deep.learners import Updates
from efhorizon.agents.deep.networks import network_for
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.settings import PPOSettings

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

Floats = NDArray[np.float32]


class ImageSamples(NamedTuple):
    """What a gradient step learns from; every field [M], or [T, N] in a rollout."""

    observation: NDArray[Any]
    action: NDArray[Any]
    log_probability: NDArray[Any]
    advantage: NDArray[Any]
    target: NDArray[Any]  # of the value


class ImagePPO:
    """The learners of several seeds; see `PPOLearners`."""

    def __init__(
        self,
        table: ObservedTable,
        settings: PPOSettings,
        interval: int,
        seeds: Sequence[int],
        initial: Floats | None = None,
    ) -> None:
        images = Images(table)
        self._learners = [ImagePPOSeed(table, images, settings, interval, seed, initial) for seed in seeds]

    def updates(self, step: int) -> Updates:
        reports = each(self._learners, lambda learner: learner.update(step))
        is_done, units, evaluations = zip(*reports, strict=True)
        return Updates(np.stack(is_done)[None], np.stack(units)[None], np.array([evaluations]))

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        self._learners = [self._learners[place] for place in places]
        return places


class ImagePPOSeed:
    """One seed: its network, and where its environments are."""

    def __init__(
        self,
        table: ObservedTable,
        images: Images,
        settings: PPOSettings,
        interval: int,
        seed: int,
        initial: Floats | None,
    ) -> None:
        self._table, self._settings, self._interval = table, settings, interval
        self._rng = np.random.default_rng(seed)
        theta = network_for("actor_critic", table).initial(self._rng) if initial is None else initial
        self.network = ImageNetwork(table, images, "actor_critic", theta, settings)
        self._node, self._time, self._units = np.zeros((3, settings.num_envs), np.int64)

    def update(self, first_step: int) -> Updates:
        """A rollout, the greedy episode where one is due, and the gradient steps."""
        settings = self._settings
        seen = Remembered(self.network)
        samples, is_done, units = self._rollout(seen)
        is_due = (first_step + settings.samples) // self._interval > first_step // self._interval
        evaluation = greedy_return(self._table, lambda observation: seen(observation)[:, :-1]) if is_due else 0
        flat = ImageSamples(*(field.ravel() for field in samples))
        for _ in range(settings.num_epochs):
            for chosen in self._rng.permutation(settings.samples).reshape(-1, settings.minibatch):
                minibatch = ImageSamples(*(field[chosen] for field in flat))
                self.network.improve(loss(settings, self.network.outputs(minibatch.observation), minibatch))
        return Updates(is_done, units, np.int64(evaluation))

    def _rollout(self, seen: Remembered) -> tuple[ImageSamples, NDArray[np.bool_], NDArray[np.int64]]:
        """ImageSamples, ends of episodes and returns until then, each [T, N]."""
        settings, table = self._settings, self._table
        shape = (settings.rollout_length, settings.num_envs)
        noise = self._rng.gumbel(size=(*shape, table.num_actions)).astype(np.float32)
        observation, action = np.empty(shape, np.int32), np.empty(shape, np.int64)
        is_done, units = np.empty(shape, np.bool_), np.empty(shape, np.int64)
        reward = np.empty(shape, np.float32)
        for step in range(settings.rollout_length):
            observation[step] = table.observation[self._node]
            logits = seen(observation[step])[:, :-1]
            action[step] = (logits + noise[step]).argmax(axis=1)  # the Gumbel trick: a sample of softmax(logits)
            chosen = self._node, action[step]
            reward[step] = table.rewards[chosen]
            units[step] = self._units + table.reward_units[chosen]
            following, time = table.transitions[chosen], self._time + 1
            is_done[step] = (following < 0) | (time >= table.horizon)
            going_on = ~is_done[step]
            self._node, self._time, self._units = following * going_on, time * going_on, units[step] * going_on
        outputs = seen(observation.ravel()).reshape(*shape, -1)
        value = outputs[:, :, -1]
        last_value = seen(table.observation[self._node])[:, -1]
        advantage = generalised_advantages(reward, value, is_done, last_value, settings.gamma, settings.gae_lambda)
        log_policy = _log_softmax(outputs[:, :, :-1])
        log_probability = np.take_along_axis(log_policy, action[:, :, None], axis=2)[:, :, 0]
        return ImageSamples(observation, action, log_probability, advantage, advantage + value), is_done, units


def loss(settings: PPOSettings, outputs: torch.Tensor, samples: ImageSamples) -> torch.Tensor:
    """The loss L of one minibatch (see `ppo`); advantages are normalised within it."""
    action, old, advantage, target = (torch.from_numpy(field) for field in samples[1:])
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    log_policy = functional.log_softmax(outputs[:, :-1], dim=1)
    ratio = torch.exp(log_policy.gather(1, action[:, None])[:, 0] - old)
    clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    policy_loss = -torch.minimum(advantage * ratio, advantage * clipped).mean()
    entropy = -(log_policy.exp() * log_policy).sum(dim=1).mean()
    value_loss = functional.mse_loss(outputs[:, -1], target)
    return policy_loss - settings.entropy_weight * entropy + settings.value_weight * value_loss


def generalised_advantages(
    reward: Floats,  # [T, N]
    value: Floats,  # [T, N]
    is_done: NDArray[np.bool_],  # [T, N], whether the step ended an episode
    last_value: Floats,  # [N], of the state after the rollout
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """A_t = delta_t + gamma lambda A_{t+1} within an episode, delta_t = r_t + gamma V_{t+1} - V_t; [T, N]."""
    goes_on = (~is_done).astype(np.float32)
    delta = reward + gamma * np.vstack([value[1:], last_value[None]]) * goes_on - value
    advantages = np.empty_like(delta)
    following = np.zeros_like(last_value)
    for step in reversed(range(len(delta))):
        following = advantages[step] = delta[step] + gamma * gae_lambda * goes_on[step] * following
    return advantages


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    normalised: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalised
