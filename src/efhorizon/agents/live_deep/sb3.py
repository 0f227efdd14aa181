"""PPO and DQN by Stable-Baselines3 on live environments: the reference for our own learners.

The same environments, observations, settings, evaluations and curve as `training`. A run cannot be stopped and resumed:
Stable-Baselines3 keeps neither its environments nor its random numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch

from efhorizon.agents.deep.sb3 import libraries
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.agents.live_deep.games import Game
from efhorizon.agents.live_deep.training import EPISODES_WITH_CHANCE, Course, LiveTraining
from efhorizon.agents.live_deep.vector import made_game

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

_MAX_SEED = 2**31 - 1


class GameEnv(gymnasium.Env[Any, Any]):
    """A `Game` for Gymnasium. The return in points of an episode is in the info of its last step."""

    def __init__(self, game: Game, seed: int) -> None:
        self.game, self._rng = game, np.random.default_rng(seed)
        first = game.reset(0)
        low, high = (0, 255) if first.dtype == np.uint8 else (-np.inf, np.inf)
        self.observation_space = gymnasium.spaces.Box(low, high, first.shape, first.dtype.type)
        self.action_space = gymnasium.spaces.Discrete(game.num_actions)
        self._points = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._points = 0.0
        return self.game.reset(int(self._rng.integers(_MAX_SEED))), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, points, terminated, is_cut = self.game.step(int(action))
        self._points += points
        return observation, reward, terminated, is_cut, {"points": self._points}

    def close(self) -> None:
        self.game.close()


def train_with_sb3(
    training: LiveTraining,
    *,
    max_steps: int,
    device: torch.device,
    on_progress: Callable[[Course], None] | None = None,
) -> Course:
    """Train until `max_steps` timesteps."""
    libraries()
    from stable_baselines3.common.callbacks import BaseCallback

    course, model = Course(), sb3_model(training, device)
    began = time.monotonic()

    class Follower(BaseCallback):
        """Notes episodes and plays the greedy ones when they are due."""

        def _on_step(self) -> bool:
            infos, dones = self.locals["infos"], self.locals["dones"]
            course.note([info["points"] for info, done in zip(infos, dones, strict=True) if done])
            before, course.steps = course.steps, self.num_timesteps
            if course.steps // training.interval > before // training.interval or course.steps >= max_steps:
                course.evaluated(_greedy_returns(training, model, course.steps))
            course.seconds = time.monotonic() - began
            if on_progress is not None:
                on_progress(course)
            return course.steps < max_steps

    settings = training.settings
    total = max_steps if isinstance(settings, PPOSettings) else max(max_steps, settings.schedule_steps)
    model.learn(total, callback=Follower())
    course.seconds = time.monotonic() - began
    model.env.close()
    return course


def sb3_model(training: LiveTraining, device: torch.device) -> Any:
    """The model with its environments."""
    library, _ = libraries()
    settings, rng = training.settings, np.random.default_rng([training.seed, 1])
    seeds = rng.integers(_MAX_SEED, size=training.num_envs).tolist()
    envs = library.common.vec_env.DummyVecEnv(
        [lambda seed=seed: GameEnv(made_game(training.name), seed) for seed in seeds]
    )
    is_image = envs.observation_space.dtype == np.uint8
    common = {
        "learning_rate": settings.rate,
        "batch_size": settings.minibatch,
        "gamma": settings.gamma,
        "max_grad_norm": settings.max_gradient_norm,
        "policy_kwargs": {"activation_fn": torch.nn.ReLU},
        "seed": training.seed,
        "device": device,
    }
    policy = "CnnPolicy" if is_image else "MlpPolicy"
    if isinstance(settings, PPOSettings):
        return library.PPO(
            policy,
            envs,
            n_steps=settings.rollout_length,
            n_epochs=settings.num_epochs,
            gae_lambda=settings.gae_lambda,
            clip_range=settings.clip,
            ent_coef=settings.entropy_weight,
            vf_coef=settings.value_weight,
            **common,
        )
    return library.DQN(
        policy,
        envs,
        buffer_size=settings.buffer_size,
        learning_starts=0,
        train_freq=1,  # a step of all environments, as many as there are timesteps between gradient steps
        gradient_steps=1,
        target_update_interval=settings.target_interval,
        exploration_fraction=settings.exploration_fraction,
        exploration_final_eps=settings.final_epsilon,
        **common,
    )


def _greedy_returns(training: LiveTraining, model: Any, steps: int) -> list[float]:
    env = GameEnv(made_game(training.name), int(np.random.default_rng([training.seed, 2, steps]).integers(_MAX_SEED)))
    found: list[float] = []
    while len(found) < (EPISODES_WITH_CHANCE if env.game.has_chance else 1):
        observation, _ = env.reset()
        is_over, info = False, dict[str, Any]()
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, is_cut, info = env.step(action)
            is_over = terminated or is_cut
        found.append(float(info["points"]))
    env.close()
    return found
