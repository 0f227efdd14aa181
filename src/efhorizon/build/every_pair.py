"""A table against all that its environment can do within the horizon: every action in every raw state.

A table state stands for one raw state or, where states were merged, for several. The table is right if and only if
there is a relation between raw states and table states that holds for the two start states, and if for every related
pair and every action

    the rewards are equal; both end or neither does; the two next states show the same screen and are related again.

So the relation is grown from the start states, breadth first: each related pair is visited once, at its least depth.
Equal screens prove nothing by themselves. A transition to a wrong state with the right screen makes a pair of states
that are not alike, and the walk goes on from there until they show it, or to the horizon, where it no longer matters.

That is all there is to say about a table that comes from elsewhere; what it says after the last action is not looked
at, except for the reward. Tables that were built here also keep to what building promises:

    a raw state has one table state; every table state is reached; after the last action the next state is -1 if and
    only if the episode ended or the raw state cannot be met earlier.

So a wrong transition is found in them where it does not matter: after the last action, or between two states that
nothing tells apart but their numbers (the paper's rule leaves some that the coarsest partition would merge).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.difference import (
    Difference,
    end_difference,
    next_state_difference,
    reward_difference,
    same_rewards,
    screen_difference,
    unreachable_state,
)
from efhorizon.build.raw_states import ENDED, RawStates
from efhorizon.build.table_screens import TableScreens
from efhorizon.mdp import TERMINAL, TabularMDP

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Comparison:
    """What was compared, and the first difference, by depth, if there was one."""

    raw_states: Numbers  # in which every action was taken
    table_states: Numbers  # that stand for them
    difference: Difference | None


def compare_every_pair(
    mdp: TabularMDP,
    environment: RawStates,
    screens: TableScreens,
    *,
    max_steps: int | None = None,
    on_progress: Callable[[], None] = lambda: None,
) -> Comparison:
    """Compare the table with the environment; TooManyStatesError if that takes more than `max_steps` steps of it."""
    is_ours = mdp.is_complete and (mdp.metadata.get("inputs") or {}).get("horizon") == mdp.horizon
    start = np.zeros(1, np.int32)
    if environment.screens[0] != screens.of_states(start)[0]:
        return _comparison([], screen_difference((), 0))
    relation = _Relation(mdp.num_states)
    layers = [relation.grown(start, start, start, start)]
    for depth in range(mdp.horizon):
        layer = layers[-1] = _explored(mdp, layers[-1])
        environment.expand(layer.raw, max_steps, on_progress)
        step = _Step(mdp, environment, layer, partial(_path, layers, depth))
        is_last = depth + 1 == mdp.horizon
        difference = step.reward_difference() or (None if is_last else step.difference(environment, screens))
        if difference is None and not is_last:
            layers.append(relation.grown(*step.next_pairs()))
        if difference is None and is_ours:
            difference = step.number_difference(relation)
        if difference is not None:
            return _comparison(layers[:depth], difference)
        if not len(layers[-1].raw):
            break
    comparison = _comparison(layers, None)
    if is_ours and len(comparison.table_states) < mdp.num_states:
        left = np.setdiff1d(np.arange(mdp.num_states), comparison.table_states)
        return _comparison(layers, unreachable_state(int(left[0])))
    return comparison


@dataclass(frozen=True)
class _Layer:
    """Related pairs that are first met at one depth."""

    raw: Numbers  # [n]
    states: Numbers  # [n]
    parents: Numbers  # [n], indices into the layer before
    actions: Numbers  # [n]


class _Relation:
    """Which pairs of a raw state and a table state were met."""

    def __init__(self, num_states: int) -> None:
        self._num_states = num_states
        self._first = np.full(1024, TERMINAL, np.int32)
        self._more: set[int] = set()  # pairs of a raw state with another table state than its first

    def first(self, raw: Numbers) -> Numbers:
        """The first table state that was met with each raw state; -1: none."""
        most = int(raw.max(initial=0))
        if most >= len(self._first):
            self._first = np.pad(self._first, (0, most + 1), constant_values=TERMINAL)
        return self._first[raw]

    def grown(self, raw: Numbers, states: Numbers, parents: Numbers, actions: Numbers) -> _Layer:
        """The pairs among these that are new, each once, in their order."""
        pairs = raw.astype(np.int64) * self._num_states + states
        fresh = np.flatnonzero(self.first(raw) != states)
        order = np.sort(fresh[np.unique(pairs[fresh], return_index=True)[1]])
        kept = [i for i in order.tolist() if self._is_new(int(raw[i]), int(states[i]), int(pairs[i]))]
        return _Layer(raw[kept], states[kept], parents[kept], actions[kept])

    def _is_new(self, raw: int, state: int, pair: int) -> bool:
        if self._first[raw] == TERMINAL:
            self._first[raw] = state
            return True
        if pair in self._more:
            return False
        self._more.add(pair)
        return True


class _Step:
    """Every action in every pair of a layer: in the environment and by the table. Arrays are [n, A]."""

    def __init__(
        self, mdp: TabularMDP, environment: RawStates, layer: _Layer, path: Callable[[int, int], tuple[int, ...]]
    ) -> None:
        """`path` gives the actions from the start to a pair, and one more."""
        self._path = path
        self._rewards = environment.rewards[layer.raw]
        self._expected_rewards = mdp.reward_values[mdp.reward_codes[layer.states]]
        self._next, self._expected_next = environment.successors[layer.raw], mdp.transitions[layer.states]
        self._ended = self._next == ENDED

    def reward_difference(self) -> Difference | None:
        for index, action in _first(~same_rewards(self._expected_rewards, self._rewards)):
            expected, found = float(self._expected_rewards[index, action]), float(self._rewards[index, action])
            return reward_difference(self._path(index, action), expected, found)
        return None

    def difference(self, environment: RawStates, screens: TableScreens) -> Difference | None:
        """An end or a screen that differs."""
        for index, action in _first(self._ended != (self._expected_next < 0)):
            return end_difference(self._path(index, action), int(self._expected_next[index, action]))
        goes_on = ~self._ended
        differs = np.zeros_like(goes_on)
        differs[goes_on] = environment.screens[self._next[goes_on]] != screens.of_states(self._expected_next[goes_on])
        for index, action in _first(differs):
            return screen_difference(self._path(index, action), int(self._expected_next[index, action]))
        return None

    def number_difference(self, relation: _Relation) -> Difference | None:
        """A next state with another number than the same raw state has elsewhere."""
        numbers = np.full_like(self._expected_next, TERMINAL)
        numbers[~self._ended] = relation.first(self._next[~self._ended])
        for index, action in _first(numbers != self._expected_next):
            expected, found = int(self._expected_next[index, action]), int(numbers[index, action])
            if self._ended[index, action]:
                return end_difference(self._path(index, action), expected)
            return next_state_difference(self._path(index, action), expected, found)
        return None

    def next_pairs(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Next states in the environment and by the table, and from which pair and by which action they are met."""
        pairs, actions = np.nonzero(~self._ended)
        found, expected = self._next[pairs, actions], self._expected_next[pairs, actions]
        return found, expected, pairs.astype(np.int32), actions.astype(np.int32)


def _first(differs: NDArray[np.bool_]) -> list[list[int]]:
    """The first entry [pair, action] that differs, if there is one."""
    found: list[list[int]] = np.argwhere(differs)[:1].tolist()
    return found


def _explored(mdp: TabularMDP, layer: _Layer) -> _Layer:
    """The pairs whose table state has a row."""
    if mdp.unexplored is None:
        return layer
    known = ~mdp.unexplored[layer.states]
    return _Layer(layer.raw[known], layer.states[known], layer.parents[known], layer.actions[known])


def _path(layers: list[_Layer], depth: int, index: int, action: int) -> tuple[int, ...]:
    """The actions from the start to a pair of the layer at this depth, and the one that is taken there."""
    actions = [action]
    for layer in layers[depth:0:-1]:
        actions.append(int(layer.actions[index]))
        index = int(layer.parents[index])
    return tuple(actions[::-1])


def _comparison(layers: list[_Layer], difference: Difference | None) -> Comparison:
    none = [np.zeros(0, np.int32)]
    raw = np.unique(np.concatenate(none + [layer.raw for layer in layers]))
    states = np.unique(np.concatenate(none + [layer.states for layer in layers]))
    return Comparison(raw, states, difference)
