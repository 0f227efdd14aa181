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
    states = np.unique(met)
    order, starts = _predecessors(transitions)
    ends = np.full(len(transitions), _FAR, np.int32)
    _steps_to_end(transitions, order, starts, ends)
    ends = np.minimum(ends, horizon)
    sources = states[np.argsort(-ends[states], kind="stable")].astype(np.int32)
    found = _diameter(transitions, states.astype(np.int32), sources, ends, depths, most_edges)
    return None if found < 0 else int(found)


def _predecessors(transitions: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """States by what they lead to: those that lead to s are order[starts[s] : starts[s + 1]], once for each action."""
    num_states, num_actions = transitions.shape
    flat = transitions.reshape(-1)
    by_target = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[by_target], np.arange(num_states + 1))
    return (by_target // num_actions).astype(np.int32), starts.astype(np.int64)


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
