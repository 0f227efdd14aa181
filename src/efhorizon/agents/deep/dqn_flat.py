"""DQN with an MLP, for tables with flat observations: environment, replay buffer and learner in one compiled loop.

A thread takes a seed. The network's hidden layers are those of `flat`; then Q = hidden_2 W_2 + b_2.

Legend: B seeds, M samples of a minibatch, G columns of an observation, H hidden units, A actions, U observations,
n parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.flat import (
    FAST,
    ONE,
    ZERO,
    GameArrays,
    Head,
    Singles,
    Tower,
    adam_step,
    executed,
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
from efhorizon.compiled import Flags, Integers, Words, compiled, compiled_parallel, compiled_with, prange
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
        carried = DQNCarried(
            self.theta, self.moments[0], self.moments[1], self.target, self.buffer, self.episode, self._words
        )
        _intervals(step, carried, self._multiplicity, self._game, self._rules, is_done, units, greedy)
        return is_done, units, greedy

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        if len(places) < len(self.theta):
            self.theta, self.target, self.buffer = self.theta[places], self.target[places], self.buffer[places]
            self.moments, self.episode = np.ascontiguousarray(self.moments[:, places]), self.episode[places]
            self._words = self._words[places]
        return places


class DQNCarried(NamedTuple):
    """What seeds carry from step to step; without the first axis for one seed."""

    theta: Singles  # [B, n]
    first: Singles  # [B, n], Adam's mean of gradients
    second: Singles  # [B, n], of squares
    target: Singles  # [B, U] or [B, n], see `copy_to_target`
    buffer: Integers  # int32 [B, .], packed transitions
    episode: Integers  # int64 [B, 3]: node, time, return so far
    words: Words  # [B, 2], random stream


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


class Minibatch(NamedTuple):
    """Room for a pass of a minibatch through the network and back."""

    seen: Singles  # [M, G]
    below: Singles  # [M, H], the first hidden layer
    above: Singles  # [M, H], the second
    to_below: Singles  # [M, H], gradients
    to_above: Singles  # [M, H]
    values: Singles  # [M, A]


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


@compiled_parallel
def _intervals(
    step: int,
    carried: DQNCarried,
    multiplicity: Singles,
    game: GameArrays,
    rules: DQNRules,
    is_done: Flags,
    units: Integers,
    greedy: Integers,
) -> None:
    """`DQNLearners.interval` for all seeds."""
    for seed in prange(len(greedy)):
        mine = DQNCarried(
            carried.theta[seed],
            carried.first[seed],
            carried.second[seed],
            carried.target[seed],
            carried.buffer[seed],
            carried.episode[seed],
            carried.words[seed],
        )
        greedy[seed] = _interval(step, mine, multiplicity, game, rules, is_done[seed], units[seed])


@compiled
def _interval(
    step: int,
    carried: DQNCarried,
    multiplicity: Singles,
    game: GameArrays,
    rules: DQNRules,
    is_done: Flags,
    units: Integers,
) -> int:
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


@compiled
def epsilon(step: int, rules: DQNRules) -> float:
    """The chance of a random action after `step` timesteps. Stable-Baselines3 takes its very first action greedily."""
    return 0.0 if step == 0 else 1.0 + min(step / rules.falling_steps, 1.0) * (rules.final_epsilon - 1.0)


@compiled
def explores(step: int, words: Words, rules: DQNRules) -> bool:
    """Whether the action after `step` timesteps is a random one."""
    is_random: bool = drawn_below(words, _BITS) < epsilon(step, rules) * _BITS
    return is_random


@compiled
def _act(
    step: int, theta: Singles, episode: Integers, words: Words, game: GameArrays, rules: DQNRules
) -> tuple[int, bool, int]:
    """One step of the environment: the packed transition, whether the episode ended, its return until now."""
    node, time, units = episode
    num_actions = game.transitions.shape[1]
    if explores(step, words, rules):
        action = drawn_action(words, time, game.state[node], num_actions, game.probabilities)
    else:
        action = _greedy_action(theta, game.observations[game.observation[node]], num_actions)
    taken = executed(node, action, words, game)
    following = game.transitions[node, taken]
    units += game.reward_units[node, taken]
    is_late = time + 1 >= rules.horizon
    is_done = following < 0 or is_late
    is_end = following < 0 or (is_late and not rules.bootstraps_at_horizon)
    episode[0], episode[1], episode[2] = (0, 0, 0) if is_done else (following, time + 1, units)
    if len(game.previous):
        return 4 * (node * num_actions + action) + 2 * (taken != action) + is_end, is_done, units
    return 2 * (node * num_actions + action) + is_end, is_done, units


@compiled
def _unpacked(code: int, game: GameArrays) -> tuple[int, int, int]:
    """Of a packed transition: the node, the action that was chosen, the action that was executed.

    With sticky actions a bit more says whether the previous action was executed instead of the chosen one.
    """
    num_actions = game.transitions.shape[1]
    if not len(game.previous):
        node, action = divmod(code // 2, num_actions)
        return node, action, action
    node, action = divmod(code // 4, num_actions)
    return node, action, game.previous[node] if code // 2 % 2 else action


@compiled
def _greedy_return(theta: Singles, game: GameArrays, rules: DQNRules) -> int:
    """The return, in units, of the episode that takes the action of the largest value in each state."""
    node, time, units = 0, 0, 0
    while node >= 0 and time < rules.horizon:
        action = _greedy_action(theta, game.observations[game.observation[node]], game.transitions.shape[1])
        units += game.reward_units[node, action]
        node = game.transitions[node, action]
        time += 1
    return units


@compiled
def _layers(theta: Singles, num_columns: int, num_actions: int) -> tuple[Tower, Head]:
    """The hidden layers and the head, or gradients of them."""
    return tower(theta, 0, num_columns), head(theta, tower_size(num_columns), num_actions)


@compiled_with(fastmath=FAST)
def _greedy_action(theta: Singles, seen: Singles, num_actions: int) -> int:
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
    return int(np.argmax(values))


@compiled
def _empty_batch(game: GameArrays, rules: DQNRules) -> Minibatch:
    size = rules.minibatch
    hidden = np.empty((4, size, HIDDEN), np.float32)
    seen = np.empty((size, game.observations.shape[1]), np.float32)
    values = np.empty((size, game.transitions.shape[1]), np.float32)
    return Minibatch(seen, hidden[0], hidden[1], hidden[2], hidden[3], values)


@compiled_with(fastmath=FAST)
def _evaluate(theta: Singles, batch: Minibatch) -> None:
    """Fill the hidden layers and the values of a minibatch from its observations."""
    seen, below, above, _, _, values = batch
    layers, (weights_2, bias_2) = _layers(theta, seen.shape[1], values.shape[1])
    pass_forward(layers, seen, below, above)
    np.dot(above, weights_2, values)
    values += bias_2


@compiled
def copy_to_target(theta: Singles, target: Singles, game: GameArrays, rules: DQNRules) -> None:
    """What is kept of a target network: the largest value of each observation [U], or else the parameters [n]."""
    if not rules.keeps_values:
        target[:] = theta
        return
    batch = _empty_batch(game, rules)
    seen, values = batch.seen, batch.values
    for begun in range(0, len(target), len(seen)):
        for sample in range(len(seen)):
            show(game.observations[min(begun + sample, len(target) - 1)], seen[sample])
        _evaluate(theta, batch)
        for sample in range(min(len(seen), len(target) - begun)):
            target[begun + sample] = values[sample].max()


@compiled
def _fill_wanted(
    codes: Integers, target: Singles, game: GameArrays, rules: DQNRules, batch: Minibatch, wanted: Singles
) -> None:
    """r + gamma (1 - end) max_a' Q_target(s', a') for packed transitions [M]."""
    seen, values = batch.seen, batch.values
    if not rules.keeps_values:
        for sample in range(len(codes)):
            node, _, taken = _unpacked(codes[sample], game)
            show(game.observations[game.observation[max(game.transitions[node, taken], 0)]], seen[sample])
        _evaluate(target, batch)
    for sample in range(len(codes)):
        node, _, taken = _unpacked(codes[sample], game)
        wanted[sample] = game.rewards[node, taken]
        if codes[sample] % 2 == 0:
            following = game.observation[game.transitions[node, taken]]
            wanted[sample] += rules.gamma * (target[following] if rules.keeps_values else values[sample].max())


@compiled_with(fastmath=FAST)
def fill_gradient(
    codes: Integers,
    theta: Singles,
    target: Singles,
    game: GameArrays,
    rules: DQNRules,
    batch: Minibatch,
    gradient: Singles,
) -> None:
    """The gradient [n] of the mean Huber loss of packed transitions [M]."""
    seen, below, above, to_below, to_above, values = batch
    size, num_actions = values.shape
    wanted = np.empty(size, np.float32)
    _fill_wanted(codes, target, game, rules, batch, wanted)
    for sample in range(size):
        show(game.observations[game.observation[_unpacked(codes[sample], game)[0]]], seen[sample])
    _evaluate(theta, batch)
    layers, (weights_2, _) = _layers(theta, seen.shape[1], num_actions)
    gradients, (for_weights_2, for_bias_2) = _layers(gradient, seen.shape[1], num_actions)
    by_action = weights_2.T.copy()  # [A, H]: rows that vectors can run along
    for_action = np.zeros_like(by_action)
    for_bias_2[:] = ZERO
    for sample in range(size):
        action = _unpacked(codes[sample], game)[1]
        error = values[sample, action] - wanted[sample]
        slope = max(min(error, ONE), -ONE) / np.float32(size)  # of torch's smooth_l1_loss
        for_bias_2[action] += slope
        for unit in range(HIDDEN):
            for_action[action, unit] += slope * above[sample, unit]
            to_above[sample, unit] = slope * by_action[action, unit] if above[sample, unit] > ZERO else ZERO
    for_weights_2[:] = for_action.T
    pass_backward(layers, gradients, seen, below, to_below, to_above)
