"""Small made-up tables with observations, and Stable-Baselines3 models that see the same."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from efhorizon.agents.deep.observations import FlatColumns, ImageStacks, ObservedTable, merged_columns

NUM_ACTIONS = 3


def flat_observations(rng: np.random.Generator, num_observations: int = 40) -> np.ndarray:
    """Observations [U, D] with what MiniGrid's have: zeros, constants, columns that are equal."""
    varied = rng.integers(0, 5, (num_observations, 6))
    parts = [varied, varied[:, :2], np.zeros((num_observations, 4)), np.ones((num_observations, 5))]
    return np.concatenate([*parts, np.full((num_observations, 3), 7)], axis=1).astype(np.uint8)


def made_up_table(rng: np.random.Generator, seen: FlatColumns | ImageStacks, num_nodes: int = 60) -> ObservedTable:
    """Random transitions and rewards; every observation is seen somewhere."""
    num_observations = len(seen.values) if isinstance(seen, FlatColumns) else len(seen.stacks)
    transitions = rng.integers(-1, num_nodes, (num_nodes, NUM_ACTIONS)).astype(np.int32)
    units = rng.integers(-1, 3, (num_nodes, NUM_ACTIONS)).astype(np.int32)
    return ObservedTable(
        id="made-up",
        transitions=transitions,
        rewards=(units * 0.5).astype(np.float32),
        reward_units=units,
        unit=1.0,
        horizon=7,
        state=np.arange(num_nodes, dtype=np.int32),
        observation=(np.arange(num_nodes) % num_observations).astype(np.int32),
        seen=seen,
        optimal_units=10**6,
        bootstraps_at_horizon=isinstance(seen, FlatColumns),
    )


def flat_table(rng: np.random.Generator) -> tuple[ObservedTable, np.ndarray]:
    observations = flat_observations(rng)
    return made_up_table(rng, merged_columns(observations)), observations


def image_table(rng: np.random.Generator, num_observations: int = 40) -> tuple[ObservedTable, np.ndarray]:
    frames = rng.integers(0, 256, (num_observations, 36, 36, 3)).astype(np.uint8)
    seen = ImageStacks(frames, np.arange(num_observations, dtype=np.int32)[:, None])
    return made_up_table(rng, seen), frames


class ShownEnv(gymnasium.Env[Any, Any]):
    """An environment that only has spaces."""

    def __init__(self, observations: np.ndarray) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, observations.shape[1:], np.uint8)
        self.action_space = gymnasium.spaces.Discrete(NUM_ACTIONS)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return np.zeros(self.observation_space.shape, np.uint8), {}


def numpy_state(policy: Any) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy().copy() for name, tensor in policy.state_dict().items()}


def channels_first(observations: np.ndarray) -> np.ndarray:
    return observations.transpose(0, 3, 1, 2) if observations.ndim == 4 else observations


def walk_table(size: int = 4, horizon: int = 12, *, is_seen: bool = False) -> ObservedTable:
    """A walk on 0 .. size - 1: left, stay, right; stepping off the right end pays 1 and ends the episode.

    The place is shown as a flat vector, or as an image with one bright column.
    """
    positions = np.arange(size)
    transitions = np.stack([np.maximum(positions - 1, 0), positions, positions + 1], axis=1)
    transitions[-1, 2] = -1
    units = (transitions == -1).astype(np.int32)
    return ObservedTable(
        id="walk",
        transitions=transitions.astype(np.int32),
        rewards=units.astype(np.float32),
        reward_units=units,
        unit=1.0,
        horizon=horizon,
        state=positions.astype(np.int32),
        observation=positions.astype(np.int32),
        seen=_bright_columns(size) if is_seen else merged_columns(np.eye(size, dtype=np.uint8)),
        optimal_units=1,
        bootstraps_at_horizon=not is_seen,
    )


def _bright_columns(size: int) -> ImageStacks:
    frames = np.zeros((size, 36, 36, 3), np.uint8)
    for place in range(size):
        frames[place, :, place * 36 // size : (place + 1) * 36 // size] = 255
    return ImageStacks(frames, np.arange(size, dtype=np.int32)[:, None])
