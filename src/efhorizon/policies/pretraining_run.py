"""PPO on live Procgen levels: a run that can be stopped after any update and goes on as if it had not been.

An update is a rollout of every environment, advantages, and gradient steps in minibatches. The values and probabilities
that the network gave while it played are those of the advantages and ratios: nothing is evaluated twice. Rewards are
divided by `ReturnScale`; at the end the value head is multiplied by it, so the file's values are in points, as those of
tables are.

What a run does depends on its settings only, not on the number of threads.

Legend: N environments, T steps of a rollout, A actions.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from efhorizon.agents.deep.ppo_images import generalised_advantages
from efhorizon.agents.deep.ppo_loss import MinibatchLoss, Samples
from efhorizon.errors import StoreError
from efhorizon.policies.actor_critic import ActorCritic
from efhorizon.policies.nature_cnn import BLOCKS_SHAPE, cut_into_blocks, network, state_dictionary
from efhorizon.policies.pretraining_settings import PretrainingSettings
from efhorizon.policies.procgen_levels import ProcgenLevels
from efhorizon.policies.return_scale import ReturnScale

RECENT = 100  # episodes whose mean return is reported
_VARYING = ("states", "recent")  # arrays of a checkpoint whose lengths vary
_MAX_SEED = 2**31 - 1

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Report:
    """How a run stands after an update."""

    steps: int
    episodes: int
    mean_return: float | None  # of the last episodes, in points; None before the first has ended
    mean_length: float | None  # the same, in timesteps
    entropy: float  # of the policy, in nats: at most log A
    value_loss: float  # of scaled rewards
    clipped: float  # share of ratios outside the clip range


@dataclass(frozen=True)
class Rollout:
    """What a rollout found."""

    action: NDArray[np.int64]  # [T, N]
    reward: Floats  # [T, N], in points
    is_done: NDArray[np.bool_]  # [T, N]
    outputs: Floats  # [T, N, A + 1]
    last_value: Floats  # [N]


class PretrainingRun:
    """Environments, network and random numbers."""

    def __init__(self, settings: PretrainingSettings, device: torch.device, threads: int) -> None:
        self.settings, self._device = settings, device
        self._rng = np.random.default_rng(settings.seed)
        seed = int(self._rng.integers(_MAX_SEED))
        self._levels = ProcgenLevels(settings, seed=seed, num_threads=threads if threads > 1 else 0)
        self._network = network(settings.num_actions)
        self._learner = ActorCritic(settings, self._network.initial(self._rng), device, threads)
        self._blocks = torch.empty((settings.rollout_length, settings.num_envs, *BLOCKS_SHAPE), dtype=torch.uint8)
        self._scale = ReturnScale(settings)
        self._returns, self._lengths = np.zeros((2, settings.num_envs))
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)  # return and length
        self.steps, self.episodes = 0, 0

    def update(self) -> Report:
        """A rollout, and the gradient steps."""
        settings, rollout = self.settings, self._rollout()
        self._count_episodes(rollout)
        scaled = self._scale.scaled(rollout.reward, rollout.is_done)
        samples = _samples(settings, rollout, scaled)
        blocks, means = self._blocks.flatten(0, 1), []
        for _ in range(settings.num_epochs):
            order = torch.from_numpy(self._rng.permutation(settings.samples))
            for chosen in order.view(-1, settings.minibatch):
                loss = MinibatchLoss(settings, samples[chosen], self._device)
                self._learner.improve(blocks, chosen, loss)
                means.append(loss.means())
        self.steps += settings.samples
        return Report(self.steps, self.episodes, *self._recent_means(), *torch.stack(means).mean(dim=0).tolist())

    def state_dictionary(self) -> dict[str, Floats]:
        """The network under Stable-Baselines3's names, its value head in points."""
        theta = self._learner.state()["theta"]
        parts = self._network.unpacked(theta)  # views
        for name in ("vf.out.w", "vf.out.b"):
            parts[name] *= np.float32(self._scale.deviation)
        return state_dictionary(theta, self.settings.num_actions)

    def close(self) -> None:
        self._levels.close()
        self._learner.close()

    # --- checkpoints

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything that the run needs to go on, as arrays and JSON: copies."""
        states = self._levels.states()
        arrays = {
            **self._learner.state(),
            **self._scale.state(),
            "states": np.frombuffer(b"".join(states), np.uint8),
            "state_lengths": np.array([len(state) for state in states]),
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
            "recent": np.array(self._recent).reshape(-1, 2),
        }
        return arrays, {"steps": self.steps, "episodes": self.episodes, "random": self._rng.bit_generator.state}

    def restore(self, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        """Go on from what `state` returned, in a run with the same settings."""
        for name, own in self.state()[0].items():
            if name not in arrays or (name not in _VARYING and arrays[name].shape != own.shape):
                raise StoreError(f"array {name!r} is not that of such a run")
        self._learner.restore(arrays)
        self._scale.restore(arrays)
        ends = np.cumsum(arrays["state_lengths"]).tolist()
        content = arrays["states"].tobytes()
        self._levels.restore([content[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)])
        self._returns[:], self._lengths[:] = arrays["returns"], arrays["lengths"]
        self._recent.extend((total, length) for total, length in arrays["recent"].tolist())
        self.steps, self.episodes = int(metadata["steps"]), int(metadata["episodes"])
        self._rng.bit_generator.state = metadata["random"]

    # --- rollouts

    def _rollout(self) -> Rollout:
        settings = self.settings
        shape = (settings.rollout_length, settings.num_envs)
        noise = self._rng.gumbel(size=(*shape, settings.num_actions)).astype(np.float32)
        action, is_done = np.empty(shape, np.int64), np.empty(shape, np.bool_)
        reward, outputs = np.empty(shape, np.float32), np.empty((*shape, settings.num_actions + 1), np.float32)

        for step in range(settings.rollout_length):
            cut_into_blocks(self._levels.images, self._blocks[step].numpy())
            outputs[step] = self._learner.outputs(self._blocks[step])
            # The Gumbel trick: a sample of softmax(logits).
            action[step] = (outputs[step, :, :-1] + noise[step]).argmax(axis=1)
            reward[step], is_done[step] = self._levels.step(action[step].astype(np.int32))
        last = torch.empty_like(self._blocks[0])
        cut_into_blocks(self._levels.images, last.numpy())
        return Rollout(action, reward, is_done, outputs, self._learner.outputs(last)[:, -1])

    def _count_episodes(self, rollout: Rollout) -> None:
        for reward, is_done in zip(rollout.reward, rollout.is_done, strict=True):
            self._returns += reward
            self._lengths += 1
            for which in np.flatnonzero(is_done).tolist():
                self._recent.append((float(self._returns[which]), float(self._lengths[which])))
                self._returns[which] = self._lengths[which] = 0
                self.episodes += 1

    def _recent_means(self) -> tuple[float | None, float | None]:
        if not self._recent:
            return None, None
        total, length = map(math.fsum, zip(*self._recent, strict=True))
        return total / len(self._recent), length / len(self._recent)


def _samples(settings: PretrainingSettings, rollout: Rollout, scaled: Floats) -> Samples:
    """What the gradient steps learn from: every step of the rollout, flattened."""
    value = rollout.outputs[:, :, -1]
    advantage = generalised_advantages(
        scaled, value, rollout.is_done, rollout.last_value, settings.gamma, settings.gae_lambda
    )
    action = torch.from_numpy(rollout.action).flatten()
    log_policy = torch.from_numpy(rollout.outputs[:, :, :-1]).flatten(0, 1).log_softmax(dim=1)
    return Samples(
        action=action,
        log_probability=log_policy.gather(1, action[:, None])[:, 0],
        advantage=torch.from_numpy(advantage).flatten(),
        target=torch.from_numpy(advantage + value).flatten(),
    )
