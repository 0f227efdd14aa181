"""Merging states that look and behave the same (Appendix E.2).

The paper's rule merges states with (a) the same screen, (b) the same reward for each action and (c) the same next
state for each action, again and again until nothing merges. It starts from all states apart and so never merges two
cycles that mirror each other. `coarsest_classes` starts from all states together and splits: it finds the coarsest
partition that keeps (a), (b) and (c) as classes, which on tables without cycles is the same.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.compiled import Integers, compiled

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

Rule = Literal["paper", "coarsest", "none"]


def classes(
    transitions: NDArray[np.int32], reward_codes: NDArray[Any], screens: NDArray[np.int32] | None, rule: Rule
) -> NDArray[np.int32]:
    """The class of every state [S], numbered breadth-first from the start state; -1 for unreachable states.

    screens [S] are screen numbers, or None to ignore screens.
    """
    seen = np.zeros(len(transitions), np.int32) if screens is None else screens
    if rule == "paper":
        merged = paper_classes(transitions, reward_codes, seen)
    elif rule == "coarsest":
        merged = coarsest_classes(transitions, reward_codes, seen)
    else:
        merged = np.arange(len(transitions), dtype=np.int32)
    return _breadth_first_numbers(transitions, merged)


def paper_classes(
    transitions: NDArray[np.int32], reward_codes: NDArray[Any], screens: NDArray[np.int32]
) -> NDArray[np.int32]:
    """A representative for every state by the paper's rule.

    States are taken from the last to the first. Where every transition leads to a higher number, as in a search whose
    states carry a clock, one pass is enough; otherwise passes are repeated until one merges nothing.
    """
    representative = np.arange(len(transitions), dtype=np.int32)
    slots = _empty_slots(len(transitions))
    while _merge_pass(transitions, reward_codes, screens, representative, slots):
        slots.fill(-1)
    return representative


def coarsest_classes(
    transitions: NDArray[np.int32], reward_codes: NDArray[Any], screens: NDArray[np.int32]
) -> NDArray[np.int32]:
    """A class for every state by partition refinement, from screens and rewards down."""
    current = np.zeros(len(transitions), np.int32)
    slots = _empty_slots(len(transitions))
    refined = np.empty_like(current)
    num_classes, previous = 0, -1
    while num_classes != previous:
        previous = num_classes
        slots.fill(-1)
        num_classes = _refine_pass(transitions, reward_codes, screens, current, refined, slots)
        current, refined = refined, current
    return current


def quotient(
    transitions: NDArray[np.int32], class_of: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Transitions between classes [C, A], and for each class its first state [C]."""
    reached = np.flatnonzero(class_of >= 0)
    num_classes = int(class_of.max()) + 1
    first = np.full(num_classes, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(first, class_of[reached], reached.astype(np.int32))
    lookup = np.append(class_of, np.int32(-1))  # successor -1 stays -1
    between: NDArray[np.int32] = lookup[transitions[first]]
    return between, first


def _breadth_first_numbers(transitions: NDArray[np.int32], merged: NDArray[np.int32]) -> NDArray[np.int32]:
    labels, dense = np.unique(merged, return_inverse=True)
    start = dense[0]
    swapped = np.arange(len(labels), dtype=np.int32)  # the class of the start state becomes number 0
    swapped[[0, start]] = swapped[[start, 0]]
    class_of = swapped[dense]
    between, _ = quotient(transitions, class_of)
    order = graph.breadth_first_order(between)[0]
    number = np.full(len(labels), -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    numbered: NDArray[np.int32] = number[class_of]
    return numbered


def _empty_slots(num_states: int) -> NDArray[np.int32]:
    return np.full(1 << int(2 * num_states).bit_length(), -1, np.int32)


@compiled
def _mix(value: Any, new: int) -> Any:
    mixed = (value ^ np.uint64(new)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@compiled
def _merge_pass(
    transitions: Integers, reward_codes: Integers, screens: Integers, representative: Integers, slots: Integers
) -> int:
    num_states, num_actions = transitions.shape
    mask = len(slots) - 1
    merged = 0
    row = np.empty(num_actions, np.int32)
    for state in range(num_states - 1, -1, -1):
        if representative[state] != state:
            continue
        value = np.uint64(screens[state])
        for action in range(num_actions):
            row[action] = _representative_of(transitions[state, action], representative)
            value = _mix(_mix(value, row[action] + 1), reward_codes[state, action])
        slot = np.int64(value) & mask
        while True:
            other = slots[slot]
            if other < 0:
                slots[slot] = state
                break
            same = screens[other] == screens[state]
            action = 0
            while same and action < num_actions:
                same = (
                    reward_codes[other, action] == reward_codes[state, action]
                    and _representative_of(transitions[other, action], representative) == row[action]
                )
                action += 1
            if same:
                representative[state] = other
                merged += 1
                break
            slot = (slot + 1) & mask
    for state in range(num_states):
        representative[state] = _representative_of(state, representative)
    return merged


@compiled
def _representative_of(state: int, representative: Integers) -> int:
    while state >= 0 and representative[state] != state:
        state = representative[state]
    return state


@compiled
def _refine_pass(
    transitions: Integers, reward_codes: Integers, screens: Integers, current: Integers, refined: Integers,
    slots: Integers,
) -> int:  # fmt: skip
    num_states, num_actions = transitions.shape
    mask = len(slots) - 1
    num_classes = 0
    for state in range(num_states):
        value = _mix(np.uint64(screens[state]), current[state])
        for action in range(num_actions):
            successor = transitions[state, action]
            value = _mix(_mix(value, current[successor] + 1 if successor >= 0 else 0), reward_codes[state, action])
        slot = np.int64(value) & mask
        while True:
            other = slots[slot]
            if other < 0:
                slots[slot] = state
                refined[state] = num_classes
                num_classes += 1
                break
            if _same_class(transitions, reward_codes, screens, current, state, other):
                refined[state] = refined[other]
                break
            slot = (slot + 1) & mask
    return num_classes


@compiled
def _same_class(
    transitions: Integers, reward_codes: Integers, screens: Integers, current: Integers, one: int, other: int
) -> bool:
    if screens[one] != screens[other] or current[one] != current[other]:
        return False
    for action in range(transitions.shape[1]):
        first, second = transitions[one, action], transitions[other, action]
        if reward_codes[one, action] != reward_codes[other, action] or (first < 0) != (second < 0):
            return False
        if first >= 0 and current[first] != current[second]:
            return False
    return True
