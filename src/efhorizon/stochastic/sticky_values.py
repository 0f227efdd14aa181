"""Value iteration with sticky actions without writing the sticky table out.

With D_t(s, a) = R(s, a) + V_{t+1}(f(s, a), a), the value of executing a, a sticky state's value is

    V_t(s, p) = (1 - q) max_a D_t(s, a) + q D_t(s, p)

so a step takes one gather for each of the S A pairs of the deterministic table, where the sticky table itself has up to
2 S A^2 outcomes. Arrays are [A, S]: the successors of neighbouring states under one action mostly lie side by side, and
the loop over states is one that compilers turn into vector instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Floats, Integers, compiled_with, prange
from efhorizon.mdp import TabularMDP
from efhorizon.planning.threads import threads_if
from efhorizon.stochastic.sticky import InvalidStickinessError

_A_BLOCK = 1 << 11  # states; what a block reads and writes stays in the cache
_MIN_PARALLEL_PAIRS = 1 << 23  # a pair takes 2 ns: below, a busy machine takes longer to wake a thread for each step


@dataclass(frozen=True)
class StickyValues:
    """Optimal values at time 0 of every state, as if it were met then."""

    values: NDArray[np.float64]  # V_0(s, p) [S, A]
    at_start: float  # the optimal return from state 0, where no action was executed yet


def sticky_values(mdp: TabularMDP, chance: float) -> StickyValues:
    """Optimal values with sticky actions, for all states of the table at every time."""
    if not 0.0 <= chance < 1.0:
        raise InvalidStickinessError(f"the chance of repeating an action must be at least 0 and below 1, got {chance}")
    num_states, num_actions = mdp.num_states, mdp.num_actions
    shape = num_actions, num_states + 1  # the last column stands for the end, and stays 0
    values, room = np.zeros(shape), np.zeros(shape)
    # unsigned, so that no index is tested for being negative; no branch in the inner loop
    transitions = np.ascontiguousarray(np.where(mdp.transitions >= 0, mdp.transitions, num_states).T, np.uint32)
    codes, rewards = np.ascontiguousarray(mdp.reward_codes.T), mdp.reward_values
    highest = np.empty((-(-num_states // _A_BLOCK), _A_BLOCK))
    with threads_if(num_states * num_actions >= _MIN_PARALLEL_PAIRS):
        for _ in range(mdp.horizon):
            _back(transitions, codes, rewards, chance, values, highest, room)
            values, room = room, values
    first = rewards[codes[:, 0]] + room[np.arange(num_actions), transitions[:, 0]]
    return StickyValues(values[:, :-1].T, float(first.max()))


@compiled_with(fastmath={"nnan"})  # values are numbers; nothing else is given up
def _back_block(
    begin: int,
    end: int,
    transitions: Integers,  # [A, S]
    codes: Integers,  # [A, S]
    rewards: Floats,
    chance: float,
    following: Floats,  # [A, S + 1]
    highest: Floats,
    out: Floats,  # [A, S + 1]
) -> None:
    kept, count = 1.0 - chance, end - begin
    for place in range(count):
        highest[place] = -np.inf
    for action in range(len(transitions)):
        successors, code, after, executed = transitions[action], codes[action], following[action], out[action]
        for place in range(count):
            value = rewards[code[begin + place]] + after[successors[begin + place]]
            executed[begin + place] = value
            highest[place] = max(highest[place], value)
    for place in range(count):
        highest[place] *= kept
    for action in range(len(transitions)):
        executed = out[action]
        for place in range(count):
            executed[begin + place] = highest[place] + chance * executed[begin + place]


@compiled_with(parallel=True, fastmath={"nnan"})
def _back(
    transitions: Integers,
    codes: Integers,
    rewards: Floats,
    chance: float,
    following: Floats,
    highest: Floats,  # [blocks, _A_BLOCK]
    out: Floats,
) -> None:
    num_states = transitions.shape[1]
    for block in prange(len(highest)):
        begin = block * _A_BLOCK
        end = min(begin + _A_BLOCK, num_states)
        _back_block(begin, end, transitions, codes, rewards, chance, following, highest[block], out)
