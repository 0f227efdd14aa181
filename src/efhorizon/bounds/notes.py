"""Notes of an analysis: what is finished, and how far searches have come, kept in a file between two calls.

One file is about one table with one exploration policy and discount; its name is a digest of them and of the version of
the analysis. It holds what was found for each k (`exact`, `appendix_c`), searches that are not at their end
(`searches`), and the results of bounds that others wrote (`bounds`). A file that is damaged, or is about something
else, is ignored with one line.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta, field

from efhorizon.errors import StoreError
from efhorizon.gorp.least_m import Attempt, SearchState
from efhorizon.gorp.success import Success
from efhorizon.io.decode import (
    MAX_ITEMS,
    Count,
    Finite,
    LargePositive,
    Positive,
    Record,
    read_object,
    record_of,
    write_record,
)
from efhorizon.planning.problem import Problem

FOLDER = ".analyses"  # beside the tables
_WHAT = "notes of an analysis"
_SECONDS_A_WRITE = 2.0  # between two writes of a search that goes on: what a kill can cost
_MAX_STEPS = 10  # of a search

Chance = Annotated[float, Meta(ge=0.0, le=1.0)]
LargeCount = Annotated[int, Meta(ge=0)]


class WitnessNote(Record, frozen=True):
    """Where GORP fails most."""

    time: Count
    state: Count
    failure_probability: Finite


class ExactNote(Record, frozen=True, kw_only=True):
    """What a finished search has found; the fields are those of `ExactHorizon`."""

    k: Positive
    m: LargePositive | None = None
    success_probability: Chance | None = None
    previous_success_probability: Chance | None = None
    error: Chance | None = None
    smallest_m_verified: bool = False
    reason: str | None = None
    witness: WitnessNote | None = None
    least_possible_m: LargePositive | None = 1


class AppendixCNote(Record, frozen=True, kw_only=True):
    """A bound of Appendix C; the fields are those of `AppendixCBound`."""

    k: Positive
    m: LargePositive | None = None
    failure_bound: Finite | None = None
    method: str | None = None
    methods: dict[str, Count] = field(default_factory=dict)
    witness_time: Count | None = None
    witness_state: Count | None = None
    reason: str | None = None


class AttemptNote(Record, frozen=True, kw_only=True):
    """One m that was tried, and GORP's success there."""

    suffices: bool | None
    low: Chance
    high: Chance
    worst_pair: Count
    worst_failure: Finite
    success_points: LargeCount
    points: LargeCount


class SearchNote(Record, frozen=True, kw_only=True):
    """A search between two attempts; the other fields are those of `SearchState`."""

    k: Positive
    failing: LargeCount
    m: LargePositive | None
    found: AttemptNote | None
    num_failing: LargeCount
    undecided: LargePositive | None
    steps_done: Annotated[int, Meta(ge=0, le=_MAX_STEPS)]
    points_scanned: LargeCount
    points_verified: LargeCount

    def __post_init__(self) -> None:
        most = self.failing if self.m is None else self.m - 1
        if max(self.failing, self.num_failing) > most or (self.found is None and (self.m or self.steps_done)):
            raise ValueError("no search can be there")


class BoundNote(Record, frozen=True):
    """The result of somebody's own bound."""

    sample_complexity: LargeCount | None
    reason: str | None = None


class NotesFile(Record, frozen=True, kw_only=True):
    """What the file holds. Keys say what a result depends on besides the inputs."""

    inputs: str  # the digest that is the name of the file
    exact: dict[str, ExactNote] = field(default_factory=dict)
    appendix_c: dict[str, AppendixCNote] = field(default_factory=dict)
    searches: dict[str, SearchNote] = field(default_factory=dict)
    bounds: dict[str, BoundNote] = field(default_factory=dict)


class Notes:
    """Notes of one analysis: in memory only, or also in a file."""

    def __init__(self, path: Path | None = None, content: NotesFile | None = None) -> None:
        self.path = path  # None: nothing is left when the program ends
        self._content = content or NotesFile(inputs="")
        self._last_write = time.monotonic()
        self._is_changed = False
        self._say: Callable[[str], None] = lambda _: None

    @property
    def exact(self) -> dict[str, ExactNote]:
        return self._content.exact

    @property
    def appendix_c(self) -> dict[str, AppendixCNote]:
        return self._content.appendix_c

    @property
    def searches(self) -> dict[str, SearchNote]:
        return self._content.searches

    @property
    def bounds(self) -> dict[str, BoundNote]:
        return self._content.bounds

    def changed(self, *, soon: bool = False) -> None:
        """Write the file: now, or `soon`, if the last time is some seconds ago."""
        self._is_changed = True
        if not soon or time.monotonic() - self._last_write > _SECONDS_A_WRITE:
            self.write()

    def write(self) -> None:
        """Write what is not in the file yet. A folder that cannot be written to is no reason to stop: it is said once,
        and from then on nothing is kept."""
        if self.path is None or not self._is_changed:
            return
        try:
            write_record(self.path, self._content)
        except OSError as error:
            self._say(f"{self.path}: cannot be written ({error.strerror}), so nothing of this analysis is kept")
            self.path = None
        self._is_changed, self._last_write = False, time.monotonic()


def notes_of(
    problem: Problem, folder: Path, version: str, *, fresh: bool = False, say: Callable[[str], None] = lambda _: None
) -> Notes:
    """The notes of earlier analyses of a problem by this version of the analysis, or empty ones if `fresh`.

    `say` receives one line if a file cannot be used or written.
    """
    inputs = _digest(problem, version)
    path, content = folder / f"{inputs}.json", NotesFile(inputs=inputs)
    if not fresh and path.exists():
        try:
            content = _read(path, inputs, problem)
        except StoreError as error:
            say(f"{error}; it is ignored, and the analysis begins anew")
    notes = Notes(path, content)
    notes._say = say
    return notes


def _read(path: Path, inputs: str, problem: Problem) -> NotesFile:
    content = record_of(read_object(path, _WHAT), NotesFile, str(path))
    if content.inputs != inputs:
        raise StoreError(f"{path}: not the {_WHAT} that its name says")
    if any(len(part) > MAX_ITEMS for part in (content.exact, content.appendix_c, content.searches, content.bounds)):
        raise StoreError(f"{path}: too many entries for {_WHAT}")
    mdp = problem.mdp
    places = [(note.witness.time, note.witness.state) for note in content.exact.values() if note.witness is not None]
    places += [(note.witness_time or 0, note.witness_state or 0) for note in content.appendix_c.values()]
    pairs = [note.found.worst_pair for note in content.searches.values() if note.found is not None]
    if any(at >= mdp.horizon or state >= mdp.num_states for at, state in places):
        raise StoreError(f"{path}: names a state that the table does not have")
    if any(pair >= problem.timeline.num_pairs for pair in pairs):
        raise StoreError(f"{path}: names a state that the table does not have")
    return content


def search_note(k: int, state: SearchState[Success]) -> SearchNote:
    """A search as it is written."""
    found = state.found
    return SearchNote(
        k=k,
        failing=state.failing,
        m=state.m,
        found=None if found is None else _attempt_note(found),
        num_failing=state.num_failing,
        undecided=state.undecided,
        steps_done=state.steps_done,
        points_scanned=state.points_scanned,
        points_verified=state.points_verified,
    )


def search_state(note: SearchNote) -> SearchState[Success]:
    """A search as it was."""
    return SearchState(
        failing=note.failing,
        m=note.m,
        found=None if note.found is None else _attempt(note.found),
        num_failing=note.num_failing,
        undecided=note.undecided,
        steps_done=note.steps_done,
        points_scanned=note.points_scanned,
        points_verified=note.points_verified,
    )


def _attempt_note(tried: Attempt[Success]) -> AttemptNote:
    success = tried.evidence
    return AttemptNote(
        suffices=None if tried.suffices is None else bool(tried.suffices),
        low=float(success.low),
        high=float(success.high),
        worst_pair=int(success.worst_pair),
        worst_failure=float(success.worst_failure),
        success_points=int(success.points),
        points=int(tried.points),
    )


def _attempt(note: AttemptNote) -> Attempt[Success]:
    success = Success(note.low, note.high, note.worst_pair, note.worst_failure, note.success_points)
    return Attempt(note.suffices, success, note.points)


def _digest(problem: Problem, version: str) -> str:
    """A hash of what every result depends on: the table as its states are numbered, policy, discount and code."""
    mdp, policy = problem.mdp, problem.policy.probabilities
    digest = hashlib.sha256(f"{version}:{problem.gamma!r}:{mdp.horizon}:{mdp.num_actions}:".encode())
    for array in (mdp.transitions, mdp.reward_codes, mdp.reward_values, *(() if policy is None else (policy,))):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]
