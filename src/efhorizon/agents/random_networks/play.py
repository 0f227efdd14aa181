"""What networks with random weights earn on a table, as Oller et al. (2020) and Furuta et al. (2021) let them play.

A network has two hidden layers of four tanh units and no biases; every weight is drawn from N(0, 1): the default of
both sources' programs. It sees what PPO and DQN see, images divided by 255. A greedy network takes the action with the
largest output (ties: the lowest), so its episodes are all alike and one is enough. A sampling network draws the action
from the softmax of its outputs, and plays several.

Columns of an observation that are equal in every state are one column whose weight is a sum of normal numbers: the same
distribution, and far fewer numbers to draw. On a table without observations a network sees the number of the state, as
a one-hot vector; `note` says so.

Legend: N networks, M episodes of each, P nodes, A actions, F frames, K frames of a stack, G columns, U observations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.observations import FlatColumns, merged_columns, observed_table
from efhorizon.compiled import Integers, Words, compiled
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_plan
from efhorizon.planning.problem import Problem

UNITS = 4  # in each hidden layer
SEED = 0
MOST_FRAME_BYTES = 1 << 28  # of all images of a table together
_A_BLOCK = 1 << 24  # weights in memory at once
_Single = NDArray[np.float32]


@dataclass(frozen=True)
class Sampling:
    """How many networks play how often."""

    networks: int
    image_networks: int  # fewer where they see images, which take longer
    episodes: int  # of each
    greedy: bool


@dataclass(frozen=True)
class Returns:
    """What networks earned."""

    units: NDArray[np.int64]  # [N, M]
    optimal: int  # in the same units
    note: str  # what played


class _Game(NamedTuple):
    """A table as networks see it: node p shows the frames stacks[observation[p]], one after the other."""

    transitions: Integers  # [P, A]
    rewards: Integers  # [P, A]
    observation: Integers  # [P]
    horizon: int
    values: Any  # [F, G] float32, or [0, 0]: the number of the observation is all that is seen
    stacks: Integers  # [U, K]


class _Weights(NamedTuple):
    first: Any  # [N, K, G, UNITS] float32, or [0, 0, 0, UNITS]: drawn from the seed and the observation's number
    second: Any  # [N, UNITS, UNITS]
    last: Any  # [N, UNITS, A]
    seeds: Words  # [N]


_known: WeakKeyDictionary[Problem, dict[Sampling, Returns | str]] = WeakKeyDictionary()  # measures share networks


def returns_of_random_networks(problem: Problem, sampling: Sampling) -> Returns | str:
    """What random networks earn on a table, or why that cannot be said."""
    found = _known.setdefault(problem, {})
    if sampling not in found:
        found[sampling] = _returns(problem.mdp, sampling)
    return found[sampling]


def _returns(mdp: TabularMDP, sampling: Sampling) -> Returns | str:
    units = mdp.reward_units()
    if units is None:
        return "rewards have no common unit, so returns are not exact"
    if mdp.screens is None:
        rewards = units[0].astype(np.int64)[mdp.reward_codes]
        numbers = np.arange(mdp.num_states, dtype=np.int32)
        nothing = np.zeros((0, 0), np.float32)
        game = _Game(mdp.transitions, rewards, numbers, mdp.horizon, nothing, numbers[:, None])
        optimal = round(optimal_plan(mdp).optimal_return / float(units[1]))
        note = _note(sampling, sampling.networks) + ", which see the number of the state: there are no observations"
        return Returns(_played(game, np.zeros(0, np.float32), sampling, sampling.networks), optimal, note)
    try:
        table = observed_table(mdp)
    except EfhorizonError as error:
        return str(error).removeprefix(f"{mdp.metadata.get('id')}: ")
    seen = table.seen
    if isinstance(seen, FlatColumns):
        values, stacks, count = seen.values, np.arange(len(seen.values), dtype=np.int32)[:, None], sampling.networks
        multiplicity = seen.multiplicity
    elif seen.frames.nbytes > MOST_FRAME_BYTES:
        most = f"{MOST_FRAME_BYTES >> 20} MB"
        return f"{len(seen.frames):,} images are too many for networks that see every pixel (at most {most})"
    else:
        columns = merged_columns(seen.frames.reshape(len(seen.frames), -1))
        values, stacks, count = columns.values / np.float32(255), seen.stacks, sampling.image_networks
        multiplicity = columns.multiplicity
    rewards = table.reward_units.astype(np.int64)
    game = _Game(table.transitions, rewards, table.observation, table.horizon, values, stacks)
    return Returns(_played(game, np.sqrt(multiplicity), sampling, count), table.optimal_units, _note(sampling, count))


def _note(sampling: Sampling, count: int) -> str:
    each = "" if sampling.episodes == 1 else f" playing {sampling.episodes} episodes each"
    return f"{count:,} networks with random weights{each}, seed {SEED}"


def _played(game: _Game, scales: _Single, sampling: Sampling, count: int) -> NDArray[np.int64]:
    """The returns [N, M]; `scales` [G] are the standard deviations of the first layer's weights."""
    rng = np.random.default_rng(SEED)
    depth, num_columns, num_actions = game.stacks.shape[1], game.values.shape[1], game.transitions.shape[1]
    earned = np.zeros((count, sampling.episodes), np.int64)
    block = min(count, max(1, _A_BLOCK // max(1, depth * num_columns * UNITS)))
    for start in range(0, count, block):
        size = min(block, count - start)
        weights = _Weights(
            rng.standard_normal((size, depth, num_columns, UNITS), np.float32) * scales[:, None],
            rng.standard_normal((size, UNITS, UNITS), np.float32),
            rng.standard_normal((size, UNITS, num_actions), np.float32),
            rng.integers(1 << 63, size=size, dtype=np.uint64),
        )
        _play(game, weights, sampling.greedy, earned[start : start + size])
    return earned


@compiled
def _play(game: _Game, weights: _Weights, greedy: bool, earned: Integers) -> None:
    num_actions, num_observations = game.transitions.shape[1], len(game.stacks)
    outputs = np.zeros((num_observations, num_actions))  # of the network at hand, where it has been
    computed = np.full(num_observations, -1, np.int64)  # the network that they are of
    for network in range(len(earned)):
        draws = 0
        for episode in range(earned.shape[1]):
            node, total = 0, 0
            for _ in range(game.horizon):
                shown = game.observation[node]
                if computed[shown] != network:
                    _evaluate(game, weights, network, shown, greedy, outputs[shown])
                    computed[shown] = network
                action = 0
                if greedy:
                    for other in range(1, num_actions):
                        if outputs[shown, other] > outputs[shown, action]:
                            action = other
                else:
                    drawn = _uniform(weights.seeds[network], draws)
                    draws += 1
                    while action < num_actions - 1 and drawn >= outputs[shown, action]:
                        action += 1
                total += game.rewards[node, action]
                node = game.transitions[node, action]
                if node < 0:
                    break
            earned[network, episode] = total


@compiled
def _evaluate(game: _Game, weights: _Weights, network: int, shown: int, greedy: bool, out: Any) -> None:
    """The outputs of a network, or the distribution function of the action that it draws from them."""
    one, two = np.zeros(UNITS), np.zeros(UNITS)
    if len(game.values):
        for k in range(game.stacks.shape[1]):
            frame = game.stacks[shown, k]
            for column in range(game.values.shape[1]):
                value = game.values[frame, column]
                if value != 0:
                    for unit in range(UNITS):
                        one[unit] += value * weights.first[network, k, column, unit]
    else:
        for unit in range(UNITS):
            one[unit] = _normal(weights.seeds[network] ^ _OTHER, shown * UNITS + unit)
    for unit in range(UNITS):
        for before in range(UNITS):
            two[unit] += np.tanh(one[before]) * weights.second[network, before, unit]
    for action in range(len(out)):
        out[action] = 0.0
        for unit in range(UNITS):
            out[action] += np.tanh(two[unit]) * weights.last[network, unit, action]
    if not greedy:
        largest, total = out.max(), 0.0
        for action in range(len(out)):
            total += np.exp(out[action] - largest)
            out[action] = total
        for action in range(len(out)):
            out[action] /= total


_STEP: Any = np.uint64(0x9E3779B97F4A7C15)
_OTHER: Any = np.uint64(0xD1B54A32D192ED03)  # another stream of random numbers of the same seed
_MIX_1: Any = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Any = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_TWO_PI = 2 * math.pi


@compiled
def _uniform(seed: Any, number: int) -> float:
    """A random number in [0, 1) of a seed, by its place in the sequence: SplitMix64 (Steele, Lea and Flood 2014)."""
    word = seed + np.uint64(number + 1) * _STEP
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return float((word ^ (word >> _S31)) >> _S11) * 2.0**-53


@compiled
def _normal(seed: Any, number: int) -> float:
    """The same from N(0, 1), by Box and Muller."""
    radius = np.sqrt(-2 * np.log(1 - _uniform(seed, 2 * number)))
    return float(radius * np.cos(_TWO_PI * _uniform(seed, 2 * number + 1)))
