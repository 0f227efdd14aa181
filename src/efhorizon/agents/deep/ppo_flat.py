"""PPO with an MLP, for tables with flat observations: environments and learner in one compiled loop.

A thread takes a seed. Parameters are fixed during a rollout, so the network sees every observation of it once.
`ppo_gradient` has the network and its loss.

Legend: B seeds, N environments, T steps of a rollout, A actions, U observations of the table, n parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

from efhorizon.agents.deep.flat import ONE, ZERO, GameArrays, Singles, adam_step, executed, game_of, show
from efhorizon.agents.deep.learners import Updates
from efhorizon.agents.deep.networks import first_parameters, network_for
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.ppo_gradient import PPORules, Room, Samples, empty_room, evaluate, fill_gradient, rules_of
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.agents.streams import drawn_below, streams
from efhorizon.compiled import Flags, Integers, Words, compiled, compiled_with

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

_STEPS_A_CALL = 10_240  # timesteps between two reports: about one evaluation
_BITS = 2**31


class FlatPPO:
    """The learners of several seeds; see `PPOLearners`."""

    def __init__(
        self,
        table: ObservedTable,
        settings: PPOSettings,
        interval: int,
        seeds: Sequence[int],
        initial: Singles | None = None,
    ) -> None:
        network = network_for("actor_critic", table)
        self._game, self._rules = game_of(table), rules_of(table, settings, interval)
        self._multiplicity = network.multiplicity
        theta = first_parameters(network, seeds, initial)
        self.carried = PPOCarried(
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

        def work(mine: PPOCarried, *told_by_it: Any) -> None:
            _updates(step, mine, self._multiplicity, self._game, rules, *told_by_it)

        # BLAS keeps to one thread: several that share small matrices would wait for each other
        with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(numba.get_num_threads()) as pool:
            list(pool.map(work, self.seeds(), *told))
        return Updates(*(field.swapaxes(0, 1) for field in told))

    def seeds(self) -> list[PPOCarried]:
        """What each seed carries, as views."""
        return [PPOCarried(*arrays) for arrays in zip(*self.carried, strict=True)]

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        if len(places) < len(self.carried.theta):
            self.carried = PPOCarried._make(array[list(places)] for array in self.carried)
        return places


class PPOCarried(NamedTuple):
    """What seeds carry from update to update."""

    theta: Singles  # [B, n]
    first: Singles  # [B, n], Adam's mean of gradients
    second: Singles  # [B, n], of squares
    episodes: Integers  # int64 [B, 3, N]: node, time, return so far
    words: Words  # [B, 2], random stream
    outputs: Singles  # [B, U, A + 1]: logits and value of observations that a rollout met
    places: Integers  # int32 [B, 2, U]: the rollout that met it last, and where it is in a minibatch


@cache
def _blas() -> Any:
    return ThreadpoolController()


@compiled_with(nogil=True)
def _updates(
    step: int,
    mine: PPOCarried,
    multiplicity: Singles,
    game: GameArrays,
    rules: PPORules,
    is_done: Flags,
    units: Integers,
    evaluation: Integers,
) -> None:
    """`PPOLearners.updates` for one seed: fills its part of the report."""
    room = empty_room(max(rules.minibatch, rules.num_envs), game)
    for number in range(len(evaluation)):
        first_step = step + number * rules.samples
        told = is_done[number], units[number]
        evaluation[number] = _update(first_step, mine, multiplicity, game, rules, room, *told)


@compiled
def _update(
    first_step: int,
    mine: PPOCarried,
    multiplicity: Singles,
    game: GameArrays,
    rules: PPORules,
    room: Room,
    is_done: Flags,
    units: Integers,
) -> int:
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


@compiled
def _shuffle(order: Integers, words: Words) -> None:
    """Fisher and Yates."""
    for last in range(len(order) - 1, 0, -1):
        other = drawn_below(words, last + 1)
        order[last], order[other] = order[other], order[last]


@compiled
def rollout(
    now: int, mine: PPOCarried, game: GameArrays, rules: PPORules, room: Room, is_done: Flags, units: Integers
) -> Samples:
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
            taken = executed(node[env], chosen, mine.words, game)
            following = game.transitions[node[env], taken]
            action[step, env], reward[step, env] = chosen, game.rewards[node[env], taken]
            units[step, env] = so_far[env] + game.reward_units[node[env], taken]
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


@compiled
def drawn(logits: Singles, words: Words) -> tuple[int, np.float32]:
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


@compiled
def _meet(observations: Integers, now: int, mine: PPOCarried, game: GameArrays, room: Room) -> None:
    """See to it that the outputs of these observations, no more than there is room for, are those of rollout `now`."""
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


@compiled
def greedy_return(now: int, mine: PPOCarried, game: GameArrays, rules: PPORules, room: Room) -> int:
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


@compiled
def generalised_advantages(
    reward: Singles, value: Singles, is_done: Flags, last_value: Singles, gamma: np.float32, gae_lambda: np.float32
) -> Singles:
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
