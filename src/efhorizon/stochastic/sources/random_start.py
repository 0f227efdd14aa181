"""A random start: the tables of several seeds of one environment as one table.

Each seed's reset begins an episode with a probability of its own. States of different seeds stay apart unless nothing
distinguishes them: for every action the same reward and the same successor.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.mdp import StochasticMDP


def random_start(
    tables: Sequence[TabularMDP], probabilities: Sequence[Fraction | float] | None = None, *, name: str | None = None
) -> StochasticMDP:
    """One table in which an episode begins in the first state of each given table, by default equally likely."""
    if not tables:
        raise InvalidTableError("a random start needs at least one table")
    first = tables[0]
    for table in tables:
        if (table.num_actions, table.horizon) != (first.num_actions, first.horizon):
            raise InvalidTableError("tables of different seeds must have the same actions and horizon")
        if not table.is_complete:
            raise InvalidTableError("a random start needs finished tables")
    chances = probabilities or [Fraction(1, len(tables))] * len(tables)
    if len(chances) != len(tables):
        raise InvalidTableError(f"{len(tables)} tables need as many probabilities, not {len(chances)}")
    shifts = np.concatenate([[0], np.cumsum([table.num_states for table in tables])])
    transitions = np.concatenate(
        [
            np.where(table.transitions >= 0, table.transitions + shift, -1)
            for table, shift in zip(tables, shifts, strict=False)
        ]
    )
    rewards = np.concatenate([table.rewards for table in tables])
    labels = _classes(transitions, rewards)
    kept, number = np.unique(labels, return_index=True)[1], labels
    merged = np.where(transitions[kept] >= 0, number[np.maximum(transitions[kept], 0)], -1)
    initial: dict[int, Fraction | float] = {}
    for shift, chance in zip(shifts[:-1], chances, strict=True):
        start = int(number[shift])
        initial[start] = initial.get(start, Fraction(0)) + chance
    values, codes = np.unique(rewards[kept], return_inverse=True)
    num_pairs = merged.size
    return StochasticMDP(
        (len(kept), first.num_actions),
        {
            "offsets": np.arange(num_pairs + 1, dtype=np.int64),
            "successors": merged.reshape(-1),
            "reward_codes": codes.reshape(-1).astype(np.min_scalar_type(len(values))),
            "reward_values": values,
            "probability_codes": np.zeros(num_pairs, np.uint8),
            "probability_values": np.ones(1),
        },
        first.horizon,
        initial=(list(initial), [float(chance) for chance in initial.values()]),
        metadata={"id": name or f"{first.metadata.get('id', 'table')}-random-start"},
    )


def _classes(transitions: NDArray[np.int64], rewards: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which states behave alike [S]: the coarsest partition, refined until it is stable."""
    labels = np.zeros(len(transitions), np.int64)
    count = 1
    while True:
        following = np.where(transitions >= 0, labels[np.maximum(transitions, 0)], -1)
        rows = np.concatenate([labels[:, None], following, rewards.view(np.int64)], axis=1)
        found: NDArray[np.int64] = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        if int(found.max()) + 1 == count:
            return found
        labels, count = found, int(found.max()) + 1
