"""Places: states in which GORP loses its chance for the same cause, and the action that would save it there.

A place is one state at all times, or all states that show the same screen and where the same action is right. Its right
action is the one that raises success most if GORP takes it there, of those that are optimal. Many actions can be: a
gridworld that pays success at any time forgives every detour that leaves time enough. What counts is what an action
does to GORP's chance, not only whether all is lost with it.

Only states on the way count: those that optimal play meets which is paid as early as can be (planning/earliest.py). How
much fiat at a place raises success is computed for the places that promise most to first order (repair.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning.earliest import earliest_pairs
from efhorizon.planning.problem import Problem
from efhorizon.reasons.losses import WRONG, Losses
from efhorizon.reasons.repair import OWN_CHOICE, gains, success

SHOWN = 3  # places
_CANDIDATES = 12  # of which the rise is computed
_HARDLY = 1e-9  # of the largest gain: less is none


@dataclass(frozen=True)
class Place:
    """Some of O pairs, and the action that is right at them."""

    members: NDArray[np.int64]  # [n], in the order of time: where the action is optimal
    states: tuple[int, ...]  # the one with the largest gain first
    action: int
    first: int  # of the members: the earliest on the way in the first state at which the choice matters
    rise: float = 0.0  # of success, if the action is played at every member

    def fiat(self, losses: Losses) -> NDArray[np.int64]:
        """The action at every pair [O]."""
        forced = np.full(len(losses.pairs), OWN_CHOICE)
        forced[self.members] = self.action
        return forced


def places(problem: Problem, losses: Losses, count: int = SHOWN) -> list[Place]:
    """Those where playing right raises success most, the largest first."""
    before = sum(success(losses)) / 2
    found = []
    for place in _candidates(problem, losses):
        rise = sum(success(losses, place.fiat(losses))) / 2 - before
        if rise > 0:
            found.append(Place(place.members, place.states, place.action, place.first, rise))
    return sorted(found, key=lambda place: -place.rise)[:count]


def _candidates(problem: Problem, losses: Losses) -> list[Place]:
    """The places on the way with the largest gains to first order."""
    by_pair = gains(losses)
    is_met = earliest_pairs(problem.timeline, problem.optimal)[losses.pairs]
    num_actions = by_pair.shape[1]
    states, number = np.unique(losses.states, return_inverse=True)
    by_state = np.zeros((len(states), num_actions))
    np.add.at(by_state, number, by_pair)
    actions = by_state.argmax(axis=1)
    labels = _labels(problem, states, actions)
    of_state = np.where(np.bincount(number, is_met) > 0, by_state.max(axis=1), 0.0)
    total = np.bincount(labels, of_state)
    if not total.max(initial=0.0) > 0:
        return []
    order = np.argsort(-total, kind="stable")[:_CANDIDATES]
    found = []
    for label in order[total[order] > _HARDLY * total[order[0]]]:
        own = np.flatnonzero(labels == label)
        own = own[np.argsort(-of_state[own], kind="stable")]
        action = int(actions[own[0]])
        members = np.flatnonzero((labels[number] == label) & (losses.following[:, action] != WRONG))
        matters = is_met[members] & (by_pair[members, action] > _HARDLY * total[label])
        chosen = members[matters & (number[members] == own[0])]
        if len(chosen):
            found.append(Place(members, tuple(states[own].tolist()), action, int(chosen[0])))
    return found


def _labels(problem: Problem, states: NDArray[np.int32], actions: NDArray[np.intp]) -> NDArray[np.int64]:
    """Which place each state belongs to: states that look alike belong together if the same action is right."""
    if problem.mdp.screen_mapping is None:
        return np.arange(len(states))
    signatures = np.column_stack([problem.mdp.shown[states].astype(np.int64), actions])
    _, labels = np.unique(signatures, axis=0, return_inverse=True)
    return labels.reshape(-1).astype(np.int64)
