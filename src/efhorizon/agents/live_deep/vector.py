"""Several live environments that take their steps together; an episode that ends is followed by the next at once.

Emulators of Atari let go of Python's lock while they play, so they run in threads; the order of results does not depend
on which is done first. Every episode is reset with a seed of its own, drawn from one generator in the order in which
episodes end.

Legend: N environments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.agents.live_deep.games import Array, BridgeGame, Game, GymnasiumGame
from efhorizon.catalog import find
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.environment_source import environment_source, is_environment_name, time_limit
from efhorizon.suites.simulator import SimulatorError

_MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class Stepped:
    """What a step of all environments brought."""

    reward: NDArray[np.float32]  # [N], to learn from
    is_done: NDArray[np.bool_]  # [N], whether the episode is over
    last: Mapping[int, Array]  # the last observations of episodes that were cut short and would have gone on
    returns: Sequence[float]  # in points, of the episodes that are over


class LiveEnvs:
    """N environments of one name."""

    def __init__(self, name: EnvironmentName, num_envs: int, seed: Sequence[int], threads: int = 1) -> None:
        self._games = [made_game(name) for _ in range(num_envs)]
        self._rng = np.random.default_rng(list(seed))
        is_shared = threads > 1 and not self._games[0].holds_lock
        self._pool = ThreadPoolExecutor(threads) if is_shared else None
        self.points = np.zeros(num_envs)  # of the episodes so far
        first = [game.reset(self._seed()) for game in self._games]
        self.observations: Array = np.stack(first)  # [N, ...]
        self.num_actions, self.has_chance = self._games[0].num_actions, self._games[0].has_chance
        self.stack = self._games[0].stack

    def step(self, actions: NDArray[np.int64]) -> Stepped:
        taken = list(zip(self._games, actions.tolist(), strict=True))
        found = list(map(_step, taken) if self._pool is None else self._pool.map(_step, taken))
        reward, is_done = np.empty(len(found), np.float32), np.zeros(len(found), np.bool_)
        last: dict[int, Array] = {}
        returns: list[float] = []
        for which, (observation, paid, points, terminated, is_cut) in enumerate(found):
            reward[which], is_done[which] = paid, terminated or is_cut
            self.points[which] += points
            self.observations[which] = observation
            if is_done[which]:
                if is_cut:
                    last[which] = observation
                returns.append(float(self.points[which]))
                self.points[which] = 0
                self.observations[which] = self._games[which].reset(self._seed())
        return Stepped(reward, is_done, last, returns)

    def restart(self) -> None:
        """Begin a new episode everywhere."""
        self.points[:] = 0
        self.observations[:] = np.stack([game.reset(self._seed()) for game in self._games])

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        for game in self._games:
            game.close()

    # --- checkpoints

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON: copies."""
        states = [game.state() for game in self._games]
        arrays = {
            "env_states": np.frombuffer(b"".join(states), np.uint8).copy(),
            "env_lengths": np.array([len(state) for state in states]),
            "env_points": self.points.copy(),
        }
        return arrays, {"env_random": self._rng.bit_generator.state}

    def restore(self, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        content, start = arrays["env_states"].tobytes(), 0
        for which, (game, length) in enumerate(zip(self._games, arrays["env_lengths"].tolist(), strict=True)):
            self.observations[which] = game.restore(content[start : start + length])
            start += length
        self.points[:] = arrays["env_points"]
        self._rng.bit_generator.state = metadata["env_random"]

    def _seed(self) -> int:
        return int(self._rng.integers(_MAX_SEED))


def known_entry(name: EnvironmentName) -> Entry | None:
    """The entry of the catalogue, or the full-length Atari game, that a name means; None: Gymnasium makes it."""
    if name.arguments or name.wrappers:
        return None
    unlisted = (suite.unlisted_entry(name.name) for suite in registry.suites())
    entry = find(name.name) or next((found for found in unlisted if found is not None), None)
    return entry if entry is None or name.horizon is None else entry.with_horizon(name.horizon)


def made_game(name: EnvironmentName) -> Game:
    """A new environment."""
    entry = known_entry(name)
    if entry is not None:
        return BridgeGame(entry)
    if not is_environment_name(name.name):
        raise SimulatorError(f"{name.name}: neither in the catalogue nor a Gymnasium environment, nor file.py:Class")
    source = environment_source(name.name, name.arguments, name.wrappers)
    return GymnasiumGame(source.made(), name.horizon or time_limit(source), name.name)


def _step(taken: tuple[Game, int]) -> tuple[Array, float, float, bool, bool]:
    game, action = taken
    return game.step(action)
