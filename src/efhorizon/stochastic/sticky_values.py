"""Value iteration with sticky actions without writing the sticky table out.

With D_t(s, a) = R(s, a) + V_{t+1}(f(s, a), a), the value of executing a, a sticky state's value is

    V_t(s, p) = (1 - q) max_a D_t(s, a) + q D_t(s, p)

so a step takes one gather for each of the S A pairs of the deterministic table, where the sticky table itself has up to
2 S A^2 outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Floats, Integers, compiled, compiled_parallel, prange
from efhorizon.mdp import TabularMDP
from efhorizon.planning.threads import on_layer
from efhorizon.stochastic.sticky import InvalidStickinessError

_A_BLOCK = 1 << 10


@dataclass(frozen=True)
class StickyValues:
    """Optimal values at time 0 of every state, as if it were met then."""

    values: NDArray[np.float64]  # V_0(s, p) [S, A]
    at_start: float  # the optimal return from state 0, where no action was executed yet


def sticky_values(mdp: TabularMDP, chance: float) -> StickyValues:
    """Optimal values with sticky actions, for all states of the table at every time."""
    if not 0.0 <= chance < 1.0:
        raise InvalidStickinessError(f"the chance of repeating an action must be at least 0 and below 1, got {chance}")
    num_states = mdp.num_states
    shape = num_states + 1, mdp.num_actions  # the last row stands for the end, and stays 0
    values, room = np.zeros(shape), np.zeros(shape)
    transitions = np.where(mdp.transitions >= 0, mdp.transitions, np.int32(num_states))  # no branch in the inner loop
    codes, rewards = mdp.reward_codes, mdp.reward_values
    for _ in range(mdp.horizon):
        on_layer(_back, slice(0, num_states), transitions, codes, rewards, chance, values, room)
        values, room = room, values
    first = mdp.rewards[0] + room[transitions[0], np.arange(mdp.num_actions)]
    return StickyValues(values[:-1], float(first.max()))


@compiled
def _back_block(
    begin: int,
    end: int,
    transitions: Integers,
    codes: Integers,
    rewards: Floats,
    chance: float,
    following: Floats,
    out: Floats,
) -> None:
    num_actions = transitions.shape[1]
    kept = 1.0 - chance
    for state in range(begin, end):
        highest = -np.inf
        for action in range(num_actions):
            successor = transitions[state, action]
            value = rewards[codes[state, action]] + following[successor, action]
            out[state, action] = value
            highest = max(highest, value)
        share = kept * highest
        for action in range(num_actions):
            out[state, action] = share + chance * out[state, action]


@compiled_parallel
def _back(
    start: int,
    stop: int,
    transitions: Integers,
    codes: Integers,
    rewards: Floats,
    chance: float,
    following: Floats,
    out: Floats,
) -> None:
    for block in prange(-(-(stop - start) // _A_BLOCK)):
        begin = start + block * _A_BLOCK
        _back_block(begin, min(begin + _A_BLOCK, stop), transitions, codes, rewards, chance, following, out)
