"""Episodes of SQIRL in an environment without a table: what a policy is, and playing by it.

Every episode is reset with a seed of its own, drawn from one generator. With sticky actions the previous action is
executed again with some chance from the second step on; the agent is not told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.agents.live_deep.games import Array
from efhorizon.agents.live_deep.vector import known_entry, made_game
from efhorizon.errors import EfhorizonError
from efhorizon.suites.environment_source import environment_source, time_limit

_MAX_SEED = 2**31 - 1


class UnsuitableEnvironmentError(EfhorizonError):
    """An environment in which SQIRL cannot play; the message is one line for the user."""


class Policy(Protocol):
    """What has been learned so far."""

    def action(self, time: int, observation: Array) -> int | None:
        """The action at a time; None: any."""


@dataclass(frozen=True)
class Step:
    """One step of an episode that was played to learn from."""

    observation: Array
    action: int
    reward: float
    following: Array | None  # None: the episode was over


@dataclass(frozen=True)
class Episode:
    """The steps from some time on that are learned from, and what came after them."""

    steps: tuple[Step, ...]
    tail: float  # the return after these steps
    length: int
    total: float


class LiveGame:
    """An environment, its horizon, and the random numbers that it is played with. Observations are float32 [D]."""

    def __init__(self, name: EnvironmentName, *, chance: float = 0.0, seed: int = 0) -> None:
        self._game = made_game(name)
        self.num_actions, self.chance = self._game.num_actions, chance
        self.horizon = _horizon(name)
        self._rng = np.random.default_rng([seed, 4])
        first = self._game.reset(0)
        if first.ndim != 1:
            raise UnsuitableEnvironmentError(
                f"{name.name}: observations are pictures of {first.shape}; SQIRL learns from flat ones"
            )
        self.width = len(first)

    def episode(self, policy: Policy, until: int, kept: int) -> Episode:
        """Follow a policy up to a time, then act at random; keep so many steps from that time on."""
        observation, steps, tail, total, previous = self._reset(), list[Step](), 0.0, 0.0, -1
        for time in range(self.horizon):
            action = policy.action(time, observation) if time < until else None
            if action is None:
                action = int(self._rng.integers(self.num_actions))
            executed = self._executed(action, previous)
            seen, _, points, terminated, truncated = self._game.step(executed)
            after = np.asarray(seen, np.float32)
            is_over = terminated or truncated or time + 1 == self.horizon
            if until <= time < until + kept:
                steps.append(Step(observation, action, points, None if is_over else after))
            elif time >= until + kept:
                tail += points
            total += points
            if is_over:
                return Episode(tuple(steps), tail, time + 1, total)
            observation, previous = after, executed
        raise AssertionError("an episode has at least one step")

    def close(self) -> None:
        self._game.close()

    def _reset(self) -> Array:
        return np.asarray(self._game.reset(int(self._rng.integers(_MAX_SEED))), np.float32)

    def _executed(self, action: int, previous: int) -> int:
        is_repeated = self.chance > 0 and previous >= 0 and self._rng.random() < self.chance
        return previous if is_repeated else action


def numbered(observations: list[Array], numbers: dict[bytes, int], seen: list[Array]) -> NDArray[np.int32]:
    """The numbers of observations, each of which is kept once; new ones are added to `seen`."""
    found = np.empty(len(observations), np.int32)
    for place, observation in enumerate(observations):
        key = observation.tobytes()
        if key not in numbers:
            numbers[key] = len(seen)
            seen.append(observation)
        found[place] = numbers[key]
    return found


def _horizon(name: EnvironmentName) -> int:
    entry = known_entry(name)
    if entry is not None:
        return entry.horizon
    found = name.horizon or time_limit(environment_source(name.name, name.arguments, name.wrappers))
    if found is None:
        raise UnsuitableEnvironmentError(
            f"{name.name}: it has no time limit; say how long an episode is, as in --horizon 50"
        )
    return int(found)
