"""PPO's network and loss on flat observations: two MLPs, one for the policy and one for the value.

Samples of a minibatch that show the same are passed through the network as one: rollouts often come by the same states.

Legend: T steps of a rollout, N environments, A actions, M samples of a minibatch, D distinct observations in it,
U observations of the table, G columns of one, H hidden units, n parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from efhorizon.agents.deep.flat import (
    FAST,
    ONE,
    ZERO,
    GameArrays,
    Head,
    Singles,
    Tower,
    head,
    pass_backward,
    pass_forward,
    show,
    tower,
    tower_size,
)
from efhorizon.agents.deep.networks import HIDDEN
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.compiled import Integers, compiled, compiled_with

_TINY = np.float32(1e-8)  # Stable-Baselines3's guard where advantages are normalised


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

    observation: Integers
    action: Integers
    log_probability: Singles
    advantage: Singles
    target: Singles  # of the value


class Room(NamedTuple):
    """For a pass of up to M observations, or N if that is more, through the network and back."""

    seen: Singles  # [M, G]
    hidden: Singles  # [4, M, H]: both layers of the policy, then of the value
    logits: Singles  # [M, A]
    values: Singles  # [M, 1]
    to_hidden: Singles  # [2, M, H]: gradients
    to_logits: Singles  # [M, A]
    to_values: Singles  # [M, 1]


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


@compiled
def empty_room(size: int, game: GameArrays) -> Room:
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


@compiled
def _layers(theta: Singles, num_columns: int, num_actions: int) -> tuple[Tower, Tower, Head, Head]:
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


@compiled
def evaluate(count: int, theta: Singles, room: Room) -> None:
    """Fill hidden layers, logits and values of the first `count` observations of the room."""
    seen, logits, values = room.seen[:count], room.logits[:count], room.values[:count]
    policy, critic, policy_head, value_head = _layers(theta, seen.shape[1], logits.shape[1])
    pass_forward(policy, seen, room.hidden[0, :count], room.hidden[1, :count])
    pass_forward(critic, seen, room.hidden[2, :count], room.hidden[3, :count])
    np.dot(room.hidden[1, :count], policy_head[0], logits)
    np.dot(room.hidden[3, :count], value_head[0], values)
    logits += policy_head[1]
    values += value_head[1]


@compiled
def fill_gradient(
    chosen: Integers,
    samples: Samples,
    theta: Singles,
    place: Integers,
    game: GameArrays,
    rules: PPORules,
    room: Room,
    gradient: Singles,
) -> None:
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


@compiled_with(fastmath=FAST)
def _differentiate_loss(
    chosen: Integers, samples: Samples, place: Integers, count: int, rules: PPORules, room: Room
) -> None:
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


@compiled
def _moments(chosen: Integers, numbers: Singles) -> tuple[np.float32, np.float32]:
    """Mean and standard deviation of the chosen numbers, the latter with one degree of freedom less."""
    mean = 0.0
    for sample in chosen:
        mean += numbers[sample]
    mean /= len(chosen)
    squares = 0.0
    for sample in chosen:
        squares += (numbers[sample] - mean) ** 2
    return np.float32(mean), np.float32(np.sqrt(squares / (len(chosen) - 1)))


@compiled_with(fastmath=FAST)
def _fill_policy(logits: Singles, log_policy: Singles, policy: Singles) -> None:
    """log softmax(logits) and softmax(logits)."""
    largest = logits.max()
    total = ZERO
    for action in range(len(logits)):
        total += np.exp(logits[action] - largest)
    shift = largest + np.log(total)
    for action in range(len(logits)):
        log_policy[action] = logits[action] - shift
        policy[action] = np.exp(log_policy[action])


@compiled_with(fastmath=FAST)
def _pass_back(
    layers: Tower,
    outward: Head,
    for_layers: Tower,
    for_outward: Head,
    seen: Singles,
    hidden: Singles,
    to_outputs: Singles,
    room: Room,
) -> None:
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
