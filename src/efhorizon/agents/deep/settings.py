"""Hyperparameters of PPO and DQN (Appendix F): the defaults are the paper's, the rest Stable-Baselines3's."""

from __future__ import annotations

from dataclasses import dataclass

from efhorizon.agents.deep.protocol import PAPER_STEPS


@dataclass(frozen=True)
class PPOSettings:
    """PPO."""

    gamma: float  # discount: 0.99 on MiniGrid, 1 elsewhere
    rollout_length: int = 128  # steps of each environment between updates: 128 or 1280
    num_envs: int = 8
    clip: float = 0.1  # of the probability ratio
    value_weight: float = 0.5
    entropy_weight: float = 0.01
    rate: float = 2.5e-4  # Adam's learning rate, constant
    num_epochs: int = 4
    minibatch: int = 256
    gae_lambda: float = 0.95
    max_gradient_norm: float = 0.5
    adam_epsilon: float = 1e-5  # Stable-Baselines3's for PPO

    @property
    def samples(self) -> int:
        """Timesteps of one rollout."""
        return self.num_envs * self.rollout_length

    @property
    def first_update(self) -> int:
        """Timesteps before the first gradient step: what happens up to then is the untrained network's doing."""
        return self.samples


@dataclass(frozen=True)
class DQNSettings:
    """DQN."""

    gamma: float  # discount: 0.99 on MiniGrid, 1 elsewhere
    exploration_fraction: float = 0.1  # of `schedule_steps`, over which epsilon falls: 0.1 or 1
    schedule_steps: int = PAPER_STEPS  # length of the whole schedule, however long a run is
    final_epsilon: float = 0.01
    rate: float = 1e-4  # Adam's learning rate, constant; the paper's table also says 1e-3, the authors ran 1e-4
    minibatch: int = 32
    buffer_size: int = 100_000
    target_interval: int = 1_000  # timesteps between copies to the target network
    train_every: int = 4  # timesteps between gradient steps; learning starts with the first four
    max_gradient_norm: float = 10.0
    adam_epsilon: float = 1e-8  # torch's default

    @property
    def first_update(self) -> int:
        """Timesteps before the first gradient step."""
        return self.train_every

    def keeps_values(self, num_observations: int) -> bool:
        """Whether keeping all target values is cheaper than computing those of the minibatches until the next copy."""
        return num_observations <= self.minibatch * self.target_interval // self.train_every
