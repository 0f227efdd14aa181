"""DQN with an MLP, for tables with flat observations: environment, replay buffer and learner in one compiled loop.

A thread takes a seed. The network's hidden layers are those of `flat`; then Q = hidden_2 W_2 + b_2.

Legend: B seeds, M samples of a minibatch, G columns of an observation, H hidden units, A actions, U observations,
n parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from efhorizon.agents.deep.flat import (
    FAST,
    ONE,
    ZERO,
    adam_step,
    game_of,
    head,
    pass_backward,
    pass_forward,
    show,
    tower,
    tower_size,
)
from efhorizon.agents.deep.networks import HIDDEN, first_parameters, network_for
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.settings import DQNSettings
from efhorizon.agents.streams import drawn_action, drawn_below, streams
from efhorizon.planning.policies import ExplorationPolicy

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

_BITS = 2**31


class FlatDQN:
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
        network = network_for("q", table)
        self._interval = interval
        self._game = game_of(table, exploration_policy)
        self._rules = rules_of(table, settings)
        self._multiplicity = network.multiplicity
        self.theta = first_parameters(network, seeds, initial)  # [B, n]
        self.moments = np.zeros((2, *self.theta.shape), np.float32)  # Adam's means of gradients and squares
        kept = table.num_observations if self._rules.keeps_values else self.theta.shape[1]
        self.target = np.empty((len(seeds), kept), np.float32)
        self.buffer = np.zeros((len(seeds), settings.buffer_size), np.int32)
        self.episode = np.zeros((len(seeds), 3), np.int64)  # node, time, return so far
        self._words = np.stack([streams(np.random.default_rng([seed, 1]), 1)[0] for seed in seeds])
        for theta, target in zip(self.theta, self.target, strict=True):
            copy_to_target(theta, target, self._game, self._rules)

    def interval(self, step: int) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        num_seeds = len(self.theta)
        is_done = np.zeros((num_seeds, self._interval), np.bool_)
        units = np.zeros((num_seeds, self._interval), np.int64)
        greedy = np.zeros(num_seeds, np.int64)
        carried = (self.theta, self.moments[0], self.moments[1], self.target, self.buffer, self.episode, self._words)
        _intervals(step, carried, self._multiplicity, self._game, self._rules, is_done, units, greedy)
        return is_done, units, greedy

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        if len(places) < len(self.theta):
            self.theta, self.target, self.buffer = self.theta[places], self.target[places], self.buffer[places]
            self.moments, self.episode = np.ascontiguousarray(self.moments[:, places]), self.episode[places]
            self._words = self._words[places]
        return places


class DQNRules(NamedTuple):
    """Numbers that stay the same."""

    horizon: int
    bootstraps_at_horizon: bool
    falling_steps: float  # until epsilon has fallen
    final_epsilon: float
    train_every: int
    target_interval: int
    minibatch: int
    gamma: np.float32
    rate: float
    adam_epsilon: np.float32
    max_gradient_norm: np.float32
    keeps_values: bool


def rules_of(table: ObservedTable, settings: DQNSettings) -> DQNRules:
    return DQNRules(
        table.horizon,
        table.bootstraps_at_horizon,
        settings.schedule_steps * settings.exploration_fraction,
        settings.final_epsilon,
        settings.train_every,
        settings.target_interval,
        settings.minibatch,
        np.float32(settings.gamma),
        settings.rate,
        np.float32(settings.adam_epsilon),
        np.float32(settings.max_gradient_norm),
        settings.keeps_values(table.num_observations),
    )


@njit(cache=True, parallel=True)
def _intervals(step, carried, multiplicity, game, rules, is_done, units, greedy):  # type: ignore[no-untyped-def]
    """`DQNLearners.interval` for all seeds.

    carried: theta, both moments [B, n], target [B, U] or [B, n], buffer [B, .], episode [B, 3], words [B, 2]
    """
    for seed in prange(len(greedy)):
        theta, first, second, target, buffer, episode, words = carried
        mine = (theta[seed], first[seed], second[seed], target[seed], buffer[seed], episode[seed], words[seed])
        greedy[seed] = _interval(step, mine, multiplicity, game, rules, is_done[seed], units[seed])


@njit(cache=True)
def _interval(step, carried, multiplicity, game, rules, is_done, units):  # type: ignore[no-untyped-def]
    """One seed: fills `is_done` and `units` [interval], and gives the return of the greedy episode."""
    theta, first, second, target, buffer, episode, words = carried
    train_every, target_interval = rules.train_every, rules.target_interval
    batch = _empty_batch(game, rules)
    gradient = np.empty_like(theta)
    codes = np.empty(rules.minibatch, np.int32)
    greedy = 0
    for begun in range(0, len(is_done), train_every):
        for now in range(begun, begun + train_every):
            place = (step + now) % len(buffer)
            buffer[place], is_done[now], units[now] = _act(step + now, theta, episode, words, game, rules)
        taken = step + begun + train_every
        if taken % target_interval == 0:
            copy_to_target(theta, target, game, rules)
        if begun + train_every == len(is_done):
            greedy = _greedy_return(theta, game, rules)
        for sample in range(len(codes)):
            codes[sample] = buffer[drawn_below(words, min(taken, len(buffer)))]
        fill_gradient(codes, theta, target, game, rules, batch, gradient)
        adam_step(theta, gradient, first, second, multiplicity, taken // train_every, rules)
    return greedy


@njit(cache=True)
def epsilon(step, rules):  # type: ignore[no-untyped-def]
    """The chance of a random action after `step` timesteps. Stable-Baselines3 takes its very first action greedily."""
    return 0.0 if step == 0 else 1.0 + min(step / rules.falling_steps, 1.0) * (rules.final_epsilon - 1.0)


@njit(cache=True)
def explores(step, words, rules):  # type: ignore[no-untyped-def]
    """Whether the action after `step` timesteps is a random one."""
    return drawn_below(words, _BITS) < epsilon(step, rules) * _BITS


@njit(cache=True)
def _act(step, theta, episode, words, game, rules):  # type: ignore[no-untyped-def]
    """One step of the environment: the packed transition, whether the episode ended, its return until now."""
    node, time, units = episode
    num_actions = game.transitions.shape[1]
    if explores(step, words, rules):
        action = drawn_action(words, time, game.state[node], num_actions, game.probabilities)
    else:
        action = _greedy_action(theta, game.observations[game.observation[node]], num_actions)
    following = game.transitions[node, action]
    units += game.reward_units[node, action]
    is_late = time + 1 >= rules.horizon
    is_done = following < 0 or is_late
    is_end = following < 0 or (is_late and not rules.bootstraps_at_horizon)
    episode[0], episode[1], episode[2] = (0, 0, 0) if is_done else (following, time + 1, units)
    return 2 * (node * num_actions + action) + is_end, is_done, units


@njit(cache=True)
def _greedy_return(theta, game, rules):  # type: ignore[no-untyped-def]
    """The return, in units, of the episode that takes the action of the largest value in each state."""
    node, time, units = 0, 0, 0
    while node >= 0 and time < rules.horizon:
        action = _greedy_action(theta, game.observations[game.observation[node]], game.transitions.shape[1])
        units += game.reward_units[node, action]
        node = game.transitions[node, action]
        time += 1
    return units


@njit(cache=True)
def _layers(theta, num_columns, num_actions):  # type: ignore[no-untyped-def]
    """The hidden layers and the head, or gradients of them."""
    return tower(theta, 0, num_columns), head(theta, tower_size(num_columns), num_actions)


@njit(cache=True, fastmath=FAST)
def _greedy_action(theta, seen, num_actions):  # type: ignore[no-untyped-def]
    """The first of the actions with the largest value for one observation [G]."""
    (weights_0, bias_0, weights_1, bias_1), (weights_2, bias_2) = _layers(theta, len(seen), num_actions)
    below, above, values = bias_0.copy(), bias_1.copy(), bias_2.copy()
    for column in range(len(seen)):
        for unit in range(HIDDEN):
            below[unit] += seen[column] * weights_0[column, unit]
    for source in range(HIDDEN):
        if below[source] > ZERO:
            for unit in range(HIDDEN):
                above[unit] += below[source] * weights_1[source, unit]
    for source in range(HIDDEN):
        if above[source] > ZERO:
            for action in range(num_actions):
                values[action] += above[source] * weights_2[source, action]
    return np.argmax(values)


@njit(cache=True)
def _empty_batch(game, rules):  # type: ignore[no-untyped-def]
    """Room for a minibatch: observations [M, G], both hidden layers and their gradients [M, H], values [M, A]."""
    size = rules.minibatch
    hidden = np.empty((4, size, HIDDEN), np.float32)
    seen = np.empty((size, game.observations.shape[1]), np.float32)
    return seen, hidden[0], hidden[1], hidden[2], hidden[3], np.empty((size, game.transitions.shape[1]), np.float32)


@njit(cache=True, fastmath=FAST)
def _evaluate(theta, batch):  # type: ignore[no-untyped-def]
    """Fill the hidden layers and the values of a minibatch from its observations."""
    seen, below, above, _, _, values = batch
    layers, (weights_2, bias_2) = _layers(theta, seen.shape[1], values.shape[1])
    pass_forward(layers, seen, below, above)
    np.dot(above, weights_2, values)
    values += bias_2


@njit(cache=True)
def copy_to_target(theta, target, game, rules):  # type: ignore[no-untyped-def]
    """What is kept of a target network: the largest value of each observation [U], or else the parameters [n]."""
    if not rules.keeps_values:
        target[:] = theta
        return
    batch = _empty_batch(game, rules)
    seen, values = batch[0], batch[5]
    for begun in range(0, len(target), len(seen)):
        for sample in range(len(seen)):
            show(game.observations[min(begun + sample, len(target) - 1)], seen[sample])
        _evaluate(theta, batch)
        for sample in range(min(len(seen), len(target) - begun)):
            target[begun + sample] = values[sample].max()


@njit(cache=True)
def _fill_wanted(codes, target, game, rules, batch, wanted):  # type: ignore[no-untyped-def]
    """r + gamma (1 - end) max_a' Q_target(s', a') for packed transitions [M]."""
    seen, values = batch[0], batch[5]
    num_actions = game.transitions.shape[1]
    if not rules.keeps_values:
        for sample in range(len(codes)):
            node, action = divmod(codes[sample] // 2, num_actions)
            show(game.observations[game.observation[max(game.transitions[node, action], 0)]], seen[sample])
        _evaluate(target, batch)
    for sample in range(len(codes)):
        node, action = divmod(codes[sample] // 2, num_actions)
        wanted[sample] = game.rewards[node, action]
        if codes[sample] % 2 == 0:
            following = game.observation[game.transitions[node, action]]
            wanted[sample] += rules.gamma * (target[following] if rules.keeps_values else values[sample].max())


@njit(cache=True, fastmath=FAST)
def fill_gradient(codes, theta, target, game, rules, batch, gradient):  # type: ignore[no-untyped-def]
    """The gradient [n] of the mean Huber loss of packed transitions [M]."""
    seen, below, above, to_below, to_above, values = batch
    size, num_actions = values.shape
    wanted = np.empty(size, np.float32)
    _fill_wanted(codes, target, game, rules, batch, wanted)
    for sample in range(size):
        show(game.observations[game.observation[codes[sample] // 2 // num_actions]], seen[sample])
    _evaluate(theta, batch)
    layers, (weights_2, _) = _layers(theta, seen.shape[1], num_actions)
    gradients, (for_weights_2, for_bias_2) = _layers(gradient, seen.shape[1], num_actions)
    by_action = weights_2.T.copy()  # [A, H]: rows that vectors can run along
    for_action = np.zeros_like(by_action)
    for_bias_2[:] = ZERO
    for sample in range(size):
        action = codes[sample] // 2 % num_actions
        error = values[sample, action] - wanted[sample]
        slope = max(min(error, ONE), -ONE) / np.float32(size)  # of torch's smooth_l1_loss
        for_bias_2[action] += slope
        for unit in range(HIDDEN):
            for_action[action, unit] += slope * above[sample, unit]
            to_above[sample, unit] = slope * by_action[action, unit] if above[sample, unit] > ZERO else ZERO
    for_weights_2[:] = for_action.T
    pass_backward(layers, gradients, seen, below, to_below, to_above)
