"""Kernels on the transition graph: breadth-first order, renumbering, layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Integers, compiled


@compiled
def _breadth_first(transitions: Integers, order: Integers, depths: Integers, parents: Integers) -> int:
    order[0] = 0
    depths[0] = 0
    found = 1
    head = 0
    while head < found:
        state = order[head]
        head += 1
        for action in range(transitions.shape[1]):
            successor = transitions[state, action]
            if successor >= 0 and depths[successor] < 0:
                depths[successor] = depths[state] + 1
                parents[successor] = state
                order[found] = successor
                found += 1
    return found


def breadth_first_order(transitions: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """States in breadth-first order from state 0 in action order, and the depth of every state (-1: not reached)."""
    order = np.empty(len(transitions), np.int32)
    depths = np.full(len(transitions), -1, np.int32)
    return order[: _breadth_first(transitions, order, depths, np.empty_like(order))], depths


def shortest_paths(transitions: NDArray[np.int32], goals: NDArray[np.int32]) -> list[list[int]]:
    """Actions of a shortest path from state 0 to each goal, which must be reachable."""
    parents = np.full(len(transitions), -1, np.int32)
    _breadth_first(transitions, np.empty_like(parents), np.full_like(parents, -1), parents)
    paths = []
    for goal in goals.tolist():
        actions = []
        while goal != 0:
            actions.append(int(np.flatnonzero(transitions[parents[goal]] == goal)[0]))
            goal = int(parents[goal])
        paths.append(actions[::-1])
    return paths


def renumbered_transitions(transitions: NDArray[np.int32], order: NDArray[np.int32]) -> NDArray[np.int32]:
    """Rows in the given order, with successors named by their place in it."""
    place = np.full(len(transitions) + 1, -1, np.int32)  # the last entry serves successor -1
    place[order] = np.arange(len(order), dtype=np.int32)
    renumbered: NDArray[np.int32] = place[transitions[order]]
    return renumbered


@compiled
def _depth_first(transitions: Integers, finished: Integers, longest: Integers) -> int:
    # An explicit stack; visit: 0 new, 1 on the stack, 2 done. Returns the number of states finished, -1 if there
    # is a cycle.
    num_states, num_actions = transitions.shape
    visit = np.zeros(num_states, np.uint8)
    next_action = np.zeros(num_states, np.int32)
    stack = np.empty(num_states, np.int32)
    stack[0] = 0
    visit[0] = 1
    height = 1
    num_finished = 0
    while height:
        state = stack[height - 1]
        action = next_action[state]
        if action == num_actions:
            visit[state] = 2
            finished[num_finished] = state
            num_finished += 1
            height -= 1
            continue
        successor = transitions[state, action]
        if successor >= 0 and visit[successor] == 1:
            return -1
        if successor >= 0 and visit[successor] == 0:  # this edge is looked at again once the successor is done
            visit[successor] = 1
            stack[height] = successor
            height += 1
            continue
        longest[state] = max(longest[state], longest[successor] + 1 if successor >= 0 else 1)
        next_action[state] += 1
    return num_finished


@compiled
def _by_number(transitions: Integers, reached: Integers, longest: Integers, order: Integers) -> int:
    # Where every successor has a higher number than its state, as in a search whose states carry a clock: one pass up
    # marks what is reached, one down measures. Returns the number of states reached, -1 if there is another successor.
    num_states, num_actions = transitions.shape
    reached[0] = 1
    for state in range(num_states):
        for action in range(num_actions):
            successor = transitions[state, action]
            if 0 <= successor <= state:
                return -1
            if successor >= 0 and reached[state]:
                reached[successor] = 1
    count = 0
    for state in range(num_states - 1, -1, -1):
        if reached[state]:
            steps = 1
            for action in range(num_actions):
                successor = transitions[state, action]
                if successor >= 0:
                    steps = max(steps, longest[successor] + 1)
            longest[state] = steps
            order[count] = state
            count += 1
    return count


def successors_first(transitions: NDArray[np.int32]) -> tuple[NDArray[np.int32], int] | None:
    """The states that can be reached, each after all its successors, and the length of the longest episode.

    None where the graph has a cycle: episodes can then go on until the horizon.
    """
    order, steps = np.empty(len(transitions), np.int32), np.zeros(len(transitions), np.int32)
    count = _by_number(transitions, np.zeros(len(transitions), np.uint8), steps, order)
    if count >= 0:
        return order[:count], int(steps[0])
    finished = np.empty(len(transitions), np.int32)
    longest = np.zeros(len(transitions), np.int32)
    count = _depth_first(transitions, finished, longest)
    return None if count < 0 else (finished[:count], int(longest[0]))
