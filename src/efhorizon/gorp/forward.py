"""GORP's choices found where it goes: for MDPs with more of them than can be kept, or than are worth a look.

The distributions of returns are kept for every pair in which a sequence can end, and nothing else: the sequences of a
pair are found again whenever success is computed (`success.py`). Goal MDPs need no distributions (`goal.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import choices_at
from efhorizon.gorp.success import Chances, ChancesAt, Success, forward_success
from efhorizon.gorp.ties import NOT_FORWARD, Ties
from efhorizon.planning.problem import Problem
from efhorizon.planning.returns import MAX_POINTS, ReturnDistributions

_POINTS_A_SEQUENCE = 5  # what it takes to find one, in lattice points
_POINTS_A_TIME = 20_000  # the same for the choices of one time, however few: two milliseconds


class ForwardChoices:
    """GORP with k-action sequences where returns have a lattice."""

    def __init__(
        self, problem: Problem, k: int, *, check: Callable[[], None] | None = None, max_points: int = MAX_POINTS
    ) -> None:
        """`check` is called at every time, and may end it all by an exception; `max_points` are those of a time."""
        self._problem, self._k, self._check = problem, k, check
        ends = np.append(self._ends(), -1)
        self._returns = problem.return_distributions(ends, max_points=max_points)
        self._place = np.zeros(problem.timeline.num_pairs + 1, np.int32)  # the last is an episode that is over: pair -1
        self._place[ends] = self._returns.index

    @property
    def num_sequences(self) -> int:
        """Of all choices."""
        return int(self._problem.optimal.reached.sum()) * int(self._problem.mdp.num_actions**self._k)

    def returns_from(self, ends: NDArray[np.int32]) -> ReturnDistributions:
        """Distributions of the returns after sequences that end there."""
        return replace(self._returns, index=self._place[ends].astype(np.int64))

    def success(self, m: int, max_left_out: float, *, least: float = 0.0, ties: Ties = "uniform") -> Success:
        """Success, but for choices that are met least: at most `max_left_out` of all chances."""
        return forward_success(self._problem, self.chances(m, ties), max_left_out=max_left_out, least=least)

    def chances(self, m: int, ties: Ties = "uniform") -> ChancesAt:
        """What gives the chances of each action at some pairs of one time."""
        if ties == "adversarial":
            raise ValueError(NOT_FORWARD)

        def chances_at(pairs: NDArray[np.int64]) -> Chances:
            if self._check is not None:
                self._check()
            options = choices_at(self._problem, pairs, self._k)
            greedy = GreedyChoices(options, self._returns.part(self._place[options.group_ends]))
            (chances, missing, error), points = greedy.probabilities(m, ties)
            work = points + _POINTS_A_SEQUENCE * len(options.arm_groups) + _POINTS_A_TIME
            return chances, missing + error, work

        return chances_at

    def _ends(self) -> NDArray[np.int64]:
        """Pairs that some sequence from a choice ends in."""
        here, successors = self._problem.optimal.reached, self._problem.timeline.successors
        for _ in range(self._k):
            after = np.zeros(len(successors) + 1, np.bool_)
            after[successors[here]] = True
            here = after[:-1]  # without episodes that are over
        return np.flatnonzero(here)
