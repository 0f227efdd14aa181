"""The success of GORP(k, m) for every m: of all its choices while they are few, else where it is likely to be."""

from __future__ import annotations

from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import Choices, choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.fractions import affordable, success_fraction
from efhorizon.gorp.success import SHOWN_WITHOUT, Success, compared_with_half
from efhorizon.planning.problem import Problem
from efhorizon.planning.returns import ReturnDistributions

MAX_SEQUENCES = 1 << 22  # of all choices, to keep: two or three gigabytes
FULL_POINTS = 5_000_000  # lattice points of one m up to which no choice is left out: half a second


class UndecidedError(Exception):
    """Success is too close to 1/2."""


class ExactSuccess:
    """GORP with k-action sequences: its success from the exact distributions of returns.

    Raises `NoLatticeError` or `TooManySequencesError` where these cannot be had.
    """

    choices: Choices | None = None  # None where they are too many to keep
    returns: ReturnDistributions | None = None  # after the sequences of each group of the choices

    def __init__(self, problem: Problem, k: int) -> None:
        self._policy = problem.policy
        self._forward = ForwardChoices(problem, k)
        if self._forward.num_sequences <= MAX_SEQUENCES:
            self.choices = choices(problem, k)
            self.returns = self._forward.returns_from(self.choices.group_ends)
            self._kept = GreedyChoices(self.choices, self.returns)

    def compared_with_half(self, m: int, *, at_least: float = 0.0) -> Success:
        """Success; where that would take long, with as few choices left out as it takes to compare it with 1/2."""
        if self._all_at_once(m):
            return self._kept.success(m)
        return compared_with_half(lambda left_out: self._forward.success(m, left_out, least=0.5), at_least=at_least)

    def success(self, m: int) -> Success:
        """Success; where that would take long, to two digits."""
        return self._kept.success(m) if self._all_at_once(m) else self._forward.success(m, SHOWN_WITHOUT)

    def is_half(self, m: int, success: Success) -> bool:
        """Whether success at m is at least 1/2, in fractions if floats cannot tell."""
        if not success.low < 0.5 <= success.high:
            return success.low >= 0.5
        if self.choices is None or self.returns is None or not affordable(self.choices, self.returns, self._policy, m):
            raise UndecidedError(f"the success probability at m = {m} is too close to 1/2 to decide")
        return success_fraction(self.choices, m) * 2 >= 1

    def _all_at_once(self, m: int) -> bool:
        return self.choices is not None and self._kept.points(m) <= FULL_POINTS
