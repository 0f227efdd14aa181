"""Kernels that the algorithms on tables share: rollouts of the exploration policy, ties, and playing actions.

`words` is the random stream of a run (`agents/streams.py`).

A rollout stops once no reward can be had in the time that is left: its sum is known, and the rest does not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from efhorizon.agents.streams import drawn_action, drawn_below, mixed
from efhorizon.compiled import Floats, Integers, Words, compiled, compiled_parallel, prange

_S32, _LOW_32 = np.uint64(32), np.uint64(2**32 - 1)

NO_REWARD = 2**31 - 1  # the distance of states from which every reward is 0


class TaskArrays(NamedTuple):
    """A table and an exploration policy. S states, A actions, R distinct rewards."""

    transitions: Integers  # int32 [S, A], -1 ends the episode
    codes: Integers  # unsigned [S, A], indices into units
    units: Integers  # int64 [R], rewards in reward units
    distances: Integers  # int32 [S], actions until a reward other than 0 can be had (1: with the next one)
    probabilities: Floats  # [T or 1, S, A], the exploration policy; [0, 0, 0] for the uniform one


@compiled
def compared(words: Words, value: Any, best: Any, ties: int) -> tuple[bool, Any, int]:
    """Whether the next candidate takes the place of the best so far, then the best value and how many have it.

    Each of several equal candidates is the one kept in the end with the same chance. The first comes with `ties` 0.
    """
    if ties == 0 or value > best:
        return True, value, 1
    if value == best:
        return drawn_below(words, ties + 1) == 0, best, ties + 1
    return False, best, ties


@compiled
def rollouts(words: Words, count: int, start: int, time: int, horizon: int, task: TaskArrays) -> tuple[int, int]:
    """The sum of the returns of `count` rollouts from a state, and the steps that they took."""
    transitions, codes, units, distances, probabilities = task
    if start < 0 or distances[start] > horizon - time:
        return 0, 0
    if not len(probabilities):
        return _uniform_rollouts(words, count, start, horizon - time, transitions, codes, units, distances)
    total, steps = 0, 0
    for _ in range(count):
        state, now = start, time
        while state >= 0 and distances[state] <= horizon - now:
            action = drawn_action(words, now, state, transitions.shape[1], probabilities)
            total += units[codes[state, action]]
            state = transitions[state, action]
            now += 1
        steps += now - time
    return total, steps


@compiled
def _uniform_rollouts(
    words: Words, count: int, start: int, time: int, transitions: Integers, codes: Integers, units: Integers,
    distances: Integers,
) -> tuple[int, int]:  # fmt: skip
    """Two rollouts side by side, so that neither waits for the other's memory; one word gives an action to each."""
    num_actions = np.uint64(transitions.shape[1])
    word, increment = words[0], words[1]
    total, steps, begun = 0, 0, min(count, 2)
    state_0, left_0 = start, time
    state_1, left_1 = (start, time) if count > 1 else (-1, time)
    while True:
        while state_0 >= 0 and distances[state_0] <= left_0 and state_1 >= 0 and distances[state_1] <= left_1:
            word += increment
            random = mixed(word)
            action_0 = np.int64(((random >> _S32) * num_actions) >> _S32)
            action_1 = np.int64(((random & _LOW_32) * num_actions) >> _S32)
            total += units[codes[state_0, action_0]] + units[codes[state_1, action_1]]
            state_0 = transitions[state_0, action_0]
            state_1 = transitions[state_1, action_1]
            left_0 -= 1
            left_1 -= 1
        if begun == count:
            break
        begun += 1
        if state_0 >= 0 and distances[state_0] <= left_0:
            steps += time - left_1
            state_1, left_1 = start, time
        else:
            steps += time - left_0
            state_0, left_0 = start, time
    if state_1 >= 0 and distances[state_1] <= left_1:  # one of the two may still be on its way
        state_0, left_0, state_1, left_1 = state_1, left_1, state_0, left_0
    while state_0 >= 0 and distances[state_0] <= left_0:
        word += increment
        action_0 = np.int64(((mixed(word) >> _S32) * num_actions) >> _S32)
        total += units[codes[state_0, action_0]]
        state_0 = transitions[state_0, action_0]
        left_0 -= 1
    words[0] = word
    return total, steps + (time - left_0) + (time - left_1)


@compiled
def walked(
    start: int, sequence: int, length: int, transitions: Integers, codes: Integers, units: Integers
) -> tuple[int, int]:
    """Where a sequence of actions leads (-1: the episode ended) and what it pays.

    A sequence is a number in base A, its first action the highest digit; actions after the end have no effect.
    """
    num_actions = transitions.shape[1]
    state, total = start, 0
    power = num_actions ** (length - 1)
    for _ in range(length):
        action = (sequence // power) % num_actions
        total += units[codes[state, action]]
        state = transitions[state, action]
        if state < 0:
            break
        power //= num_actions
    return state, total


@compiled
def shorten_distances(transitions: Integers, codes: Integers, units: Integers, distances: Integers) -> bool:
    """One sweep of distances[s] = 1 + min_a distances[f(s, a)]; whether anything changed."""
    changed = False
    for state in range(transitions.shape[0] - 1, -1, -1):  # successors mostly have higher numbers
        best = distances[state]
        for action in range(transitions.shape[1]):
            if units[codes[state, action]] != 0:
                best = 1
                break
            successor = transitions[state, action]
            if successor >= 0 and distances[successor] < best - 1:
                best = distances[successor] + 1
        if best < distances[state]:
            distances[state] = best
            changed = True
    return changed


@compiled
def play(actions: Integers, transitions: Integers, codes: Integers, units: Integers) -> int:
    """The return of one action sequence [T]; actions after the end of the episode become -1."""
    state, total = 0, 0
    for time in range(len(actions)):
        if state < 0:
            actions[time] = -1
            continue
        action = actions[time]
        total += units[codes[state, action]]
        state = transitions[state, action]
    return total


@compiled_parallel
def play_all(actions: Integers, transitions: Integers, codes: Integers, units: Integers, returns: Integers) -> None:
    """`play` for each run: actions [N, T], returns [N]."""
    for run in prange(len(actions)):
        returns[run] = play(actions[run], transitions, codes, units)
