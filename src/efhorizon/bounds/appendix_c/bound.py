"""Appendix C: the tighter upper bound on the effective horizon.

    H_k <= k + log_A m    for the least m at which the failure probability of GORP(k, m) is bounded below 1/2.

The failure probability is bounded backward over the pairs that optimal play reaches, and at each of them by
a linear program over the chances of the A^k sequences, whose bounds come from the best of four methods: binomial,
Berry-Esseen, Bernstein, Bennett.

Ties: the binomial method takes the chances themselves, with ties drawn uniformly as in `exact_horizon.py`; the others
hold however ties are broken. A bound that also gives ties of binomial means to the worst action
(`FailureBound(..., uniform_ties=False)`) certifies m = 38, 297 and 3 for k = 1 on freeway_10_fs30, KeyCorridorS3R1 and
maze_easy_l0_30_fs1, where 37, 244 and 2 were published. The published code leaves the chance that a mean is 0 out of
the upper bounds of its binomial method, which then can lie below the true chance of an action; that may be why.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np

from efhorizon.bounds.appendix_c.failure_bound import FailureBound, Solution
from efhorizon.bounds.course import Course, OutOfTimeError
from efhorizon.bounds.notes import AppendixCNote
from efhorizon.gorp.decisions import TooManySequencesError, choices
from efhorizon.gorp.least_m import Attempt, LeastM, geometric_mean, halfway
from efhorizon.io.decode import plain, record_of
from efhorizon.planning.problem import Problem

MAX_M = 10**100
METHODS = ("binomial", "Berry-Esseen", "Bernstein", "Bennett")
RELATIVE_PRECISION = 1e-4  # of the binary search; 1/100 in the paper
MAX_GRID_WORK = 300_000  # groups of sequences with grids: some minutes for the whole search
MAX_GRID_WORK_BESIDE_EXACT = 2_000  # a second or two
_GRACE = 3.0  # seconds for the bisection, whatever is left: mostly enough, and the bound is far better for it
_THRESHOLD = 0.5 - 1e-9  # 1/2, less more than all rounding


@dataclass(frozen=True)
class AppendixCBound:
    """An upper bound on m_k, the failure bound there, and the time and state that contribute most to it."""

    k: int
    m: int | None = None  # None where no m up to 10^100 is certified; `reason` says why
    failure_bound: float | None = None  # at m, or at 10^100
    method: str | None = None  # at the witness
    methods: dict[str, int] = field(default_factory=dict)  # in how many choices each method was the best
    witness_time: int | None = None
    witness_state: int | None = None
    reason: str | None = None
    is_finished: bool = True  # False where time was up: m is certified, but smaller ones may be as well


def appendix_c_bound(
    problem: Problem,
    k: int,
    *,
    sufficient_m: int | None = None,
    uniform_ties: bool = True,
    course: Course | None = None,
) -> AppendixCBound:
    """The least m found, up to 10^100, at which GORP(k, m) provably fails with probability below 1/2.

    Binary search on a logarithmic scale: the least m exactly below 10,000, to a relative precision of 1e-4 above. Where
    grids of distribution functions would take too long, Bennett's inequality alone serves. Where exact distributions
    have shown an m to suffice, the search starts there, and is left out if grids would take long: it has nothing to
    win. Without `uniform_ties` the bound holds however ties are broken.

    `course` may end the bisection early, and knows what an earlier call has found.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    course = course or Course()
    key = f"k = {k}, from m = {sufficient_m}, {'uniform ties' if uniform_ties else 'all ties'}"
    if key in course.notes.appendix_c:
        return AppendixCBound(**plain(course.notes.appendix_c[key]))
    found = _found(problem, k, sufficient_m, uniform_ties, course)
    if found.is_finished:
        content = {name: value for name, value in asdict(found).items() if name != "is_finished"}
        course.notes.appendix_c[key] = record_of(content, AppendixCNote, key)
        course.notes.changed()
    return found


def _found(problem: Problem, k: int, sufficient_m: int | None, uniform_ties: bool, course: Course) -> AppendixCBound:
    try:
        options = choices(problem, k)
    except TooManySequencesError as error:
        return AppendixCBound(k, reason=str(error))
    bound = FailureBound(options, problem.return_moments(options.group_ends), uniform_ties=uniform_ties)
    if sufficient_m is not None and bound.grid_work > MAX_GRID_WORK_BESIDE_EXACT:
        reason = f"left out: m = {sufficient_m} suffices by exact laws, and {bound.grid_work:,} grids would take long"
        return AppendixCBound(k, reason=reason)
    has_time = not course.is_over or bound.grid_work <= MAX_GRID_WORK_BESIDE_EXACT
    if bound.grid_work > MAX_GRID_WORK or not has_time:
        bound = bound.without_grids()
    m, solution, is_least = least_certified(bound, from_m=sufficient_m or 1, course=course)
    is_finished = has_time and is_least
    worst = int(solution.contributions.argmax())
    time, state = options.place(worst)
    counts = np.bincount(solution.methods, minlength=len(METHODS))
    return AppendixCBound(
        k=k,
        m=m,
        failure_bound=solution.failure,
        method=METHODS[solution.methods[worst]],
        methods=dict(zip(METHODS, counts.tolist(), strict=True)),
        witness_time=time,
        witness_state=state,
        reason=_reason(m, is_finished, course),
        is_finished=is_finished,
    )


def _reason(m: int | None, is_finished: bool, course: Course) -> str | None:
    if m is None:
        return "the failure bound stays above 1/2 for every m up to 10^100"
    return None if is_finished else f"smaller m may be certified: {course.why_stopped}"


def least_certified(
    bound: FailureBound, from_m: int = 1, course: Course | None = None
) -> tuple[int | None, Solution, bool]:
    """The least m from `from_m` on that is certified, and the solution there; or None and that at 10^100.

    Squares upward until one is certified, then bisection of the logarithm, and of m once close. The last value says
    whether it came to its end before time was up.
    """
    course, is_least = course or Course(), True

    def attempt(m: int) -> Attempt[Solution]:
        solution = bound(m)
        return Attempt(solution.failure <= _THRESHOLD, solution)

    def before(search: LeastM[Solution], m: int) -> None:
        course.at(f"trying m = {float(m):.3g}")
        if search.m is not None:  # some m is found in any case
            course.check()

    largest = attempt(MAX_M)
    if not largest.suffices:
        return None, largest.evidence, True
    search = LeastM(attempt, failing=from_m - 1, before=before)
    search.grow(lambda m: from_m if m < from_m else max(2 * m, m * m), MAX_M)
    try:
        with course.grace(_GRACE):
            search.narrow(
                lambda failing, m: m - failing <= max(1, int(RELATIVE_PRECISION * failing)),
                middle=lambda failing, m: halfway(failing, m) if m < 2 * failing else geometric_mean(failing, m),
            )
    except OutOfTimeError:
        is_least = False
    assert search.found is not None
    return search.m, search.found.evidence, is_least
