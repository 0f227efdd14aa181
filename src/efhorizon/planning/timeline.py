"""The (time, state) pairs that can be reached: where all dynamic programming happens.

Most tables are far smaller unrolled over time than S times T: in Atari and Procgen a state carries a clock and is met
at one time only. Pairs are numbered time by time, and within a time by ascending state, so pair 0 is the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Integers, compiled, compiled_parallel, prange
from efhorizon.errors import InvalidTableError
from efhorizon.io.machine import available_memory
from efhorizon.mdp import TabularMDP
from efhorizon.planning._kernels import Steps
from efhorizon.planning.threads import on_layer

_BYTES_A_NUMBER = 4
_LEAST_CHECKED = 1 << 28  # bytes; less than that is always there
_MANY = 16  # a layer of more than one in so many states is quicker found by scanning all states than by sorting


@dataclass(frozen=True)
class Timeline:
    """Reachable pairs of an MDP. P pairs in all; those of time t are starts[t] .. starts[t + 1] - 1."""

    mdp: TabularMDP
    starts: NDArray[np.int64]  # [T + 1]
    states: NDArray[np.int32]  # [P], the state of each pair
    successors: NDArray[np.int32]  # [P, A], the pair that follows; -1 where the episode ends (also after the last time)

    @property
    def num_pairs(self) -> int:
        return len(self.states)

    @property
    def steps(self) -> Steps:
        """What kernels read."""
        return Steps(self.successors, self.states, self.mdp.reward_codes)

    def layer(self, time: int) -> slice:
        """The pairs of one time."""
        return slice(int(self.starts[time]), int(self.starts[time + 1]))

    def time_of(self, pair: int) -> int:
        return int(np.searchsorted(self.starts, pair, side="right")) - 1


def timeline(mdp: TabularMDP) -> Timeline:
    """Unroll an MDP from its start state to its horizon."""
    layers = [np.zeros(1, np.int32)]
    place = np.full(mdp.num_states, -1, np.int32)  # of a state in the layer at hand
    num_pairs = 1
    while len(layers) < mdp.horizon:
        following = _next_layer(mdp.transitions, layers[-1], place)
        if not len(following):
            break
        num_pairs += len(following)
        _check_size(num_pairs, mdp)
        if np.array_equal(following, layers[-1]):  # then so are all later ones: a layer depends on the one before only
            _check_size(num_pairs + len(following) * (mdp.horizon - len(layers) - 1), mdp)
            layers += [layers[-1]] * (mdp.horizon - len(layers))
            break
        layers.append(following)
    sizes = [len(layer) for layer in layers] + [0] * (mdp.horizon - len(layers))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    states = _frozen(np.concatenate(layers))
    if _is_own_timeline(mdp, states, int(starts[len(layers) - 1])):
        return Timeline(mdp, starts, states, mdp.transitions[: len(states)])
    successors = np.empty((int(starts[-1]), mdp.num_actions), np.int32)
    for time in range(len(layers)):
        pairs = successors[starts[time] : starts[time + 1]]
        if time + 1 == len(layers):
            pairs.fill(-1)
            break
        if time and layers[time + 1] is layers[time - 1]:
            before = successors[starts[time - 1] : starts[time]]
            on_layer(_shift, slice(0, len(pairs)), before, np.int32(len(pairs)), pairs)
            continue
        place[layers[time + 1]] = np.arange(starts[time + 1], starts[time + 2], dtype=np.int32)
        on_layer(_link, slice(0, len(pairs)), mdp.transitions, layers[time], place, pairs)
    return Timeline(mdp, starts, states, _frozen(successors))


def _check_size(num_pairs: int, mdp: TabularMDP) -> None:
    """Refuse what cannot be unrolled, before memory is taken for it."""
    if num_pairs > np.iinfo(np.int32).max:
        raise InvalidTableError(f"{num_pairs:,} reachable (time, state) pairs do not fit in 32-bit indices")
    needed = _BYTES_A_NUMBER * (num_pairs if num_pairs <= mdp.num_states else num_pairs * (mdp.num_actions + 1))
    if needed > _LEAST_CHECKED and needed > available_memory():
        raise InvalidTableError(
            f"{num_pairs:,} reachable (time, state) pairs need {needed:,} bytes of memory, more than is available"
        )


def _is_own_timeline(mdp: TabularMDP, states: NDArray[np.int32], last_start: int) -> bool:
    """Whether pairs and states have the same numbers: the table's own transitions then serve, without a copy."""
    if len(states) > mdp.num_states or int(states[-1]) != len(states) - 1:
        return False
    return bool((np.diff(states) == 1).all() and (mdp.transitions[last_start : len(states)] < 0).all())


def _frozen(array: NDArray[np.int32]) -> NDArray[np.int32]:
    array.flags.writeable = False
    return array


def _next_layer(transitions: NDArray[np.int32], layer: NDArray[np.int32], mark: NDArray[np.int32]) -> NDArray[np.int32]:
    """Successors of a layer, ascending, each once; `mark` is -1 before and after."""
    found = np.empty(min(layer.size * transitions.shape[1], len(transitions)), np.int32)
    count = _collect(transitions, layer, mark, found)
    if count > len(transitions) // _MANY:
        following = np.flatnonzero(mark == 0).astype(np.int32)
        mark.fill(-1)
        return following
    following = found[:count].copy()
    mark[following] = -1
    following.sort()
    return following


@compiled
def _collect(transitions: Integers, layer: Integers, mark: Integers, found: Integers) -> int:
    count = 0
    for i in range(len(layer)):
        for action in range(transitions.shape[1]):
            successor = transitions[layer[i], action]
            if successor >= 0 and mark[successor] < 0:
                mark[successor] = 0
                found[count] = successor
                count += 1
    return count


@compiled_parallel
def _link(start: int, stop: int, transitions: Integers, layer: Integers, place: Integers, out: Integers) -> None:
    for i in prange(start, stop):
        for action in range(transitions.shape[1]):
            successor = transitions[layer[i], action]
            out[i, action] = place[successor] if successor >= 0 else -1


@compiled_parallel
def _shift(start: int, stop: int, before: Integers, distance: np.int32, out: Integers) -> None:
    for i in prange(start, stop):
        for action in range(before.shape[1]):
            successor = before[i, action]
            out[i, action] = successor + distance if successor >= 0 else np.int32(-1)
