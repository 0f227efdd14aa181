"""DQN with a CNN, for tables with images: environment, replay buffer and learner in one jit.

Flat observations go through it as well, but `dqn_flat` is several times faster there.

Legend: B seeds, M samples of a minibatch, A actions, U observations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.dqn import DQNSettings, first_parameters
from efhorizon.agents.forward import Sight
from efhorizon.agents.networks import Adam, Array, adam_start, adam_step
from efhorizon.agents.observations import ObservedTable
from efhorizon.agents.packing import across_seeds, compiled
from efhorizon.agents.ppo import greedy_return
from efhorizon.planning.policies import ExplorationPolicy


class Episode(NamedTuple):
    """Where the environment is."""

    node: Array  # []
    time: Array  # []
    units: Array  # [], return so far


class Learner(NamedTuple):
    """Everything that one seed carries from cycle to cycle."""

    theta: Array  # [n]
    adam: Adam
    target: Array  # [U], largest target value of each observation; or the target's parameters [n]
    buffer: Array  # [buffer_size], packed transitions
    episode: Episode
    key: Array


class Report(NamedTuple):
    """What the host gets to know of some cycles."""

    is_done: Array  # [cycles, train_every]
    units: Array  # [cycles, train_every]


class ImageLearners:
    """The learners of several seeds; see `dqn.Learners`."""

    def __init__(
        self,
        table: ObservedTable,
        settings: DQNSettings,
        interval: int,
        seeds: Sequence[int],
        initial: NDArray[np.float32] | None = None,
        exploration_policy: ExplorationPolicy | None = None,
    ) -> None:
        sight = Sight.of(table, "q")
        one_interval = _interval_of(table, settings, interval, sight, random_actions(table, exploration_policy))
        self._several_cycles = compiled(across_seeds(one_interval, sight.is_cheap))
        self._interval = interval
        self._carried = starts(sight, settings, seeds, initial)

    def interval(self, step: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        self._carried, (reports, evaluations) = self._several_cycles(self._carried, jnp.int32(step))
        greedy = np.asarray(evaluations)
        is_done, units = (np.asarray(array).reshape(len(greedy), self._interval) for array in reports)
        return is_done, units, greedy

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        """Each number of seeds is compiled anew, which takes seconds: some are left out when half have finished."""
        num_seeds = len(self._carried.theta)
        if 2 * len(places) > num_seeds:
            return range(num_seeds)
        if places:
            self._carried = jax.tree.map(lambda array: array[jnp.array(places)], self._carried)
        return places


def starts(sight: Sight, settings: DQNSettings, seeds: Sequence[int], initial: NDArray[np.float32] | None) -> Learner:
    """Fresh learners [B, ...] with an empty buffer, the environment at the start state."""
    theta = jnp.asarray(first_parameters(sight.network, seeds, initial))
    begun = Episode(*(jnp.zeros(len(seeds), jnp.int32) for _ in Episode._fields))
    target = jax.lax.map(lambda one: _target(sight, settings, one), theta)
    buffer = jnp.zeros((len(seeds), settings.buffer_size), jnp.int32)
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    return Learner(theta, jax.vmap(adam_start)(theta), target, buffer, begun, keys)


def epsilon(settings: DQNSettings, step: Array) -> Array:
    """The chance of a random action after `step` timesteps. Stable-Baselines3 takes its very first action greedily."""
    share = step / settings.schedule_steps / settings.exploration_fraction
    falling = 1.0 + jnp.minimum(share, 1.0) * (settings.final_epsilon - 1.0)
    return jnp.where(step == 0, 0.0, falling)


def random_actions(table: ObservedTable, policy: ExplorationPolicy | None) -> Callable[[Episode, Array], Array]:
    """What turns a uniform number in [0, 1) into a random action: (where we are, number) -> action.

    A policy's probabilities are met to within 2^-23, the step of these numbers. An action of probability 0 is never
    drawn: its interval begins and ends at the same number, before and after rounding.
    """
    if policy is None or policy.probabilities is None:
        return lambda _, choice: (choice * table.num_actions).astype(jnp.int32)
    state_of = jnp.asarray(table.state)
    ends = jnp.asarray(policy.probabilities.cumsum(axis=2)[:, :, :-1], jnp.float32)  # of intervals, [T or 1, S, A - 1]

    def drawn(episode: Episode, choice: Array) -> Array:
        row = ends[jnp.minimum(episode.time, len(ends) - 1), state_of[episode.node]]
        return (choice >= row).sum(dtype=jnp.int32)

    return drawn


def _target(sight: Sight, settings: DQNSettings, theta: Array) -> Array:
    """What is kept of a target network: the largest value of each observation, or else the parameters."""
    if not settings.keeps_values(sight.num_observations):
        return theta + 0.0  # an array of its own: both are given away to the next call
    view = sight.view(theta, num_uses=sight.num_observations)
    return view(jnp.arange(sight.num_observations)).max(axis=1)


def _interval_of(
    table: ObservedTable,
    settings: DQNSettings,
    interval: int,
    sight: Sight,
    random_action: Callable[[Episode, Array], Array],
) -> Any:
    """All cycles from one evaluation to the next, for one seed: (learner, timesteps before) -> (learner, outcome).

    The last cycle stands apart, since the evaluation comes between its steps and its gradient step.
    """
    transitions, seen_in = jnp.asarray(table.transitions), jnp.asarray(table.observation)
    reward_units = jnp.asarray(table.reward_units)
    num_cycles = interval // settings.train_every
    num_actions = table.num_actions
    draws = settings.train_every * 2 + settings.minibatch

    def act(view: Any, episode: Episode, step: Array, chance: Array, choice: Array) -> tuple[Episode, Any]:
        action = jax.lax.cond(  # a pass of a CNN for nothing would cost more than all the rest of a step
            chance < epsilon(settings, step),
            lambda: random_action(episode, choice),
            lambda: jnp.argmax(view(seen_in[episode.node][None])[0]).astype(jnp.int32),
        )
        following = transitions[episode.node, action]
        is_late = episode.time + 1 >= table.horizon
        is_done = (following < 0) | is_late
        is_end = (following < 0) | (is_late & (not table.bootstraps_at_horizon))
        units = episode.units + reward_units[episode.node, action]
        code = 2 * (episode.node * num_actions + action) + is_end
        going_on = Episode(following, episode.time + 1, units)
        return Episode(*(jnp.where(is_done, 0, field) for field in going_on)), (code, is_done, units)

    def collect(learner: Learner, step: Array, uniform: Array) -> tuple[Learner, Report]:
        """`train_every` steps, then the copy to the target network where it is due."""
        view = sight.view(learner.theta, num_uses=settings.train_every)
        chances, choices = uniform[: settings.train_every], uniform[settings.train_every : 2 * settings.train_every]
        episode, collected = learner.episode, []
        for number in range(settings.train_every):
            episode, outcome = act(view, episode, step + number, chances[number], choices[number])
            collected.append(outcome)
        codes, is_done, units = (jnp.stack(column) for column in zip(*collected, strict=True))
        buffer = jax.lax.dynamic_update_slice(learner.buffer, codes, (step % settings.buffer_size,))
        is_due = (step + settings.train_every) % settings.target_interval == 0
        target = jax.lax.cond(is_due, lambda: _target(sight, settings, learner.theta), lambda: learner.target)
        return learner._replace(target=target, buffer=buffer, episode=episode), Report(is_done, units)

    def learn(learner: Learner, step: Array, uniform: Array) -> Learner:
        """The gradient step after `step` timesteps."""
        stored = jnp.minimum(step, settings.buffer_size)
        places = (uniform[2 * settings.train_every :] * stored).astype(jnp.int32)
        codes = learner.buffer[jnp.minimum(places, stored - 1)]
        theta, adam = optimised(table, sight, settings, learner.theta, learner.adam, learner.target, codes)
        return learner._replace(theta=theta, adam=adam)

    def cycle(carry: tuple[Learner, Array], uniform: Array) -> tuple[tuple[Learner, Array], Report]:
        learner, step = carry
        learner, report = collect(learner, step, uniform)
        learner = learn(learner, step + settings.train_every, uniform)
        return (learner, step + settings.train_every), report

    def run(learner: Learner, first_step: Array) -> tuple[Learner, tuple[Report, Array]]:
        key, subkey = jax.random.split(learner.key)
        uniform = jax.random.uniform(subkey, (num_cycles, draws))
        (learner, step), report = jax.lax.scan(cycle, (learner._replace(key=key), first_step), uniform[:-1])
        learner, last = collect(learner, step, uniform[-1])
        view = sight.view(learner.theta, num_uses=table.horizon)
        evaluation = greedy_return(table, lambda seen: view(seen[None])[0])
        learner = learn(learner, step + settings.train_every, uniform[-1])
        report = jax.tree.map(lambda most, end: jnp.concatenate([most, end[None]]), report, last)
        return learner, (report, evaluation)

    return run


def optimised(
    table: ObservedTable,
    sight: Sight,
    settings: DQNSettings,
    theta: Array,
    adam: Adam,
    target: Array,
    codes: Array,  # [M], packed transitions
) -> tuple[Array, Adam]:
    """One gradient step on one minibatch."""
    transitions, rewards = jnp.asarray(table.transitions), jnp.asarray(table.rewards)
    seen_in = jnp.asarray(table.observation)
    node, action, is_end = codes // 2 // table.num_actions, codes // 2 % table.num_actions, codes % 2
    following = seen_in[jnp.maximum(transitions[node, action], 0)]
    if settings.keeps_values(sight.num_observations):
        best = target[following]
    else:
        best = sight.outputs(sight.network.unpacked(target), following).max(axis=1)
    wanted = rewards[node, action] + (1 - is_end) * settings.gamma * best

    def loss(values: Array) -> Array:
        return huber(jnp.take_along_axis(values, action[:, None], axis=1)[:, 0] - wanted).mean()

    return adam_step(
        theta,
        sight.gradient(loss, theta, seen_in[node]),
        adam,
        rate=settings.rate,
        epsilon=settings.adam_epsilon,
        max_norm=settings.max_gradient_norm,
        multiplicity=sight.multiplicity,
    )


def huber(error: Array) -> Array:
    """Half the square within one, linear beyond: torch's smooth_l1_loss."""
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * error * error, size - 0.5)
