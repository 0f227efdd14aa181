"""Sticky actions: from the second step on, the previous action is repeated with some chance.

A state of the sticky table is a state of the deterministic table with the action that was executed last:

    (s, p), a   ->   (f(s, a), a) with probability 1 - q,   (f(s, p), p) with probability q

State 0 is the start, before any action; there the chosen action is executed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.layers import Layers
from efhorizon.stochastic.mdp import StochasticMDP, as_fraction, from_deterministic

DEFAULT = 0.25  # what the Arcade Learning Environment and the paper's authors use


class InvalidStickinessError(EfhorizonError, ValueError):
    """A chance of repeating an action that is no probability below 1."""


def sticky(mdp: TabularMDP, chance: float = DEFAULT) -> StochasticMDP:
    """The table with sticky actions; only states that can be reached. With chance 0, the table as it is."""
    if not 0.0 <= chance < 1.0:
        raise InvalidStickinessError(f"the chance of repeating an action must be at least 0 and below 1, got {chance}")
    if not mdp.is_complete:
        raise InvalidTableError("sticky actions need a finished table; this one has unexplored states")
    name = f"{mdp.metadata.get('id', 'table')}-sticky{chance:g}"
    metadata = {**mdp.metadata, "id": name, "sticky": chance, "made_from": mdp.metadata.get("id", "table")}
    if chance == 0.0:
        return from_deterministic(mdp).with_metadata(**metadata)
    num_actions = mdp.num_actions
    states, previous, number = _numbered(mdp)
    actions = np.arange(num_actions)
    is_single = (previous[:, None] < 0) | (previous[:, None] == actions)  # [S, A]
    counts = np.where(is_single, 1, 2).reshape(-1)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    successors = np.empty(int(offsets[-1]), np.int32)
    codes = np.empty(len(successors), mdp.reward_codes.dtype)
    chances = np.zeros(len(successors), np.uint8)
    chosen = offsets[:-1].reshape(-1, num_actions)
    following = mdp.transitions[states]  # [S, A]
    successors[chosen] = np.where(following >= 0, number[np.maximum(following, 0), actions], -1)
    codes[chosen] = mdp.reward_codes[states]
    chances[chosen] = np.where(is_single, 2, 1)
    rows, columns = np.nonzero(~is_single)
    repeated = chosen[rows, columns] + 1
    again = previous[rows]
    after = mdp.transitions[states[rows], again]
    successors[repeated] = np.where(after >= 0, number[np.maximum(after, 0), again], -1)
    codes[repeated] = mdp.reward_codes[states[rows], again]
    repeat = as_fraction(chance) or Fraction(chance)
    return StochasticMDP(
        (len(states), num_actions),
        {
            "offsets": offsets,
            "successors": successors,
            "reward_codes": codes,
            "reward_values": mdp.reward_values,
            "probability_codes": chances,
            "probability_values": np.array([float(repeat), float(1 - repeat), 1.0]),
        },
        mdp.horizon,
        base_states=states,
        previous_actions=previous,
        metadata=metadata,
    )


def num_published_states(mdp: StochasticMDP, layers: Layers) -> int:
    """How many states there are as the paper's authors count them.

    They count pairs of a state and a previous action that are met before the horizon. An episode that is over stays in
    one more state, where every action can still be taken; and the start counts as (state 0, action 0). Without sticky
    actions it is the number of states of the table.
    """
    if mdp.previous_actions is None or mdp.base_states is None:
        return mdp.num_states
    met = np.zeros(mdp.num_states, np.bool_)
    met[layers.states] = True
    count = int(met.sum())
    is_start_again = (mdp.base_states == mdp.base_states[0]) & (mdp.previous_actions == 0)
    if is_start_again.any() and met[np.flatnonzero(is_start_again)[0]]:
        count -= 1
    executed = np.arange(mdp.num_actions)
    ended: set[int] = set()
    for time in range(mdp.horizon - 1):  # what is reached by time T - 1
        if ended:
            return count + mdp.num_actions
        for state in layers.layer(time):
            after = _executed_ends(mdp, int(state), executed)
            ended |= after
    return count + len(ended)


def _executed_ends(mdp: StochasticMDP, state: int, actions: NDArray[np.int64]) -> set[int]:
    """The actions whose execution in a state ends the episode."""
    first = mdp.offsets[state * mdp.num_actions : (state + 1) * mdp.num_actions]
    return set(actions[mdp.successors[first] < 0].tolist())


def _numbered(mdp: TabularMDP) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """States [S] and previous actions [S] of the sticky table, and the number of each (state, action) [S', A]."""
    reachable = mdp.depths() >= 0
    met = np.zeros((mdp.num_states, mdp.num_actions), np.bool_)
    for action in range(mdp.num_actions):
        after = mdp.transitions[reachable, action]
        met[after[after >= 0], action] = True
    bases, previous = np.nonzero(met)
    number = np.full(met.shape, -1, np.int32)
    number[bases, previous] = np.arange(1, len(bases) + 1)
    states = np.concatenate([[0], bases]).astype(np.int32)
    return states, np.concatenate([[-1], previous]).astype(np.int32), number
