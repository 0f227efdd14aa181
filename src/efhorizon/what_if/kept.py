"""Does optimal behaviour stay optimal? What the optimal episodes of a changed table earn in the original, exactly.

A changed table has its own optimal policies. Every episode of theirs is a sequence of actions, and is played in the
original too, step by step: the least and the largest return there, over all of them, say whether every one or at least
one of these policies is optimal in the original, from the start state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning.problem import Problem
from efhorizon.planning.rewards import ROUNDING
from efhorizon.what_if.change import Changed


@dataclass(frozen=True)
class Kept:
    """What the optimal policies of a changed table earn in the original."""

    every: bool  # all of them are optimal there
    some: bool  # at least one of them is
    least_return: float
    largest_return: float


@dataclass(frozen=True)
class _Edges:
    """Optimal actions from the nodes of one time."""

    sources: NDArray[np.int64]  # [E], places among the nodes of this time
    targets: NDArray[np.int64]  # [E], places among those of the next; -1 where either episode is over
    earned: NDArray[Any]  # [E], in the original


def kept(original: Problem, changed: Problem, how: Changed) -> Kept:
    """Play every optimal episode of the changed problem in the original one."""
    scale = original.scale
    units = scale.sum_units
    prefix, place = _after(original, units, np.zeros(1, np.int64), np.array([how.prefix], np.int64).reshape(1, -1))
    actions = np.arange(changed.mdp.num_actions) if how.actions is None else np.asarray(how.actions)
    nodes = np.array([[0], [place[0]]])  # [2, N]: a pair of the changed table, and where the original then is
    layers, counts = list[_Edges](), [1]
    while nodes.shape[1]:
        edges, nodes = _step(original, changed, units, nodes, actions, how.steps_each)
        layers.append(edges)
        counts.append(nodes.shape[1])
    least = largest = np.zeros(0, units.dtype)
    for edges, count in zip(reversed(layers), reversed(counts[:-1]), strict=True):
        ends = edges.targets < 0
        low = edges.earned + np.where(ends, 0, np.append(least, 0)[edges.targets])
        high = edges.earned + np.where(ends, 0, np.append(largest, 0)[edges.targets])
        least, largest = (
            _reduced(np.minimum, low, edges.sources, count),
            _reduced(np.maximum, high, edges.sources, count),
        )
    best = original.optimal.values.numbers[0].item()
    low, high = (prefix[0] + least[0]).item(), (prefix[0] + largest[0]).item()
    # integers where rewards have a unit; else two sums that only rounding may tell apart count as equal
    error = 0 if scale.exact else 4 * original.mdp.horizon**2 * ROUNDING * float(np.abs(units).max())
    return Kept(abs(low - best) <= error, abs(high - best) <= error, scale.reward(low), scale.reward(high))


def _step(
    original: Problem,
    changed: Problem,
    units: NDArray[Any],
    nodes: NDArray[np.int64],
    actions: NDArray[Any],
    times: int,
) -> tuple[_Edges, NDArray[np.int64]]:
    """Every optimal action from these nodes, and the nodes that they lead to."""
    sources, chosen = np.nonzero(changed.optimal.actions[nodes[0]])
    after = changed.timeline.successors[nodes[0][sources], chosen].astype(np.int64)
    played = np.repeat(actions[chosen][:, None], times, axis=1)
    earned, place = _after(original, units, nodes[1][sources], played)
    goes_on = (after >= 0) & (place >= 0)
    targets = np.full(len(sources), -1, np.int64)
    following, targets[goes_on] = np.unique(np.stack([after[goes_on], place[goes_on]]), axis=1, return_inverse=True)
    return _Edges(sources, targets, earned), following


def _after(
    original: Problem, units: NDArray[Any], pairs: NDArray[np.int64], played: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """What actions [N, steps] earn from these pairs [N] of the original, and where they lead; -1: it is over."""
    line, codes = original.timeline, original.mdp.reward_codes
    earned, pairs = np.zeros(len(pairs), units.dtype), pairs.copy()
    for step in range(played.shape[1]):
        on = np.flatnonzero(pairs >= 0)
        earned[on] += units[codes[line.states[pairs[on]], played[on, step]]]
        pairs[on] = line.successors[pairs[on], played[on, step]]
    return earned, pairs


def _reduced(reduce: np.ufunc, numbers: NDArray[Any], sources: NDArray[np.int64], count: int) -> NDArray[Any]:
    """The least or the largest number of each source; sources are ascending, and each has one."""
    starts = np.searchsorted(sources, np.arange(count))
    reduced: NDArray[Any] = reduce.reduceat(numbers, starts)
    return reduced
