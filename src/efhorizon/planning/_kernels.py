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
def best_actions_sweep(transitions, codes, units, ties, following, values, actions):  # type: ignore[no-untyped-def]
    """One step of backward induction over all states."""
    for state in prange(transitions.shape[0]):
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
