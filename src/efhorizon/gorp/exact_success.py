"""The success of GORP(k, m) for every m: of all its choices while they are few, else where it is likely to be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import Choices, choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.fractions import affordable, success_fraction
from efhorizon.gorp.success import SHOWN_WITHOUT, Success, compared_with_half
from efhorizon.gorp.ties import Ties
from efhorizon.planning.problem import Problem
from efhorizon.planning.returns import ReturnDistributions

MAX_SEQUENCES = 1 << 22  # of all choices, to keep: two or three gigabytes
FULL_POINTS = 5_000_000  # lattice points of one m up to which no choice is left out: half a second
MAX_POINTS_AGAINST = 50_000_000  # the same with ties against GORP, for which none can be left out: some seconds


class UndecidedError(Exception):
    """Success is too close to 1/2, or takes too long."""


class ExactSuccess:
    """GORP with k-action sequences: its success from the exact distributions of returns.

    Raises `NoLatticeError` or `TooManySequencesError` where these cannot be had.
    """

    choices: Choices | None = None  # None where they are too many to keep
    returns: ReturnDistributions | None = None  # after the sequences of each group of the choices

    def __init__(
        self, problem: Problem, k: int, ties: Ties = "uniform", *, check: Callable[[], None] | None = None
    ) -> None:
        """`check` is called now and then, and may end it all by an exception."""
        self._policy, self._ties = problem.policy, ties
        self._forward = ForwardChoices(problem, k, check=check)
        if self._forward.num_sequences <= MAX_SEQUENCES:
            self.choices = choices(problem, k)
            self.returns = self._forward.returns_from(self.choices.group_ends)
            self._kept = GreedyChoices(self.choices, self.returns)

    def compared_with_half(self, m: int, *, at_least: float = 0.0) -> Success:
        """Success; where that would take long, with as few choices left out as it takes to compare it with 1/2."""
        if self._all_at_once(m):
            return self._kept.success(m, self._ties)
        return compared_with_half(
            lambda left_out: self._forward.success(m, left_out, least=0.5, ties=self._ties), at_least=at_least
        )

    def success(self, m: int) -> Success:
        """Success; where that would take long, to two digits."""
        if self._all_at_once(m):
            return self._kept.success(m, self._ties)
        return self._forward.success(m, SHOWN_WITHOUT, ties=self._ties)

    def is_half(self, m: int, success: Success) -> bool:
        """Whether success at m is at least 1/2, in fractions if floats cannot tell."""
        if not success.low < 0.5 <= success.high:
            return success.low >= 0.5
        if self.choices is None or self.returns is None or not affordable(self.choices, self.returns, self._policy, m):
            raise UndecidedError(f"the success probability at m = {m} is too close to 1/2 to decide")
        return success_fraction(self.choices, m, self._ties) * 2 >= 1

    def worst_order(self, m: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs [O] of GORP's choices, and the order of actions [O, A] in which ties go against it."""
        self._check_against(m)
        assert self.choices is not None
        return self.choices.pairs, self._kept.worst_order(m)

    def _all_at_once(self, m: int) -> bool:
        if self._ties == "adversarial":
            self._check_against(m)
            return True
        return self.choices is not None and self._kept.points(m) <= FULL_POINTS

    def _check_against(self, m: int) -> None:
        """Refuse what takes long: ties against GORP follow from its success at all later choices."""
        if self.choices is None or self._kept.points(m) > MAX_POINTS_AGAINST:
            raise UndecidedError(f"not affordable at m = {m}: ties against GORP need its success at every choice")
