"""SQIRL in an environment with chance, without a table.

For t = 0 .. T - 1:
    play m episodes: the policy found so far up to time t, then random actions
    fit Q^1 to returns k steps ahead, go back k - 1 steps by fitted Q-iteration
    pi_t = greedy

Regression is the mean of each (observation, action)'s samples at each time, where observations come again, or a network
for all times (`sqirl_learner.py`). A policy of means acts at random where it has seen nothing. What is observed is what
PPO and DQN see in the same environment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.live_deep.games import Array
from efhorizon.stochastic.live_episodes import Episode, LiveGame, Policy, numbered
from efhorizon.stochastic.sqirl import InvalidSqirlError
from efhorizon.stochastic.sqirl_learner import HeadsLearner, SqirlSettings

BEHAVIOUR = 1  # raise it when the same inputs give another result

Regression = Literal["means", "network"]


@dataclass(frozen=True)
class LiveSqirl:
    """What SQIRL found in an environment."""

    policy: Policy
    timesteps: int
    returns: tuple[float, float]  # the least and the largest of any episode that was played


class _Learner(Policy, Protocol):
    def learn(self, episodes: Sequence[Episode], steps: int) -> None:
        """Find the policy of the next time, whose steps come first in the episodes."""


def sqirl_live(
    game: LiveGame,
    *,
    k: int,
    m: int,
    seed: int = 0,
    regression: Regression = "means",
    settings: SqirlSettings | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LiveSqirl:
    """One run. `on_progress` receives the time that is planned and the timesteps so far."""
    if not 1 <= k <= game.horizon or m < 1:
        raise InvalidSqirlError(f"SQIRL needs 1 <= k <= T and at least one episode; got k={k}, m={m}")
    if regression == "means":
        learner: _Learner = _Means(game.num_actions, np.random.default_rng([seed, 5]))
    else:
        learner = _Network(game, k, seed, settings or SqirlSettings())
    timesteps, lowest, highest = 0, np.inf, -np.inf
    for time in range(game.horizon):
        steps = min(k, game.horizon - time)
        episodes = [game.episode(learner, time, steps) for _ in range(m)]
        timesteps += sum(episode.length for episode in episodes)
        lowest = min(lowest, *(episode.total for episode in episodes))
        highest = max(highest, *(episode.total for episode in episodes))
        learner.learn(episodes, steps)
        if on_progress is not None:
            on_progress(time + 1, timesteps)
    return LiveSqirl(learner, timesteps, (float(lowest), float(highest)))


class _Means:
    """The mean of the samples of each observation and action, at each time for itself."""

    def __init__(self, num_actions: int, rng: np.random.Generator) -> None:
        self._num_actions, self._rng = num_actions, rng
        self._actions: list[dict[bytes, int]] = []  # by time

    def action(self, time: int, observation: Array) -> int | None:
        return self._actions[time].get(observation.tobytes())

    def learn(self, episodes: Sequence[Episode], steps: int) -> None:
        values: dict[bytes, float] = {}  # of the step after: the largest mean of each observation
        greedy: dict[bytes, int] = {}
        for place in reversed(range(steps)):
            sums: dict[bytes, NDArray[np.float64]] = {}  # [2, A], sums of targets and their number
            for episode in episodes:
                if place >= len(episode.steps):
                    continue
                step = episode.steps[place]
                if place == steps - 1:
                    after = episode.tail
                else:
                    after = 0.0 if step.following is None else values[step.following.tobytes()]
                row = sums.setdefault(step.observation.tobytes(), np.zeros((2, self._num_actions)))
                row[:, step.action] += step.reward + after, 1.0
            values, greedy = {}, {}
            for key, (total, count) in sums.items():
                means = np.divide(total, count, out=np.full(self._num_actions, -np.inf), where=count > 0)
                values[key] = float(means.max())
                greedy[key] = int(self._rng.choice(np.flatnonzero(means == values[key])))
        self._actions.append(greedy)


class _Network:
    """One network for all times; the policy of a time is the network as it was then."""

    def __init__(self, game: LiveGame, k: int, seed: int, settings: SqirlSettings) -> None:
        self._numbers: dict[bytes, int] = {}
        self._seen: list[Array] = []
        self._shape = k, game.num_actions
        self._learner = HeadsLearner(np.zeros((0, game.width), np.float32), k, game.num_actions, seed, settings)
        self._layers: list[tuple[int, Any]] = []  # by time: the head that decides, and the weights

    def action(self, time: int, observation: Array) -> int | None:
        head, layers = self._layers[time]
        values = observation
        for weight, bias in layers[:-1]:
            values = np.maximum(values @ weight + bias, 0)
        weight, bias = layers[-1]
        return int((values @ weight + bias).reshape(self._shape)[head].argmax())

    def learn(self, episodes: Sequence[Episode], steps: int) -> None:
        for place in range(steps):
            met = [episode for episode in episodes if place < len(episode.steps)]
            taken = [episode.steps[place] for episode in met]
            if not taken:
                continue
            tails = [episode.tail if place == steps - 1 else 0.0 for episode in met]
            goes_on = [step.following for step in taken if step.following is not None]
            following = np.full(len(taken), -1, np.int32)
            following[[step.following is not None for step in taken]] = self._numbered(goes_on)
            self._learner.add(
                steps - 1 - place,  # the last step of the plan is that of head 1, which is number 0
                self._numbered([step.observation for step in taken]),
                np.array([step.action for step in taken], np.int32),
                np.array([step.reward for step in taken]) + tails,
                following,
            )
        self._learner.see(np.stack(self._seen))
        self._learner.fit()
        self._layers.append((steps - 1, self._learner.weights()))

    def _numbered(self, observations: list[Array]) -> NDArray[np.int32]:
        return numbered(observations, self._numbers, self._seen)
