"""An analysis under way: where it stands, how much time it has left, and what earlier calls have found.

Nothing but the search for exact figures is ever cut short by the clock, and what is cut short says so: its result is a
bound with the reason, not another number. What was found until then is kept (`notes.py`), and the next call goes on
from there to the result that it would have had in one go.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from numba.core import event

from efhorizon.bounds.notes import Notes, notes_of
from efhorizon.errors import EfhorizonError
from efhorizon.planning.problem import Problem

_MORE = 4  # times as much time is what an unfinished analysis asks for
_LEAST_MINUTES_MORE = 5

_compiling = event.TimingListener()  # type: ignore[no-untyped-call]
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]


def working_seconds() -> float:
    """A clock that stands still while kernels are compiled: the first analysis on a machine spends a minute on that."""
    return time.monotonic() - (_compiling.duration if _compiling.done else 0.0)


class OutOfTimeError(Exception):
    """The time for this part of an analysis is used up."""


class InvalidBudgetError(EfhorizonError, ValueError):
    """A time budget that is no time."""


@dataclass(frozen=True)
class Standing:
    """Where an analysis stands."""

    phase: str  # "exact horizon, k = 1 of 3"
    detail: str  # "trying m = 120"; may be empty
    part_done: float | None  # of the phase's present step, from 0 to 1, where that can be said
    seconds: float  # since the analysis began
    step_seconds: float  # since this step of the phase began
    seconds_left: float  # until time is up; infinite without a limit

    @property
    def step_seconds_left(self) -> float | None:
        """Of the present step, if it goes on as it went so far."""
        if not self.part_done or self.step_seconds < 0.5:
            return None
        return self.step_seconds * (1 - self.part_done) / self.part_done


class Course:
    """What the parts of an analysis report to, and ask whether they may go on."""

    def __init__(
        self,
        *,
        seconds: float | None = None,
        further: bool = False,
        keep_in: Path | None = None,
        fresh: bool = False,
        on_progress: Callable[[Standing], None] | None = None,
        on_message: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = working_seconds,
    ) -> None:
        """Without `seconds` there is no limit; `further`: once all else is done, time that is left goes to what the
        limits on work leave out. `keep_in` is a folder for what is found, from which the next call goes on; `fresh`
        begins anew. `on_message` receives one line if a file there cannot be used."""
        if seconds is not None and not seconds > 0:
            raise InvalidBudgetError(f"a time budget must be more than 0, such as 5 minutes; got {seconds / 60:g}")
        self.notes = Notes()
        self.may_go_further, self.further = further, False
        self._seconds = seconds
        self._keep_in, self._fresh = keep_in, fresh
        self._on_progress, self._on_message = on_progress, on_message
        self._clock = clock
        self._began = self._step_began = clock()
        self._end = self._limit = math.inf if seconds is None else self._began + seconds
        self._phase = ""
        self._part_done: float | None = None

    def open_notes(self, problem: Problem, version: str) -> None:
        """Go on from what earlier calls of this version have found, if there is a place where that is kept."""
        if self._keep_in is not None:
            self.notes = notes_of(problem, self._keep_in, version, fresh=self._fresh, say=self._on_message)

    @property
    def why_stopped(self) -> str:
        """The reason for a result that time has cut short, and what to do about it."""
        given = self._seconds or 0.0
        minutes = max(_LEAST_MINUTES_MORE, math.ceil(_MORE * given / 60))
        return f"the time budget of {_duration(given)} is used up; go on with --max-minutes {minutes}"

    @property
    def is_over(self) -> bool:
        return self._clock() >= self._end

    def check(self) -> None:
        """Raise `OutOfTimeError` if this part has had its time."""
        if self._limit < math.inf and self._clock() >= self._limit:
            raise OutOfTimeError

    @contextmanager
    def going_further(self) -> Iterator[None]:
        """What follows is not held back by limits on work, only by time."""
        self.further = True
        try:
            yield
        finally:
            self.further = False

    @contextmanager
    def share(self, part: float) -> Iterator[None]:
        """Give what follows this part of the time that is left."""
        before = self._limit
        if before < math.inf:
            now = self._clock()
            self._limit = now + part * max(0.0, before - now)
        try:
            yield
        finally:
            self._limit = before

    @contextmanager
    def grace(self, seconds: float) -> Iterator[None]:
        """Give what follows so much time at least."""
        before = self._limit
        self._limit = max(before, self._clock() + seconds)
        try:
            yield
        finally:
            self._limit = before

    @contextmanager
    def own(self, seconds: float) -> Iterator[None]:
        """Give what follows so much time of its own, or all that is left of a budget if that is more."""
        before = self._limit
        least = self._clock() + seconds
        self._limit = least if before == math.inf else max(before, least)
        try:
            yield
        finally:
            self._limit = before

    def phase(self, phase: str) -> None:
        """Something else begins."""
        self._phase, self._step_began = phase, self._clock()
        self.at("")

    def at(self, detail: str, part_done: float | None = None) -> None:
        """Where the phase stands."""
        if self._on_progress is None:
            return
        now = self._clock()
        if part_done is None or self._part_done is None or part_done < self._part_done:
            self._step_began = now
        self._part_done = part_done
        standing = Standing(self._phase, detail, part_done, now - self._began, now - self._step_began, self._end - now)
        self._on_progress(standing)


def _duration(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.3g} minutes"
