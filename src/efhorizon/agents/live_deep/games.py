"""One live environment as a learner meets it: prepared observations, rewards to learn from, points, and its state.

    BridgeGame       an entry of the catalogue, or a full-length Atari game: put back by its snapshot
    GymnasiumGame    any other Gymnasium environment with discrete actions: put back by its seed and actions

A state is all that the rest of an episode depends on, as long as the environment draws everything random from the seed
of its reset: then a run that was stopped goes on as if it had not been.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from efhorizon.agents.deep.networks import Network
from efhorizon.agents.deep.observations import FlatColumns
from efhorizon.agents.live.bridge_env import BridgeEnv
from efhorizon.errors import EfhorizonError
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.observation_reader import LEAST_IMAGE_SIDE, image_for_network
from efhorizon.suites.simulator import SimulatorError

Array = NDArray[Any]
_GREY = np.array((0.299, 0.587, 0.114), np.float32)  # of red, green and blue
_ATARI_SIDE, _ATARI_STACK = 84, 4


class UnreadableSpaceError(EfhorizonError):
    """Observations or actions with which our learners cannot work; the message is one line for the user."""


class Game(Protocol):
    """One environment."""

    num_actions: int
    has_chance: bool  # whether another seed gives another episode
    stack: int  # frames in an observation, along its last axis
    holds_lock: bool  # whether steps of several environments cannot run at the same time in threads

    def reset(self, seed: int) -> Array:
        """The first observation."""

    def step(self, action: int) -> tuple[Array, float, float, bool, bool]:
        """Observation, reward, points, whether the episode ended, whether it was cut short (and would have gone on)."""

    def state(self) -> bytes: ...

    def restore(self, state: bytes) -> Array:
        """Go to a state; the observation there."""

    def close(self) -> None: ...


class BridgeGame:
    """An entry of the catalogue; rewards are divided by its factor, and the horizon ends an episode."""

    has_chance = False

    def __init__(self, entry: Entry) -> None:
        self._env, self._factor = BridgeEnv(entry), entry.reward_factor
        self._bootstraps = registry.suite(entry.suite).bootstraps_at_horizon
        self.num_actions = entry.num_actions
        self.holds_lock, self.stack = entry.suite != "atari", registry.suite(entry.suite).frame_stack
        self._actions: list[int] = []

    def reset(self, seed: int) -> Array:
        self._actions = []
        return self._env.reset()[0]

    def step(self, action: int) -> tuple[Array, float, float, bool, bool]:
        observation, points, terminated, truncated, _ = self._env.step(np.int64(action))
        self._actions.append(action)
        if truncated and not self._bootstraps:
            terminated, truncated = True, False
        return observation, points / self._factor, points, terminated, truncated

    def state(self) -> bytes:
        return json.dumps(self._actions).encode()

    def restore(self, state: bytes) -> Array:
        actions, observation = json.loads(state), self.reset(0)
        for action in actions:
            observation = self.step(action)[0]
        return observation

    def close(self) -> None:
        self._env.close()


class GymnasiumGame:
    """A Gymnasium environment; rewards are its own."""

    has_chance = True
    holds_lock = True

    def __init__(self, env: gymnasium.Env[Any, Any], limit: int | None, name: str) -> None:
        if not isinstance(env.action_space, spaces.Discrete):
            raise SimulatorError(f"{name}: the action space must be Discrete, got {env.action_space}")
        self._env, self._limit = env, limit
        self.num_actions, self._first = int(env.action_space.n), int(env.action_space.start)
        self._read = observation_reader(env.observation_space, name)
        self.stack = _ATARI_STACK if _is_atari(name) else 1
        self._seen: list[Array] = []
        self._seed, self._actions = 0, list[int]()

    def reset(self, seed: int) -> Array:
        self._seed, self._actions = seed, []
        observation, _ = self._env.reset(seed=seed)
        self._seen = [self._read(observation)] * self.stack
        return self._stacked()

    def step(self, action: int) -> tuple[Array, float, float, bool, bool]:
        observation, reward, terminated, truncated, _ = self._env.step(self._first + action)
        self._actions.append(action)
        self._seen = [*self._seen[1:], self._read(observation)]
        is_cut = truncated or len(self._actions) == self._limit
        return self._stacked(), float(reward), float(reward), bool(terminated), bool(is_cut and not terminated)

    def state(self) -> bytes:
        return json.dumps([self._seed, self._actions]).encode()

    def restore(self, state: bytes) -> Array:
        seed, actions = json.loads(state)
        observation = self.reset(seed)
        for action in actions:
            observation = self.step(action)[0]
        return observation

    def close(self) -> None:
        self._env.close()

    def _stacked(self) -> Array:
        return self._seen[0] if self.stack == 1 else np.concatenate(self._seen, axis=-1)


def observation_reader(space: spaces.Space[Any], name: str) -> Callable[[Any], Array]:
    """What a network reads of the observations of a space: an image [H, W, C] of bytes, or a vector of float32.

    Arrays of bytes with sides of at least 36 pixels are images; Atari's are made grey and 84 x 84, others are shrunk as
    those of tables are. Everything else becomes a vector: numbers as they are (bytes divided by 255), choices one-hot,
    texts left out.
    """
    if _is_image(space):
        return _atari_frame if _is_atari(name) else lambda seen: image_for_network(np.atleast_3d(seen))
    if _size(space) == 0:
        raise UnreadableSpaceError(f"{name}: a network can read nothing of {space}")
    return lambda seen: np.concatenate(_numbers(space, seen)).astype(np.float32)


def network_of(kind: Any, num_actions: int, observation: Array) -> Network:
    """The network for such observations: the Nature CNN, or MLPs."""
    if observation.dtype == np.uint8 and observation.ndim == 3:
        height, width, channels = observation.shape
        return Network(kind, num_actions, None, (height, width, channels))
    width = observation.size
    ones = np.ones(width, np.float32)
    flat = FlatColumns(np.zeros((0, width), np.float32), ones, np.arange(width, dtype=np.int32))
    return Network(kind, num_actions, flat, None)


def _is_atari(name: str) -> bool:
    return name.startswith("ALE/")


def _is_image(space: spaces.Space[Any]) -> bool:
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (2, 3):
        return False
    return min(space.shape[:2]) >= LEAST_IMAGE_SIDE


def _atari_frame(seen: Array) -> Array:
    from efhorizon.suites.atari_simulator import grey_frame

    grey = np.rint(seen.astype(np.float32) @ _GREY).astype(np.uint8) if seen.ndim == 3 else seen
    return grey_frame(grey)[:, :, None]


def _numbers(space: spaces.Space[Any], seen: Any) -> list[Array]:
    if isinstance(space, spaces.Dict):
        return [part for name, inner in space.spaces.items() for part in _numbers(inner, seen[name])]
    if isinstance(space, spaces.Tuple):
        return [part for inner, own in zip(space.spaces, seen, strict=True) for part in _numbers(inner, own)]
    if isinstance(space, spaces.Text):
        return []
    found = np.asarray(spaces.flatten(space, seen), np.float32).ravel()
    is_bytes = isinstance(space, spaces.Box) and space.dtype == np.uint8
    return [found / np.float32(255) if is_bytes else found]


def _size(space: spaces.Space[Any]) -> int:
    if isinstance(space, spaces.Dict):
        return sum(map(_size, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return sum(map(_size, space.spaces))
    if isinstance(space, spaces.Text):
        return 0
    try:
        return int(spaces.flatdim(space))
    except (NotImplementedError, ValueError):
        return 0
