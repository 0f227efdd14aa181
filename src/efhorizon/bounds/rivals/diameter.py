"""The diameter: how far apart two states can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.bounds.measures import Measured
from efhorizon.bounds.registry import hardness_measure
from efhorizon.compiled import Integers, compiled
from efhorizon.graph import breadth_first_order
from efhorizon.planning.problem import Problem

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

MOST_EDGES = 1 << 32  # that are looked at: about ten seconds
_FAR = np.iinfo(np.int32).max
_SHORT = np.iinfo(np.int16).max


@hardness_measure("diameter", title="diameter", harder="larger")
def diameter(problem: Problem) -> Measured:
    """max over states s != s' of the least number of steps from s to s'.

    Jaksch, Ortner and Auer (2010), Definition 1, where steps are expected ones; Conserva and Rauber (2022), Section
    2.1, where it stands for the hardness of visiting states. Adapted to episodes: an episode that ends goes on in the
    start state, so the way from s to s' may lead over its end. The time is forgotten: over (time, state) pairs the
    diameter is little else than the horizon. From a state where no action sequence ends the episode, the end counts as
    T steps away. Only states that can be reached before the horizon count.

    Exact. Sources are tried in the order of how far the end is, until no other can be further from anything; a table
    on which that takes more than MOST_EDGES steps of the search has no figure.
    """
    found = exact_diameter(problem.mdp.transitions, problem.timeline.states, problem.mdp.horizon, MOST_EDGES)
    if found is None:
        count = f"{problem.num_reachable_states:,} states"
        return Measured(None, reason=f"{count} are too many for all shortest paths between them")
    return Measured(float(found))


def exact_diameter(transitions: NDArray[np.int32], met: NDArray[np.int32], horizon: int, most_edges: int) -> int | None:
    """The diameter over the states in `met`; None where it would take too long."""
    _, depths = breadth_first_order(transitions)
    is_met = np.zeros(len(transitions), np.bool_)
    is_met[met] = True
    states = np.flatnonzero(is_met).astype(np.int32)
    del is_met
    order, starts = _predecessors(transitions)
    ends = np.full(len(transitions), _FAR, np.int32)
    _steps_to_end(transitions, order, starts, ends)
    del order, starts
    ends = np.minimum(ends, horizon)
    keys = -ends[states]
    if horizon <= _SHORT:
        keys = keys.astype(np.int16)  # numpy sorts these in one pass
    sources = states[np.argsort(keys, kind="stable")]
    found = _diameter(transitions, states, sources, ends, depths, most_edges)
    return None if found < 0 else int(found)


def _predecessors(transitions: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """States by what they lead to: those that lead to s are order[starts[s] : starts[s + 1]], once for each action."""
    starts = np.zeros(len(transitions) + 1, np.int64)
    _count_predecessors(transitions, starts)
    np.cumsum(starts, out=starts)
    order = np.empty(int(starts[-1]), np.int32)
    _place_predecessors(transitions, starts[:-1].copy(), order)
    return order, starts


@compiled
def _count_predecessors(transitions: Integers, starts: Integers) -> None:
    for state in range(len(transitions)):
        for action in range(transitions.shape[1]):
            if transitions[state, action] >= 0:
                starts[transitions[state, action] + 1] += 1


@compiled
def _place_predecessors(transitions: Integers, place: Integers, order: Integers) -> None:
    for state in range(len(transitions)):
        for action in range(transitions.shape[1]):
            successor = transitions[state, action]
            if successor >= 0:
                order[place[successor]] = state
                place[successor] += 1


@compiled
def _steps_to_end(transitions: Integers, order: Integers, starts: Integers, ends: Integers) -> None:
    """The least number of steps from each state to the end of an episode; _FAR where there is none."""
    queue = np.empty(len(ends), np.int32)
    count = 0
    for state in range(len(ends)):
        for action in range(transitions.shape[1]):
            if transitions[state, action] < 0 and ends[state] == _FAR:
                ends[state] = 1
                queue[count] = state
                count += 1
    head = 0
    while head < count:
        state = queue[head]
        head += 1
        for place in range(starts[state], starts[state + 1]):
            before = order[place]
            if ends[before] == _FAR:
                ends[before] = ends[state] + 1
                queue[count] = before
                count += 1


@compiled
def _diameter(
    transitions: Integers, states: Integers, sources: Integers, ends: Integers, depths: Integers, most_edges: int
) -> int:
    """A breadth-first search from each source, the furthest from the end first; -1 where that takes too long."""
    num_actions = transitions.shape[1]
    deepest = 0
    for i in range(len(states)):
        deepest = max(deepest, depths[states[i]])
    largest, edges = 0, 0
    distances = np.full(len(transitions), -1, np.int32)
    queue = np.empty(len(transitions), np.int32)
    for i in range(len(sources)):
        source = sources[i]
        if ends[source] + deepest <= largest:
            break  # and so for all that follow
        distances[source] = 0
        queue[0] = source
        count, head = 1, 0
        while head < count:
            state = queue[head]
            head += 1
            for action in range(num_actions):
                successor = transitions[state, action]
                if successor >= 0 and distances[successor] < 0:
                    distances[successor] = distances[state] + 1
                    queue[count] = successor
                    count += 1
        edges += count * num_actions + len(states)
        for j in range(len(states)):
            around = ends[source] + depths[states[j]]  # over the end of the episode
            direct = distances[states[j]]
            largest = max(largest, around if direct < 0 else min(direct, around))
        for j in range(count):
            distances[queue[j]] = -1
        if edges > most_edges:
            return -1
    return largest
