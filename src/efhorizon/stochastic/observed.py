"""A sticky table as PPO and DQN see it: the previous action is part of a node, but not of what is observed.

This is how the paper's authors trained: the agent sees what it sees without sticky actions. A node is a node of the
deterministic table's `ObservedTable` (with frame stacks, a state with its last screens) and the last action executed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.observations import ObservedTable, observed_table
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.stochastic.sticky import sticky


class NotStickyError(EfhorizonError, ValueError):
    """Training with chance needs a chance above 0."""


def sticky_observed_table(mdp: TabularMDP, chance: float) -> tuple[ObservedTable, StochasticMDP]:
    """The table for learners, and the stochastic MDP of its nodes, on which policies are evaluated exactly.

    Their nodes and states have the same numbers.
    """
    if not chance > 0:
        raise NotStickyError("with chance 0 this is training on the deterministic table")
    table = observed_table(mdp)
    nodes = TabularMDP(
        table.transitions,
        _rewards(table),
        table.horizon,
        metadata={"id": table.id},
    )
    made = sticky(nodes, chance)
    assert made.base_states is not None
    assert made.previous_actions is not None
    base = made.base_states
    number = np.full((len(table.transitions), table.num_actions), -1, np.int32)
    number[base[1:], made.previous_actions[1:]] = np.arange(1, len(base), dtype=np.int32)
    following = table.transitions[base]  # [P, A], nodes of the deterministic table
    actions = np.arange(table.num_actions)
    transitions = np.where(following >= 0, number[np.maximum(following, 0), actions], -1).astype(np.int32)
    return (
        replace(
            table,
            id=str(made.metadata["id"]),
            transitions=np.ascontiguousarray(transitions),
            rewards=np.ascontiguousarray(table.rewards[base]),
            reward_units=np.ascontiguousarray(table.reward_units[base]),
            state=np.ascontiguousarray(table.state[base]),
            observation=np.ascontiguousarray(table.observation[base]),
            stickiness=float(chance),
            previous=made.previous_actions,
        ),
        made,
    )


def _rewards(table: ObservedTable) -> NDArray[np.float64]:
    """In points: what returns are counted in."""
    return table.reward_units.astype(np.float64) * table.unit
