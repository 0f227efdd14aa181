"""PPO with an MLP, for tables with flat observations: environments and learner in one jit, seeds side by side.

The parameters are fixed during a rollout, so wherever a table shows fewer observations than a rollout has steps, the
network is evaluated once on all of them and the rollout itself only looks up. The same holds for a minibatch.

Legend: B seeds, N environments, T steps of a rollout, A actions, M samples of a minibatch, U observations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.forward import Sight
from efhorizon.agents.networks import Adam, Array, adam_start, adam_step, first_parameters
from efhorizon.agents.observations import ObservedTable
from efhorizon.agents.ppo import PPOSettings, Report

_STEPS_A_CALL = 10_240  # timesteps between looks at the results: about one evaluation


class FlatLearners:
    """The learners of several seeds; see `ppo.Learners`."""

    def __init__(
        self,
        table: ObservedTable,
        settings: PPOSettings,
        interval: int,
        seeds: Sequence[int],
        initial: NDArray[np.float32] | None = None,
    ) -> None:
        sight = Sight.of(table, "actor_critic")
        updates_a_call = max(1, _STEPS_A_CALL // settings.samples)
        update = jax.vmap(_update_of(table, settings, interval, sight), in_axes=(0, None))

        @compiled
        def several_updates(learners: Learner, first_step: Array) -> tuple[Learner, Report]:
            def one(carry: Learner, number: Array) -> tuple[Learner, Report]:
                updated: tuple[Learner, Report] = update(carry, first_step + number * settings.samples)
                return updated

            return jax.lax.scan(one, learners, jnp.arange(updates_a_call))

        self._several_updates = several_updates
        self._carried = starts(sight, settings, seeds, initial)

    def updates(self, step: int) -> Report:
        self._carried, reports = self._several_updates(self._carried, jnp.int32(step))
        return Report(*(np.asarray(array) for array in reports))

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        """Each number of seeds is compiled anew, which takes seconds: some are left out when half have finished."""
        num_seeds = len(self._carried.theta)
        if 2 * len(places) > num_seeds:
            return range(num_seeds)
        if places:
            self._carried = jax.tree.map(lambda array: array[jnp.array(places)], self._carried)
        return places


class Episodes(NamedTuple):
    """Where the environments are."""

    node: Array  # [N]
    time: Array  # [N]
    units: Array  # [N], return so far


class Learner(NamedTuple):
    """Everything that one seed carries from update to update."""

    theta: Array  # [n]
    adam: Adam
    episodes: Episodes
    key: Array


class Rollout(NamedTuple):
    """What a rollout collected; every field [T, N]."""

    observation: Array
    action: Array
    reward: Array  # with the value of the cut-off state added where the horizon cut an episode short
    value: Array
    log_probability: Array
    is_done: Array
    units: Array  # return of the episode so far


def starts(sight: Sight, settings: PPOSettings, seeds: Sequence[int], initial: NDArray[np.float32] | None) -> Learner:
    """Fresh learners [B, ...], their environments at the start state."""
    theta = jnp.asarray(first_parameters(sight.network, seeds, initial))
    begun = Episodes(*(jnp.zeros((len(seeds), settings.num_envs), jnp.int32) for _ in Episodes._fields))
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    return Learner(theta, jax.vmap(adam_start)(theta), begun, keys)


def _update_of(table: ObservedTable, settings: PPOSettings, interval: int, sight: Sight) -> Any:
    """One update of one seed: (learner, timesteps before it) -> (learner, report)."""
    transitions, rewards = jnp.asarray(table.transitions), jnp.asarray(table.rewards)
    reward_units, seen_in = jnp.asarray(table.reward_units), jnp.asarray(table.observation)

    def step(view: Any, episodes: Episodes, noise: Array) -> tuple[Episodes, Rollout]:
        observation = seen_in[episodes.node]
        logits, value = view(observation)
        action = jnp.argmax(logits + noise, axis=1)  # the Gumbel trick: a sample of softmax(logits)
        following = transitions[episodes.node, action]
        units = episodes.units + reward_units[episodes.node, action]
        reward = rewards[episodes.node, action]
        is_late = episodes.time + 1 >= table.horizon
        is_done = (following < 0) | is_late
        if table.bootstraps_at_horizon:
            is_cut = is_late & (following >= 0)
            _, value_there = view(seen_in[jnp.maximum(following, 0)])
            reward = reward + jnp.where(is_cut, settings.gamma * value_there, 0.0)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], axis=1)[:, 0]
        collected = Rollout(observation, action, reward, value, chosen, is_done, units)
        going_on = Episodes(following, episodes.time + 1, units)
        return Episodes(*(jnp.where(is_done, 0, field) for field in going_on)), collected

    def update(learner: Learner, first_step: Array) -> tuple[Learner, Report]:
        key, noise, orders = _randomness(learner.key, settings, table.num_actions)
        view = sight.view(learner.theta, num_uses=settings.samples)
        episodes, rollout = jax.lax.scan(lambda at, drawn: step(view, at, drawn), learner.episodes, noise)
        _, last_values = view(seen_in[episodes.node])
        advantages = generalised_advantages(
            rollout.reward, rollout.value, rollout.is_done, last_values, settings.gamma, settings.gae_lambda
        )
        batch = jax.tree.map(jnp.ravel, (rollout.observation, rollout.action, rollout.log_probability, advantages))
        batch = (*batch, jnp.ravel(advantages + rollout.value))

        def minibatch(carry: tuple[Array, Adam], chosen: Array) -> tuple[tuple[Array, Adam], None]:
            return optimised(sight, settings, *carry, *(field[chosen] for field in batch)), None

        (theta, adam), _ = jax.lax.scan(minibatch, (learner.theta, learner.adam), orders)
        is_due = (first_step + settings.samples) // interval > first_step // interval
        evaluation = jax.lax.cond(
            is_due, lambda: greedy_return(table, lambda seen: view(seen[None])[0][0]), lambda: jnp.int32(0)
        )
        return Learner(theta, adam, episodes, key), Report(rollout.is_done, rollout.units, evaluation)

    return update


def _randomness(key: Array, settings: PPOSettings, num_actions: int) -> tuple[Array, Array, Array]:
    """The next key, Gumbel noise [T, N, A], and minibatches [., M] of sample numbers that shuffle each epoch anew.

    All bits of an update are drawn at once: every further draw would be compiled separately.
    """
    num_noise, num_orders = settings.samples * num_actions, settings.num_epochs * settings.samples
    key, subkey = jax.random.split(key)
    bits = jax.random.bits(subkey, (num_noise + num_orders,))
    uniform = ((bits[:num_noise] >> 9).astype(jnp.float32) + 0.5) * 2.0**-23  # in (0, 1), never 0 or 1
    noise = -jnp.log(-jnp.log(uniform)).reshape(settings.rollout_length, settings.num_envs, num_actions)
    orders = jnp.argsort(bits[num_noise:].reshape(settings.num_epochs, settings.samples), axis=1)
    return key, noise, orders.reshape(-1, settings.minibatch)


def optimised(
    sight: Sight,
    settings: PPOSettings,
    theta: Array,
    adam: Adam,
    observation: Array,  # [M]
    action: Array,  # [M]
    old_log_probability: Array,  # [M]
    advantage: Array,  # [M]
    target: Array,  # [M]
) -> tuple[Array, Adam]:
    """One gradient step on one minibatch."""

    def loss(outputs: tuple[Array, Array]) -> Array:
        return losses(settings, *outputs, action, old_log_probability, advantage, target)

    return adam_step(
        theta,
        sight.gradient(loss, theta, observation),
        adam,
        rate=settings.rate,
        epsilon=settings.adam_epsilon,
        max_norm=settings.max_gradient_norm,
        multiplicity=sight.multiplicity,
    )


def losses(
    settings: PPOSettings,
    logits: Array,  # [M, A]
    values: Array,  # [M]
    action: Array,  # [M]
    old_log_probability: Array,  # [M]
    advantage: Array,  # [M]
    target: Array,  # [M]
) -> Array:
    """The loss L of one minibatch; advantages are normalised within it."""
    advantage = (advantage - advantage.mean()) / (jnp.std(advantage, ddof=1) + 1e-8)
    log_policy = jax.nn.log_softmax(logits)
    ratio = jnp.exp(jnp.take_along_axis(log_policy, action[:, None], axis=1)[:, 0] - old_log_probability)
    clipped = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    policy_loss = -jnp.minimum(advantage * ratio, advantage * clipped).mean()
    entropy = -(jnp.exp(log_policy) * log_policy).sum(axis=1).mean()
    value_loss = ((target - values) ** 2).mean()
    return policy_loss - settings.entropy_weight * entropy + settings.value_weight * value_loss


def generalised_advantages(
    reward: Array,  # [T, N]
    value: Array,  # [T, N]
    is_done: Array,  # [T, N], whether the step ended an episode
    last_value: Array,  # [N], of the state after the rollout
    gamma: float,
    gae_lambda: float,
) -> Array:
    """A_t = delta_t + gamma lambda A_{t+1} within an episode, delta_t = r_t + gamma V_{t+1} - V_t; [T, N]."""

    def back(carry: tuple[Array, Array], step: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        following_advantage, following_value = carry
        reward, value, goes_on = step
        delta = reward + gamma * following_value * goes_on - value
        advantage = delta + gamma * gae_lambda * goes_on * following_advantage
        return (advantage, value), advantage

    goes_on = 1.0 - is_done.astype(jnp.float32)
    _, advantages = jax.lax.scan(back, (jnp.zeros_like(last_value), last_value), (reward, value, goes_on), reverse=True)
    return advantages


def greedy_return(table: ObservedTable, preferences: Callable[[Array], Array]) -> Array:
    """The return, in units, of the episode that takes the action with the largest preference in each state."""
    transitions, reward_units = jnp.asarray(table.transitions), jnp.asarray(table.reward_units)
    seen_in = jnp.asarray(table.observation)

    def goes_on(at: tuple[Array, Array, Array]) -> Array:
        node, time, _ = at
        return (node >= 0) & (time < table.horizon)

    def step(at: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        node, time, units = at
        action = jnp.argmax(preferences(seen_in[node]))
        return transitions[node, action], time + 1, units + reward_units[node, action]

    zero = jnp.int32(0)
    return jax.lax.while_loop(goes_on, step, (zero, zero, zero))[2]


@cache
def _compiler_options() -> dict[str, Any] | None:
    """XLA's newer emitters for CPUs take two to three times as long to compile these loops and gain nothing."""
    options = {"xla_cpu_use_fusion_emitters": False}
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=options).lower().compile()
    except Exception:  # the option is gone in this version of XLA
        return None
    return options


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit`, quick to compile; the first argument is given away, so that it is updated in place."""
    return jax.jit(function, compiler_options=_compiler_options(), donate_argnums=0)
