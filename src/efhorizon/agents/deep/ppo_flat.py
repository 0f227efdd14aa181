"""PPO with an MLP, for tables with flat observations: environments and learner in one compiled loop.

A thread takes a seed. Parameters are fixed during a rollout, so the network sees every observation of it once. Samples
of a minibatch that show the same are passed through the network as one: rollouts often visit the same states.

Legend: B seeds, N environments, T steps of a rollout, A actions, M samples of a minibatch, D distinct observations in
it, U observations of the table, G columns of one, n parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

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
from efhorizon.agents.deep.learners import Updates
from efhorizon.agents.deep.networks import HIDDEN, first_parameters, network_for
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.agents.streams import drawn_below, streams

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

_STEPS_A_CALL = 10_240  # timesteps between two reports: about one evaluation
_BITS = 2**31
_TINY = np.float32(1e-8)  # Stable-Baselines3's guard where advantages are normalised


class FlatPPO:
    """The learners of several seeds; see `PPOLearners`."""

    def __init__(
        self,
        table: ObservedTable,
        settings: PPOSettings,
        interval: int,
        seeds: Sequence[int],
        initial: NDArray[np.float32] | None = None,
    ) -> None:
        network = network_for("actor_critic", table)
        self._game, self._rules = game_of(table), rules_of(table, settings, interval)
        self._multiplicity = network.multiplicity
        theta = first_parameters(network, seeds, initial)
        self.carried = Carried(
            theta,
            np.zeros_like(theta),
            np.zeros_like(theta),
            np.zeros((len(seeds), 3, settings.num_envs), np.int64),
            np.stack([streams(np.random.default_rng([seed, 1]), 1)[0] for seed in seeds]),
            np.zeros((len(seeds), table.num_observations, table.num_actions + 1), np.float32),
            np.full((len(seeds), 2, table.num_observations), -1, np.int32),
        )

    def updates(self, step: int) -> Updates:
        rules, num_seeds = self._rules, len(self.carried.theta)
        shape = (num_seeds, max(1, _STEPS_A_CALL // rules.samples), rules.rollout_length, rules.num_envs)
        told = Updates(np.zeros(shape, np.bool_), np.zeros(shape, np.int64), np.zeros(shape[:2], np.int64))

        def work(mine: Carried, *told_by_it: Any) -> None:
            _updates(step, mine, self._multiplicity, self._game, rules, *told_by_it)

        # BLAS keeps to one thread: several that share small matrices would wait for each other
        with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(numba.get_num_threads()) as pool:
            list(pool.map(work, self.seeds(), *told))
        return Updates(*(field.swapaxes(0, 1) for field in told))

    def seeds(self) -> list[Carried]:
        """What each seed carries, as views."""
        return [Carried(*arrays) for arrays in zip(*self.carried, strict=True)]

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        if len(places) < len(self.carried.theta):
            self.carried = Carried._make(array[list(places)] for array in self.carried)
        return places


class Carried(NamedTuple):
    """What seeds carry from update to update."""

    theta: NDArray[np.float32]  # [B, n]
    first: NDArray[np.float32]  # [B, n], Adam's mean of gradients
    second: NDArray[np.float32]  # [B, n], of squares
    episodes: NDArray[np.int64]  # [B, 3, N]: node, time, return so far
    words: NDArray[np.uint64]  # [B, 2], random stream
    outputs: NDArray[np.float32]  # [B, U, A + 1]: logits and value of observations that a rollout met
    places: NDArray[np.int32]  # [B, 2, U]: the rollout that met it last, and where it is in a minibatch


class PPORules(NamedTuple):
    """Numbers that stay the same."""

    horizon: int
    bootstraps_at_horizon: bool
    interval: int  # timesteps between evaluations
    rollout_length: int
    num_envs: int
    samples: int
    num_epochs: int
    minibatch: int
    gamma: np.float32
    gae_lambda: np.float32
    clip: np.float32
    value_weight: np.float32
    entropy_weight: np.float32
    rate: float
    adam_epsilon: np.float32
    max_gradient_norm: np.float32


class Samples(NamedTuple):
    """What a rollout collected; every field [T, N], or flat."""

    observation: NDArray[np.int32]
    action: NDArray[np.int32]
    log_probability: NDArray[np.float32]
    advantage: NDArray[np.float32]
    target: NDArray[np.float32]  # of the value


class Room(NamedTuple):
    """For a pass of up to M observations, or N if that is more, through the network and back."""

    seen: NDArray[np.float32]  # [M, G]
    hidden: NDArray[np.float32]  # [4, M, H]: both layers of the policy, then of the value
    logits: NDArray[np.float32]  # [M, A]
    values: NDArray[np.float32]  # [M, 1]
    to_hidden: NDArray[np.float32]  # [2, M, H]: gradients
    to_logits: NDArray[np.float32]  # [M, A]
    to_values: NDArray[np.float32]  # [M, 1]


def rules_of(table: ObservedTable, settings: PPOSettings, interval: int) -> PPORules:
    return PPORules(
        table.horizon,
        table.bootstraps_at_horizon,
        interval,
        settings.rollout_length,
        settings.num_envs,
        settings.samples,
        settings.num_epochs,
        settings.minibatch,
        np.float32(settings.gamma),
        np.float32(settings.gae_lambda),
        np.float32(settings.clip),
        np.float32(settings.value_weight),
        np.float32(settings.entropy_weight),
        settings.rate,
        np.float32(settings.adam_epsilon),
        np.float32(settings.max_gradient_norm),
    )


@cache
def _blas() -> Any:
    return ThreadpoolController()


@njit(cache=True, nogil=True)
def _updates(step, mine, multiplicity, game, rules, is_done, units, evaluation):  # type: ignore[no-untyped-def]
    """`PPOLearners.updates` for one seed: fills its part of the report."""
    room = empty_room(max(rules.minibatch, rules.num_envs), game)
    for number in range(len(evaluation)):
        first_step = step + number * rules.samples
        told = is_done[number], units[number]
        evaluation[number] = _update(first_step, mine, multiplicity, game, rules, room, *told)


@njit(cache=True)
def _update(first_step, mine, multiplicity, game, rules, room, is_done, units):  # type: ignore[no-untyped-def]
    """One update of one seed: fills `is_done` and `units` [T, N], and gives the greedy return where one is due."""
    now = first_step // rules.samples
    samples = rollout(now, mine, game, rules, room, is_done, units)
    is_due = (first_step + rules.samples) // rules.interval > first_step // rules.interval
    evaluation = greedy_return(now, mine, game, rules, room) if is_due else 0
    order = np.arange(rules.samples)
    gradient = np.empty_like(mine.theta)
    count = now * rules.num_epochs * (rules.samples // rules.minibatch)
    for _ in range(rules.num_epochs):
        _shuffle(order, mine.words)
        for begun in range(0, rules.samples, rules.minibatch):
            count += 1
            chosen = order[begun : begun + rules.minibatch]
            fill_gradient(chosen, samples, mine.theta, mine.places[1], game, rules, room, gradient)
            adam_step(mine.theta, gradient, mine.first, mine.second, multiplicity, count, rules)
    return evaluation


@njit(cache=True)
def _shuffle(order, words):  # type: ignore[no-untyped-def]
    """Fisher and Yates."""
    for last in range(len(order) - 1, 0, -1):
        other = drawn_below(words, last + 1)
        order[last], order[other] = order[other], order[last]


@njit(cache=True)
def rollout(now, mine, game, rules, room, is_done, units):  # type: ignore[no-untyped-def]
    """Rollout number `now`: what was collected, flat."""
    shape = (rules.rollout_length, rules.num_envs)
    observation, action = np.empty(shape, np.int32), np.empty(shape, np.int32)
    log_probability, reward = np.empty(shape, np.float32), np.empty(shape, np.float32)
    node, time, so_far = mine.episodes
    num_actions = game.transitions.shape[1]
    for step in range(rules.rollout_length):
        observation[step] = game.observation[node]
        _meet(observation[step], now, mine, game, room)
        for env in range(rules.num_envs):
            logits = mine.outputs[observation[step, env], :num_actions]
            chosen, log_probability[step, env] = drawn(logits, mine.words)
            following = game.transitions[node[env], chosen]
            action[step, env], reward[step, env] = chosen, game.rewards[node[env], chosen]
            units[step, env] = so_far[env] + game.reward_units[node[env], chosen]
            is_late = time[env] + 1 >= rules.horizon
            is_done[step, env] = following < 0 or is_late
            if rules.bootstraps_at_horizon and is_late and following >= 0:
                cut_off = game.observation[following : following + 1]
                _meet(cut_off, now, mine, game, room)
                reward[step, env] += rules.gamma * mine.outputs[cut_off[0], num_actions]
            if is_done[step, env]:
                node[env], time[env], so_far[env] = 0, 0, 0
            else:
                node[env], time[env], so_far[env] = following, time[env] + 1, units[step, env]
    last = game.observation[node]
    _meet(last, now, mine, game, room)
    value = np.empty(shape, np.float32)
    for step in range(rules.rollout_length):
        for env in range(rules.num_envs):
            value[step, env] = mine.outputs[observation[step, env], num_actions]
    advantage = generalised_advantages(
        reward, value, is_done, mine.outputs[:, num_actions][last], rules.gamma, rules.gae_lambda
    )
    return Samples(
        observation.ravel(), action.ravel(), log_probability.ravel(), advantage.ravel(), (advantage + value).ravel()
    )


@njit(cache=True)
def drawn(logits, words):  # type: ignore[no-untyped-def]
    """An action from softmax(logits), and the logarithm of its probability."""
    largest = logits.max()
    total = ZERO
    for action in range(len(logits)):
        total += np.exp(logits[action] - largest)
    left = total * np.float32(drawn_below(words, _BITS) / _BITS)
    chosen = -1
    while left >= ZERO and chosen + 1 < len(logits):
        chosen += 1
        left -= np.exp(logits[chosen] - largest)
    return chosen, logits[chosen] - largest - np.log(total)


@njit(cache=True)
def _meet(observations, now, mine, game, room):  # type: ignore[no-untyped-def]
    """Make sure that the outputs of these observations, at most a room full, are those of rollout `now`."""
    met, count = mine.places[0], 0
    unknown = np.empty(len(observations), np.int32)
    for observation in observations:
        if met[observation] != now:
            met[observation] = now
            show(game.observations[observation], room.seen[count])
            unknown[count] = observation
            count += 1
    if count:
        evaluate(count, mine.theta, room)
        for number in range(count):
            mine.outputs[unknown[number], :-1] = room.logits[number]
            mine.outputs[unknown[number], -1] = room.values[number, 0]


@njit(cache=True)
def greedy_return(now, mine, game, rules, room):  # type: ignore[no-untyped-def]
    """The return, in units, of the episode that takes the most likely action in each state."""
    node, time, units = 0, 0, 0
    while node >= 0 and time < rules.horizon:
        seen = game.observation[node : node + 1]
        _meet(seen, now, mine, game, room)
        action = np.argmax(mine.outputs[seen[0], :-1])
        units += game.reward_units[node, action]
        node = game.transitions[node, action]
        time += 1
    return units


@njit(cache=True)
def generalised_advantages(reward, value, is_done, last_value, gamma, gae_lambda):  # type: ignore[no-untyped-def]
    """A_t = delta_t + gamma lambda A_{t+1} within an episode, delta_t = r_t + gamma V_{t+1} - V_t; [T, N]."""
    advantages = np.empty_like(reward)
    for env in range(reward.shape[1]):
        following_value, following = last_value[env], ZERO
        for step in range(len(reward) - 1, -1, -1):
            goes_on = ZERO if is_done[step, env] else ONE
            delta = reward[step, env] + gamma * following_value * goes_on - value[step, env]
            following = delta + gamma * gae_lambda * goes_on * following
            advantages[step, env], following_value = following, value[step, env]
    return advantages


@njit(cache=True)
def empty_room(size, game):  # type: ignore[no-untyped-def]
    num_actions = game.transitions.shape[1]
    return Room(
        np.empty((size, game.observations.shape[1]), np.float32),
        np.empty((4, size, HIDDEN), np.float32),
        np.empty((size, num_actions), np.float32),
        np.empty((size, 1), np.float32),
        np.empty((2, size, HIDDEN), np.float32),
        np.empty((size, num_actions), np.float32),
        np.empty((size, 1), np.float32),
    )


@njit(cache=True)
def _layers(theta, num_columns, num_actions):  # type: ignore[no-untyped-def]
    """The hidden layers of policy and value, and the head of each, or gradients of them."""
    size = tower_size(num_columns)
    policy_head = 2 * size
    value_head = policy_head + (HIDDEN + 1) * num_actions
    return (
        tower(theta, 0, num_columns),
        tower(theta, size, num_columns),
        head(theta, policy_head, num_actions),
        head(theta, value_head, 1),
    )


@njit(cache=True)
def evaluate(count, theta, room):  # type: ignore[no-untyped-def]
    """Fill hidden layers, logits and values of the first `count` observations of the room."""
    seen, logits, values = room.seen[:count], room.logits[:count], room.values[:count]
    policy, critic, policy_head, value_head = _layers(theta, seen.shape[1], logits.shape[1])
    pass_forward(policy, seen, room.hidden[0, :count], room.hidden[1, :count])
    pass_forward(critic, seen, room.hidden[2, :count], room.hidden[3, :count])
    np.dot(room.hidden[1, :count], policy_head[0], logits)
    np.dot(room.hidden[3, :count], value_head[0], values)
    logits += policy_head[1]
    values += value_head[1]


@njit(cache=True)
def fill_gradient(chosen, samples, theta, place, game, rules, room, gradient):  # type: ignore[no-untyped-def]
    """The gradient [n] of the loss of the chosen samples [M] (see `ppo`). `place` [U] is -1 before and after."""
    count = 0
    for sample in chosen:
        observation = samples.observation[sample]
        if place[observation] < 0:
            place[observation] = count
            show(game.observations[observation], room.seen[count])
            count += 1
    evaluate(count, theta, room)
    _differentiate_loss(chosen, samples, place, count, rules, room)
    for sample in chosen:
        place[samples.observation[sample]] = -1
    seen = room.seen[:count]
    num_actions = room.logits.shape[1]
    policy, critic, policy_head, value_head = _layers(theta, seen.shape[1], num_actions)
    for_policy, for_critic, for_policy_head, for_value_head = _layers(gradient, seen.shape[1], num_actions)
    _pass_back(policy, policy_head, for_policy, for_policy_head, seen, room.hidden[:2], room.to_logits[:count], room)
    _pass_back(critic, value_head, for_critic, for_value_head, seen, room.hidden[2:], room.to_values[:count], room)


@njit(cache=True, fastmath=FAST)
def _differentiate_loss(chosen, samples, place, count, rules, room):  # type: ignore[no-untyped-def]
    """Fill the gradient of the loss with respect to logits and values of the distinct observations."""
    room.to_logits[:count] = ZERO
    room.to_values[:count] = ZERO
    mean, spread = _moments(chosen, samples.advantage)
    share = ONE / np.float32(len(chosen))
    num_actions = room.logits.shape[1]
    log_policy, policy = np.empty(num_actions, np.float32), np.empty(num_actions, np.float32)
    for sample in chosen:
        number, action = place[samples.observation[sample]], samples.action[sample]
        _fill_policy(room.logits[number], log_policy, policy)
        entropy = ZERO
        for other in range(num_actions):
            entropy -= policy[other] * log_policy[other]
        advantage = (samples.advantage[sample] - mean) / (spread + _TINY)
        ratio = np.exp(log_policy[action] - samples.log_probability[sample])
        clipped = min(max(ratio, ONE - rules.clip), ONE + rules.clip)
        # min(r A, clip(r) A) does not depend on r where the clipped term is the smaller one
        gain = share * advantage * ratio if advantage * ratio <= advantage * clipped else ZERO
        for other in range(num_actions):
            to_logit = gain * policy[other]
            to_logit += rules.entropy_weight * share * policy[other] * (log_policy[other] + entropy)
            room.to_logits[number, other] += to_logit
        room.to_logits[number, action] -= gain
        error = room.values[number, 0] - samples.target[sample]
        room.to_values[number, 0] += rules.value_weight * share * (error + error)


@njit(cache=True)
def _moments(chosen, numbers):  # type: ignore[no-untyped-def]
    """Mean and standard deviation of the chosen numbers, the latter with one degree of freedom less."""
    mean = 0.0
    for sample in chosen:
        mean += numbers[sample]
    mean /= len(chosen)
    squares = 0.0
    for sample in chosen:
        squares += (numbers[sample] - mean) ** 2
    return np.float32(mean), np.float32(np.sqrt(squares / (len(chosen) - 1)))


@njit(cache=True, fastmath=FAST)
def _fill_policy(logits, log_policy, policy):  # type: ignore[no-untyped-def]
    """log softmax(logits) and softmax(logits)."""
    largest = logits.max()
    total = ZERO
    for action in range(len(logits)):
        total += np.exp(logits[action] - largest)
    shift = largest + np.log(total)
    for action in range(len(logits)):
        log_policy[action] = logits[action] - shift
        policy[action] = np.exp(log_policy[action])


@njit(cache=True, fastmath=FAST)
def _pass_back(layers, outward, for_layers, for_outward, seen, hidden, to_outputs, room):  # type: ignore[no-untyped-def]
    """Fill the gradients of one tower and its head from that of its outputs [D, .]."""
    count = len(seen)
    below, above = hidden[0, :count], hidden[1, :count]
    to_below, to_above = room.to_hidden[0, :count], room.to_hidden[1, :count]
    np.dot(above.T, to_outputs, for_outward[0])
    for_outward[1][:] = ZERO
    for sample in range(count):
        for output in range(to_outputs.shape[1]):
            for_outward[1][output] += to_outputs[sample, output]
    np.dot(to_outputs, outward[0].T, to_above)
    for sample in range(count):
        for unit in range(HIDDEN):
            to_above[sample, unit] = to_above[sample, unit] if above[sample, unit] > ZERO else ZERO
    pass_backward(layers, for_layers, seen, below, to_below, to_above)
