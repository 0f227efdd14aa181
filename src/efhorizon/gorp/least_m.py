"""The search for the least m that suffices: one for exact success, for goal MDPs and for the bound of Appendix C.

Whether GORP(k, m) succeeds half the time need not grow with m, and one m can take a microsecond or a minute. So a
search goes by steps of which each caller takes those that it can afford, in this order:

    scan      every m from 1 on, while that is cheap
    grow      ever larger m until one suffices
    narrow    bisection between an m that fails and one that suffices
    verify    every m that was passed over
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Evidence = TypeVar("_Evidence")


def halfway(failing: int, m: int) -> int:
    return (failing + m) // 2


def geometric_mean(failing: int, m: int) -> int:
    return max(failing + 1, math.isqrt(failing * m))


@dataclass(frozen=True)
class Attempt(Generic[_Evidence]):
    """What is known of one m."""

    suffices: bool | None  # None where that cannot be decided
    evidence: _Evidence
    points: int = 0  # a measure of the work


class LeastM(Generic[_Evidence]):
    """A search under way. A step does nothing where there is nothing left to do."""

    def __init__(self, attempt: Callable[[int], Attempt[_Evidence]], *, failing: int = 0, m: int | None = None) -> None:
        self._attempt = attempt
        self.failing = failing  # below m, the last one that was not seen to suffice
        self.m = m  # suffices; None as long as none is known to
        self.found: Attempt[_Evidence] | None = None  # at m, or at the last one tried as long as none suffices
        self.num_failing = 0  # every m up to this one was tried and fails
        self.undecided: int | None = None  # the m at which verification had to end

    @property
    def points(self) -> int:
        """The work that the attempt found took."""
        return 0 if self.found is None else self.found.points

    @property
    def is_least(self) -> bool:
        """Whether every smaller m was tried and fails."""
        return self.m == self.num_failing + 1

    def scan(self, max_m: int, max_points: int) -> None:
        """Try m = 1, 2, ... until one suffices, or that has taken more than so many points."""
        points = 0
        while self.m is None and self.failing < max_m and points <= max_points:
            points += self._try(self.failing + 1, self._attempt).points
            self.num_failing = self.failing

    def grow(self, growth: Callable[[int], int], max_m: int, *, max_points: int | None = None) -> None:
        """Try larger m, each by `growth` of the last, until one suffices or takes so many points."""
        while self.m is None and self.failing < max_m and (max_points is None or self.points < max_points):
            self._try(min(growth(self.failing), max_m), self._attempt)

    def narrow(
        self,
        is_close: Callable[[int, int], bool],
        *,
        middle: Callable[[int, int], int] = halfway,
        attempt: Callable[[int], Attempt[_Evidence]] | None = None,
    ) -> None:
        """Bisection until the m that fails and the one that suffices are close. `attempt` may be a rougher one."""
        while self.m is not None and not is_close(self.failing, self.m):
            self._try(middle(self.failing, self.m), attempt or self._attempt)

    def verify(self, max_points: int) -> None:
        """Try the m that were passed over, in order, if that can be done with so many points."""
        points = 0
        for smaller in range(self.num_failing + 1, self.m or 0):
            if points + ((self.m or 0) - smaller) * self.points // 2 > max_points:  # a smaller m takes less, mostly
                return
            tried = self._attempt(smaller)
            points += tried.points
            if tried.suffices is None:
                self.undecided = smaller
                return
            if tried.suffices:
                self.m, self.found = smaller, tried
                return
            self.num_failing = smaller

    def _try(self, m: int, attempt: Callable[[int], Attempt[_Evidence]]) -> Attempt[_Evidence]:
        tried = attempt(m)
        if tried.suffices:
            self.m = m
        else:
            self.failing = m
        if tried.suffices or self.m is None:
            self.found = tried
        return tried
