"""SQIRL with a network (extra `train`): regression by an MLP with one head for each step of k.

Head 1 is fitted to returns (Q^1), head j to r + max_a' of head j - 1 in the next state (Q^j); the policy is greedy on
head k. Adam with learning rate 1e-4, batches of 128, 10 epochs at each timestep, over the data of all timesteps so far:
one network for all of them, which sees what PPO and DQN see, not the time and not the previous action. With
fewer than k steps left, the policy is greedy on the head for as many steps as are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.observations import FlatColumns, ObservedTable, UntrainableTableError
from efhorizon.agents.streams import streams
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sqirl import InvalidSqirlError, empty_played, play
from efhorizon.stochastic.training import is_solved

BEHAVIOUR = 1  # raise it when the same inputs give another result

HIDDEN = 64


@dataclass(frozen=True)
class SqirlSettings:
    """The authors' numbers."""

    rate: float = 1e-4
    batch: int = 128
    epochs: int = 10


@dataclass(frozen=True)
class NetworkRun:
    """One run: the exact return of its policy, and the timesteps played."""

    found_return: float
    optimal_return: float
    timesteps: int

    @property
    def is_success(self) -> bool:
        return is_solved(self.found_return, self.optimal_return)


def sqirl_network(
    plan: Plan,
    table: ObservedTable,
    *,
    k: int,
    m: int,
    seed: int,
    settings: SqirlSettings | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> NetworkRun:
    """One run on a table whose nodes are the states of the plan's MDP (see `observed.py`)."""
    mdp = plan.mdp
    if not 1 <= k <= mdp.horizon or m < 1:
        raise InvalidSqirlError(f"SQIRL needs 1 <= k <= T and at least one episode; got k={k}, m={m}")
    if not isinstance(table.seen, FlatColumns):
        raise UntrainableTableError(f"{table.id}: SQIRL's network is for flat observations")
    learner = _Learner(table.seen.values, k, mdp.num_actions, seed, settings or SqirlSettings())
    words = streams(np.random.default_rng([seed, 2]), 1)[0]
    actions = np.zeros((mdp.horizon, mdp.num_states), np.int32)
    starts, timesteps, played = np.cumsum(mdp.initial_probabilities), 0, empty_played(m, k)
    for time in range(mdp.horizon):
        steps = min(k, mdp.horizon - time)
        timesteps += play(plan.outcomes, time, steps, mdp.initial_states, starts, words, actions, played)
        for place in range(steps):
            met = played.path[:, place] >= 0
            following = played.path[met, place + 1]
            learner.add(
                steps - 1 - place,  # the last step of the plan is that of head 1, which is number 0
                table.observation[played.path[met, place]],
                played.taken[met, place],
                played.rewards[met, place] + (played.tails[met] if place == steps - 1 else 0.0),
                np.where(following >= 0, table.observation[np.maximum(following, 0)], -1),
            )
        learner.fit()
        actions[time] = learner.greedy(steps - 1)[table.observation]
        if on_progress is not None:
            on_progress(time + 1)
    return NetworkRun(plan.return_of(actions), plan.optimal.values.at_start, timesteps)


class _Learner:
    """The network, its optimiser, and the samples of each head so far."""

    def __init__(
        self, seen: NDArray[np.float32], num_heads: int, num_actions: int, seed: int, settings: SqirlSettings
    ) -> None:
        import torch  # takes seconds

        self._torch: Any = torch
        torch.manual_seed(seed)
        self._shape, self._settings = (num_heads, num_actions), settings
        self._seen: Any = torch.as_tensor(np.ascontiguousarray(seen))
        self._network: Any = torch.nn.Sequential(
            torch.nn.Linear(seen.shape[1], HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, num_heads * num_actions),
        )
        self._optimiser: Any = torch.optim.Adam(self._network.parameters(), lr=settings.rate)
        self._samples: list[list[tuple[NDArray[Any], ...]]] = [[] for _ in range(num_heads)]
        self._rng = np.random.default_rng([seed, 3])

    def add(
        self,
        head: int,
        observation: NDArray[np.int32],
        action: NDArray[np.int32],
        reward: NDArray[np.float64],
        following: NDArray[np.int32],
    ) -> None:
        """Samples for one head; `following` is -1 where the episode was over."""
        self._samples[head].append((observation.copy(), action.copy(), reward.copy(), following.copy()))

    def fit(self) -> None:
        """Head after head, each on its own samples, with targets from the head before."""
        torch = self._torch
        for head, samples in enumerate(self._samples):
            if not samples:
                continue
            observation, action, reward, following = (np.concatenate(part) for part in zip(*samples, strict=True))
            target = reward.astype(np.float32)
            if head > 0:
                goes_on = following >= 0
                target[goes_on] += self._values(head - 1)[following[goes_on]]
            targets, actions = torch.as_tensor(target), torch.as_tensor(action.astype(np.int64))
            for _ in range(self._settings.epochs):
                order = self._rng.permutation(len(target))
                for begun in range(0, len(order), self._settings.batch):
                    chosen = order[begun : begun + self._settings.batch]
                    outputs = self._network(self._seen[observation[chosen]])
                    rows = outputs.reshape(len(chosen), *self._shape)[:, head]
                    picked = rows.gather(1, actions[chosen][:, None])[:, 0]
                    loss = ((picked - targets[chosen]) ** 2).mean()
                    self._optimiser.zero_grad()
                    loss.backward()
                    self._optimiser.step()

    def greedy(self, head: int) -> NDArray[np.int32]:
        """The action of the largest value for each observation [U]."""
        found: NDArray[np.int32] = self._outputs(head).argmax(axis=1).astype(np.int32)
        return found

    def _values(self, head: int) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._outputs(head).max(axis=1)
        return found

    def _outputs(self, head: int) -> NDArray[np.float32]:
        with self._torch.no_grad():
            outputs = self._network(self._seen).reshape(len(self._seen), *self._shape)
        found: NDArray[np.float32] = outputs[:, head].numpy()
        return found
