"""GORP's choices found where it goes: for MDPs with more of them than can be kept, or than are worth a look.

The laws of returns are kept for every pair in which a sequence can end, and nothing else: the sequences of a pair are
found again whenever success is computed (`_forward_success.py`). Goal MDPs need no laws (`_goal_choices.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices_at
from efhorizon.gorp.success import Chances, Success, forward_success
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.returns import ReturnLaws, return_laws
from efhorizon.planning.timeline import Timeline
from efhorizon.planning.values import optimal_values

_POINTS_A_SEQUENCE = 5  # what it takes to find one, in lattice points
_POINTS_A_TIME = 20_000  # the same for the choices of one time, however few: two milliseconds


class ForwardChoices:
    """GORP with k-action sequences where returns have a lattice."""

    def __init__(self, timeline: Timeline, k: int, policy: ExplorationPolicy, *, gamma: float = 1.0) -> None:
        self._timeline, self._k = timeline, k
        self._optimal = optimal_values(timeline, gamma=gamma)
        ends = np.append(self._ends(), -1)
        self._laws = return_laws(timeline, ends, policy, gamma=gamma)
        self._law_of = np.zeros(timeline.num_pairs + 1, np.int32)  # the last one of an episode that is over: pair -1
        self._law_of[ends] = self._laws.index

    @property
    def num_sequences(self) -> int:
        """Of all choices."""
        return int(self._optimal.reached.sum()) * int(self._timeline.mdp.num_actions**self._k)

    def laws_of(self, ends: NDArray[np.int32]) -> ReturnLaws:
        """Laws of the returns after sequences that end there."""
        return replace(self._laws, index=self._law_of[ends].astype(np.int64))

    def success(self, m: int, max_left_out: float, *, least: float = 0.0) -> Success:
        """Success, but for choices that are met least: at most `max_left_out` of all chances."""

        def chances_at(pairs: NDArray[np.int64]) -> Chances:
            options = choices_at(self._timeline, self._optimal, pairs, self._k)
            greedy = GreedyChoices(options, self._laws.part(self._law_of[options.group_ends]))
            chances, missing, error, points = greedy.probabilities(m)
            work = points + _POINTS_A_SEQUENCE * len(options.arm_groups) + _POINTS_A_TIME
            return chances, missing + error, work

        return forward_success(self._timeline, self._optimal, chances_at, max_left_out=max_left_out, least=least)

    def _ends(self) -> NDArray[np.int64]:
        """Pairs that some sequence from a choice ends in."""
        here = self._optimal.reached
        for _ in range(self._k):
            after = np.zeros(self._timeline.num_pairs + 1, np.bool_)
            after[self._timeline.successors[here]] = True
            here = after[:-1]  # without episodes that are over
        return np.flatnonzero(here)
