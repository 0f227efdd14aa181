"""Private numba kernels of the planning package. Each writes into `out` arrays that the caller allocates."""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(cache=True)
def best_actions_along(order, transitions, codes, units, ties, values, actions):  # type: ignore[no-untyped-def]
    """Backward induction over states of which each comes after its successors; time plays no part."""
    for i in range(len(order)):
        _best_action(order[i], transitions, codes, units, ties[order[i]], values, values, actions)


@njit(cache=True, parallel=True)
def lowest_best_actions(start, stop, transitions, codes, units, following, values, actions):  # type: ignore[no-untyped-def]
    """One step of backward induction over the states start .. stop - 1; ties go to the lowest action.

    Kept apart from the rule for random ties: this plain loop compiles to vector gathers, several times faster.
    """
    for state in prange(start, stop):
        best, chosen = units[codes[state, 0]], 0
        if transitions[state, 0] >= 0:
            best += following[transitions[state, 0]]
        for action in range(1, transitions.shape[1]):
            value = units[codes[state, action]]
            if transitions[state, action] >= 0:
                value += following[transitions[state, action]]
            if value > best:
                best, chosen = value, action
        values[state] = best
        actions[state] = chosen


@njit(cache=True, parallel=True)
def best_actions(start, stop, transitions, codes, units, ties, following, values, actions):  # type: ignore[no-untyped-def]
    """The same, with ties broken from an action of each state's own."""
    for state in prange(start, stop):
        _best_action(state, transitions, codes, units, ties[state], following, values, actions)


@njit(cache=True)
def _best_action(state, transitions, codes, units, tie, following, values, actions):  # type: ignore[no-untyped-def]
    num_actions = transitions.shape[1]
    first = True
    best = values[state]
    chosen = 0
    for i in range(num_actions):
        action = (i + tie) % num_actions  # the first of several best actions in this rotation wins
        successor = transitions[state, action]
        value = units[codes[state, action]]
        if successor >= 0:
            value += following[successor]
        if first or value > best:
            best, chosen, first = value, action, False
    values[state] = best
    actions[state] = np.uint8(chosen)
