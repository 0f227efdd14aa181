"""DQN with a CNN, for tables with images: the environment is looked up, the learner is torch's.

Legend: B seeds, M samples of a minibatch, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.dqn_flat import explores, rules_of
from efhorizon.agents.deep.images import ImageNetwork, Images, Remembered, each, greedy_return
from efhorizon.agents.deep.networks import first_parameters, network_for
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.settings import DQNSettings
from efhorizon.agents.streams import drawn_action, drawn_below, streams
from efhorizon.planning.policies import ExplorationPolicy

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py


class ImageDQN:
    """The learners of several seeds; see `DQNLearners`."""

    def __init__(
        self,
        table: ObservedTable,
        settings: DQNSettings,
        interval: int,
        seeds: Sequence[int],
        initial: NDArray[np.float32] | None = None,
        exploration_policy: ExplorationPolicy | None = None,
    ) -> None:
        images, starts = Images(table), first_parameters(network_for("q", table), seeds, initial)
        self._interval = interval
        self.learners = [
            ImageDQNSeed(table, images, settings, seed, theta, exploration_policy)
            for seed, theta in zip(seeds, starts, strict=True)
        ]

    def interval(self, step: int) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        played = each(self.learners, lambda learner: learner.interval(step, self._interval))
        is_done, units, greedy = zip(*played, strict=True)
        return np.stack(is_done), np.stack(units), np.array(greedy)

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        self.learners = [self.learners[place] for place in places]
        return places


class ImageDQNSeed:
    """One seed: its networks, its replay buffer, and where its environment is."""

    def __init__(
        self,
        table: ObservedTable,
        images: Images,
        settings: DQNSettings,
        seed: int,
        theta: NDArray[np.float32],
        exploration_policy: ExplorationPolicy | None,
    ) -> None:
        probabilities = None if exploration_policy is None else exploration_policy.probabilities
        self._probabilities = np.zeros((0, 0, 0)) if probabilities is None else probabilities
        self._table, self._settings, self._rules = table, settings, rules_of(table, settings)
        self.network = ImageNetwork(table, images, "q", theta, settings)
        self._target = Remembered(self.network.frozen())
        self.buffer = np.zeros(settings.buffer_size, np.int32)
        self._node, self._time, self._units = 0, 0, 0
        self._words = streams(np.random.default_rng([seed, 1]), 1)[0]

    def interval(self, step: int, length: int) -> tuple[NDArray[np.bool_], NDArray[np.int64], int]:
        """Ends of episodes and returns until then [interval], and the return of the greedy episode at the end."""
        settings, greedy = self._settings, 0
        is_done, units = np.zeros(length, np.bool_), np.zeros(length, np.int64)
        for begun in range(0, length, settings.train_every):
            for now in range(begun, begun + settings.train_every):
                place = (step + now) % len(self.buffer)
                self.buffer[place], is_done[now], units[now] = self._act(step + now)
            taken = step + begun + settings.train_every
            if taken % settings.target_interval == 0:
                self._target = Remembered(self.network.frozen())
            if begun + settings.train_every == length:
                greedy = greedy_return(self._table, self.network.values)
            stored = min(taken, len(self.buffer))
            places = [drawn_below(self._words, stored) for _ in range(settings.minibatch)]
            self.learn(self.buffer[places])
        return is_done, units, greedy

    def learn(self, codes: NDArray[np.int32]) -> None:
        """A gradient step on packed transitions [M]."""
        table = self._table
        pairs, is_end = codes // 2, codes % 2
        node, action = np.divmod(pairs, table.num_actions)
        following = table.observation[np.maximum(table.transitions[node, action], 0)]
        best = self._target(following).max(axis=1)
        wanted = table.rewards[node, action] + (1 - is_end) * np.float32(self._settings.gamma) * best
        values = self.network.outputs(table.observation[node])
        chosen = values.gather(1, torch.from_numpy(action.astype(np.int64))[:, None])[:, 0]
        self.network.improve(functional.smooth_l1_loss(chosen, torch.from_numpy(wanted.astype(np.float32))))

    def _act(self, step: int) -> tuple[int, bool, int]:
        """One step of the environment: the packed transition, whether the episode ended, its return until now."""
        table, node = self._table, self._node
        if explores(step, self._words, self._rules):
            state = table.state[node]
            action = drawn_action(self._words, self._time, state, table.num_actions, self._probabilities)
        else:
            action = int(self.network.values(table.observation[[node]])[0].argmax())
        following = int(table.transitions[node, action])
        units = self._units + int(table.reward_units[node, action])
        is_done = following < 0 or self._time + 1 >= table.horizon
        self._node, self._time, self._units = (0, 0, 0) if is_done else (following, self._time + 1, units)
        return 2 * (node * table.num_actions + action) + is_done, is_done, units
