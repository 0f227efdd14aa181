"""The (time, state) pairs that some policy can reach, time by time: P pairs in all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Integers, compiled
from efhorizon.errors import InvalidTableError
from efhorizon.io.machine import available_memory
from efhorizon.stochastic.mdp import StochasticMDP

_BYTES_A_PAIR = 44  # two values, two residues, flags and scratch
_LEAST_CHECKED = 1 << 28


@dataclass(frozen=True)
class Layers:
    mdp: StochasticMDP
    starts: NDArray[np.int64]  # [T + 1], of each time in `states`
    states: NDArray[np.int32]  # [P]; ascending within one time

    @property
    def num_pairs(self) -> int:
        return len(self.states)

    def span(self, time: int) -> slice:
        return slice(int(self.starts[time]), int(self.starts[time + 1]))

    def layer(self, time: int) -> NDArray[np.int32]:
        return self.states[self.span(time)]


def layers(mdp: StochasticMDP) -> Layers:
    """Unroll an MDP from its initial states to its horizon."""
    found = [mdp.initial_states]
    mark = np.zeros(mdp.num_states, np.bool_)
    room = np.empty(mdp.num_states, np.int32)
    size = len(found[0])
    for _ in range(mdp.horizon - 1):
        if len(found) > 1 and found[-1] is found[-2]:
            following = found[-1]
        else:
            count = _successors(mdp.offsets, mdp.successors, mdp.num_actions, found[-1], mark, room)
            following = np.sort(room[:count])
            mark[following] = False
            if np.array_equal(following, found[-1]):
                following = found[-1]  # then all later ones are the same
        size += len(following)
        _check_size(size)
        found.append(following)
    starts = np.concatenate([[0], np.cumsum([len(layer) for layer in found])]).astype(np.int64)
    return Layers(mdp, starts, np.concatenate(found).astype(np.int32))


def _check_size(num_pairs: int) -> None:
    needed = num_pairs * _BYTES_A_PAIR
    if needed > _LEAST_CHECKED and needed > available_memory():
        raise InvalidTableError(
            f"{num_pairs:,} reachable (time, state) pairs need {needed:,} bytes of memory, more than is available"
        )


@compiled
def _successors(
    offsets: Integers, successors: Integers, num_actions: int, layer: Integers, mark: NDArray[np.bool_], out: Integers
) -> int:
    count = 0
    for i in range(len(layer)):
        for outcome in range(offsets[layer[i] * num_actions], offsets[(layer[i] + 1) * num_actions]):
            state = successors[outcome]
            if state >= 0 and not mark[state]:
                mark[state] = True
                out[count] = state
                count += 1
    return count
