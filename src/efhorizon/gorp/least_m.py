"""The search for the least m that suffices: one for exact success, for goal MDPs and for the bound of Appendix C.

Whether GORP(k, m) succeeds half the time need not grow with m, and one m can take a microsecond or a minute. So a
search goes by steps of which each caller takes those that it can afford, in this order:

    scan      every m from 1 on, while that is cheap
    grow      ever larger m until one suffices
    narrow    bisection between an m that fails and one that suffices
    verify    every m that was passed over

A search can be interrupted before any attempt, and go on from its `state` later, as if nothing had happened.
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


@dataclass(frozen=True)
class SearchState(Generic[_Evidence]):
    """All that a search knows between two attempts; `LeastM` says what each part is."""

    failing: int = 0
    m: int | None = None
    found: Attempt[_Evidence] | None = None
    num_failing: int = 0
    undecided: int | None = None
    steps_done: int = 0
    points_scanned: int = 0
    points_verified: int = 0


class LeastM(Generic[_Evidence]):
    """A search under way. A step does nothing where there is nothing left to do."""

    def __init__(
        self,
        attempt: Callable[[int], Attempt[_Evidence]],
        *,
        failing: int = 0,
        m: int | None = None,
        before: Callable[[LeastM[_Evidence], int], None] | None = None,
    ) -> None:
        """`before` is called before each attempt with the m to try, and may end the search by an exception."""
        self._attempt = attempt
        self._before = before
        self.failing = failing  # below m, the last one that was not seen to suffice
        self.m = m  # suffices; None as long as none is known to
        self.found: Attempt[_Evidence] | None = None  # at m, or at the last one tried as long as none suffices
        self.num_failing = 0  # every m up to this one was tried and fails
        self.undecided: int | None = None  # the m at which verification had to end
        self.steps_done = 0  # of those given to `run`
        self.points_scanned = self.points_verified = 0  # the work of these steps so far
        self.part_done: float | None = None  # of the step under way, where that can be said

    @property
    def state(self) -> SearchState[_Evidence]:
        """What `resume` takes."""
        return SearchState(
            failing=self.failing,
            m=self.m,
            found=self.found,
            num_failing=self.num_failing,
            undecided=self.undecided,
            steps_done=self.steps_done,
            points_scanned=self.points_scanned,
            points_verified=self.points_verified,
        )

    def resume(self, state: SearchState[_Evidence]) -> None:
        """Go on from where another search was."""
        self.failing, self.m, self.found = state.failing, state.m, state.found
        self.num_failing, self.undecided, self.steps_done = state.num_failing, state.undecided, state.steps_done
        self.points_scanned, self.points_verified = state.points_scanned, state.points_verified

    def run(self, *steps: Callable[[], None]) -> None:
        """Take these steps, but for those that were done before the search was interrupted."""
        for number, step in enumerate(steps):
            if number >= self.steps_done:
                self.part_done = None
                step()
                self.steps_done = number + 1

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
        while self.m is None and self.failing < max_m and self.points_scanned <= max_points:
            self.part_done = max(self.failing / max_m, self.points_scanned / max(1, max_points))
            self.points_scanned += self._try(self.failing + 1, self._attempt).points
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

    def verify(self, max_points: int | None, *, attempt: Callable[[int], Attempt[_Evidence]] | None = None) -> None:
        """Try the m that were passed over, in order, if that can be done with so many points.

        `attempt` may be one that leaves it open whether an m suffices, which ends it.
        """
        first = self.num_failing + 1
        for smaller in range(first, self.m or 0):
            left = ((self.m or 0) - smaller) * self.points // 2  # a smaller m takes less, mostly
            if max_points is not None and self.points_verified + left > max_points:
                return
            self.part_done = (smaller - first) / ((self.m or 0) - first)
            tried = self._attempted(smaller, attempt or self._attempt)
            self.points_verified += tried.points
            if tried.suffices is None:
                self.undecided = smaller
                return
            if tried.suffices:
                self.m, self.found = smaller, tried
                self.failing = self.num_failing  # larger ones may fail, but only those below m count
                return
            self.num_failing = smaller

    def _try(self, m: int, attempt: Callable[[int], Attempt[_Evidence]]) -> Attempt[_Evidence]:
        tried = self._attempted(m, attempt)
        if tried.suffices:
            self.m = m
        else:
            self.failing = m
        if tried.suffices or self.m is None:
            self.found = tried
        return tried

    def _attempted(self, m: int, attempt: Callable[[int], Attempt[_Evidence]]) -> Attempt[_Evidence]:
        if self._before is not None:
            self._before(self, m)
        return attempt(m)
