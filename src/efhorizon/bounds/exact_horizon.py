"""The exact effective horizon (Definition 5.2): the least m with which GORP(k, m) succeeds at least half the time.

    H_k = k + log_A m_k,    m_k = min { m : P(GORP(k, m) returns an optimal policy) >= 1/2 }

The paper bounds m_k; here it is computed. The distribution of a rollout's return lives on the lattice of reward units
(`planning/returns.py`), the sum of m of them is its convolution power (`gorp/sums.py`), the chance of each of the A^k
sequences to have the largest sum is one integral (`gorp/winning.py`), and success follows by the recursion

    P(success | t, s) = sum_{a optimal} P(a chosen | t, s) P(success | t + 1, f(s, a)).

Convention: among several sequences with the largest mean, GORP draws one uniformly (the pseudocode leaves it open).
An action that begins more of the tied sequences is then chosen more often. Other rules: `gorp/ties.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from efhorizon.bounds.appendix_c.failure_bound import FailureBound
from efhorizon.bounds.course import Course, OutOfTimeError
from efhorizon.bounds.notes import ExactNote, search_note, search_state
from efhorizon.gorp.decisions import TooManySequencesError
from efhorizon.gorp.exact_success import ExactSuccess, UndecidedError
from efhorizon.gorp.least_m import Attempt, LeastM
from efhorizon.gorp.success import SHOWN_WITHOUT, Success
from efhorizon.gorp.ties import Ties
from efhorizon.io.decode import plain, record_of
from efhorizon.planning.problem import Problem
from efhorizon.planning.return_units import NoLatticeError

MAX_M = 100_000
PATIENT_M = 1_000_000_000  # the same where some m must suffice
SCAN_POINTS = 100_000_000  # lattice points over which every m is tried, some seconds; beyond, bisection
MAX_POINTS = 100_000_000  # lattice points of one m up to which a larger one is tried: ten seconds
PATIENT_POINTS = 1_000_000_000  # the same where some m must suffice: a minute or two
CHEAP_POINTS = 10_000_000  # of one m: bisection then ends with two neighbouring m, else with one part in PRECISION
PRECISION = 100
VERIFY_POINTS = 1_000_000_000  # lattice points over which the m passed over are tried: a minute or two
_HOPELESS = 0.499  # a bound on success: below 1/2 by more than all rounding


@dataclass(frozen=True)
class LikeliestFailure:
    """Where GORP fails most: the chance that its first action that is not optimal is taken here."""

    time: int
    state: int
    failure_probability: float


def likeliest_failure(problem: Problem, success: Success) -> LikeliestFailure:
    pair = success.worst_pair
    return LikeliestFailure(problem.timeline.time_of(pair), int(problem.timeline.states[pair]), success.worst_failure)


@dataclass(frozen=True)
class ExactHorizon:
    """m_k, with the success probabilities on both sides of the threshold. Without an m, all that is known is why."""

    k: int
    m: int | None = None  # None where no m was found; `reason` says why
    success_probability: float | None = None  # at m, or at the largest m tried
    previous_success_probability: float | None = None  # at m - 1; None where m is 1
    error: float | None = None  # bound on the error of both
    smallest_m_verified: bool = False  # every smaller m was tried; else m is the least between two that were
    reason: str | None = None
    witness: LikeliestFailure | None = None
    least_possible_m: int | None = 1  # every smaller m was tried and fails; None where every m does
    is_finished: bool = True  # False where time was up; `reason` says so


def exact_horizon(
    problem: Problem,
    k: int,
    *,
    max_m: int = MAX_M,
    max_points: int = MAX_POINTS,
    ties: Ties = "uniform",
    course: Course | None = None,
) -> ExactHorizon:
    """The least m up to `max_m` with which GORP(k, m) returns an optimal policy with probability at least 1/2.

    Success need not grow with m, so every m is tried from 1 on while that is cheap. After that m is doubled until it
    suffices or takes more than `max_points` lattice points, and bisection follows; it can miss a smaller m only if
    success crosses 1/2 more than once in between. The m that were passed over are tried then; if they are too many,
    `smallest_m_verified` is False. Where no m can succeed, that is proved by Bennett's inequality if possible, whatever
    the rule for ties. Every comparison with 1/2 holds with a proven error bound; where it cannot, success is computed
    as a fraction.

    `course` may end the search early, knows how far an earlier call has come, and if it goes further has every m tried
    that was passed over, however many they are.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    course = course or Course()
    key = f"{ties}, k = {k}, m up to {max_m}, {max_points} points"
    return noted(course, key, lambda: _found(problem, k, max_m, max_points, ties, course, key))


def noted(course: Course, key: str, search: Callable[[], ExactHorizon]) -> ExactHorizon:
    """What is noted of a search, or what it finds now; that is noted if it came to its end."""
    known = course.notes.exact.get(key)
    if known is not None and not (course.further and known.m is not None and not known.smallest_m_verified):
        return _recalled(known)
    found = search()
    if found.is_finished:
        content = {name: value for name, value in asdict(found).items() if name != "is_finished"}
        course.notes.exact[key] = record_of(content, ExactNote, key)
        if found.smallest_m_verified or found.m is None:
            course.notes.searches.pop(key, None)  # nothing is left to go on with
        course.notes.changed()
    elif known is not None:  # time was up while the m passed over were tried: fewer are open now
        found = replace(
            _recalled(known), least_possible_m=found.least_possible_m, reason=found.reason, is_finished=False
        )
    return found


def watched(course: Course, key: str, k: int) -> Callable[[LeastM[Success], int], None]:
    """What a search does before each attempt: note where it is, say so, and stop if time is up."""

    def before(search: LeastM[Success], m: int) -> None:
        note_search(course, key, k, search)
        course.at(f"trying m = {m:,}", search.part_done)
        course.check()

    return before


def note_search(course: Course, key: str, k: int, search: LeastM[Success]) -> None:
    """Note where a search is, between two attempts."""
    course.notes.searches[key] = search_note(k, search.state)
    course.notes.changed(soon=True)


def resumed(course: Course, key: str, search: LeastM[Success]) -> LeastM[Success]:
    """The search, where an earlier call left it."""
    if key in course.notes.searches:
        search.resume(search_state(course.notes.searches[key]))
    return search


def unfinished(k: int, search: LeastM[Success] | None, problem: Problem, course: Course) -> ExactHorizon:
    """What is known when time is up: all that failed so far, and an m that suffices if one was found."""
    if search is None or search.found is None:
        return ExactHorizon(k, reason=course.why_stopped, is_finished=False)
    success = search.found.evidence
    return ExactHorizon(
        k=k,
        m=search.m,
        success_probability=success.middle,
        error=success.error,
        reason=course.why_stopped,
        witness=likeliest_failure(problem, success),
        least_possible_m=search.num_failing + 1,
        is_finished=False,
    )


def _recalled(note: ExactNote) -> ExactHorizon:
    witness = None if note.witness is None else LikeliestFailure(**plain(note.witness))
    return ExactHorizon(**{**plain(note), "witness": witness})


def _found(problem: Problem, k: int, max_m: int, max_points: int, ties: Ties, course: Course, key: str) -> ExactHorizon:
    search: LeastM[Success] | None = None
    try:
        course.check()
        greedy = ExactSuccess(problem, k, ties, check=course.check)
        limit = _hopeless_from(problem, greedy, max_m)
        search = resumed(course, key, LeastM(_attempt(greedy), before=watched(course, key, k)))
        most = max_m if limit is None else max(1, limit - 1)
        _take_steps(search, greedy, most, max_points)
        if course.further:
            search.verify(None, attempt=_open_attempt(greedy))
        note_search(course, key, k, search)
        return _result(problem, k, greedy, search, limit, max_m)
    except OutOfTimeError:
        return unfinished(k, search, problem, course)
    except (NoLatticeError, TooManySequencesError, UndecidedError) as error:
        return ExactHorizon(k, reason=str(error))


def _result(
    problem: Problem, k: int, greedy: ExactSuccess, search: LeastM[Success], limit: int | None, max_m: int
) -> ExactHorizon:
    """What a search has found."""
    assert search.found is not None
    success, before, least_possible_m = search.found.evidence, None, search.num_failing + 1
    if search.m is not None:
        success = success.or_closer(greedy.success(search.m))
        before = greedy.success(search.m - 1) if search.m > 1 else None
        verified, reason = search.is_least, None
    else:
        verified = search.num_failing == search.failing
        reason = _why_none(search.failing, verified, limit, max_m)
    return ExactHorizon(
        k=k,
        m=search.m,
        success_probability=success.middle,
        previous_success_probability=None if before is None else before.middle,
        error=max(found.error for found in (success, before) if found is not None),
        smallest_m_verified=verified,
        reason=reason,
        witness=likeliest_failure(problem, success),
        least_possible_m=None if search.m is None and limit is not None and verified else least_possible_m,
    )


def _attempt(greedy: ExactSuccess) -> Callable[[int], Attempt[Success]]:
    def attempt(m: int) -> Attempt[Success]:
        success = greedy.compared_with_half(m)
        return Attempt(greedy.is_half(m, success), success, success.points)

    return attempt


def _open_attempt(greedy: ExactSuccess) -> Callable[[int], Attempt[Success]]:
    """The same where it may stay open whether an m suffices."""
    decided = _attempt(greedy)

    def attempt(m: int) -> Attempt[Success]:
        try:
            return decided(m)
        except UndecidedError:
            return Attempt(None, greedy.compared_with_half(m))

    return attempt


def _take_steps(search: LeastM[Success], greedy: ExactSuccess, max_m: int, max_points: int) -> None:
    """Every m while that is cheap, then doubling, bisection, and every m that was passed over."""

    def rough_attempt(m: int) -> Attempt[Success]:  # what cannot be told from 1/2 soon does not count
        success = greedy.compared_with_half(m, at_least=SHOWN_WITHOUT)
        return Attempt(success.low >= 0.5, success, success.points)

    search.run(
        lambda: search.scan(max_m, min(SCAN_POINTS, max_points)),
        lambda: search.grow(lambda m: 2 * m, max_m, max_points=max_points),
        lambda: search.narrow(lambda failing, m: m - failing <= 1 or search.points >= CHEAP_POINTS),
        lambda: search.narrow(lambda failing, m: m - failing <= max(1, m // PRECISION), attempt=rough_attempt),
        lambda: search.verify(min(VERIFY_POINTS, 10 * max_points)),
    )


def _hopeless_from(problem: Problem, greedy: ExactSuccess, max_m: int) -> int | None:
    """An m up to max_m from which on no m can succeed half the time; None where there is no proof."""
    if greedy.choices is None or greedy.returns is None:
        return None
    is_discounted = problem.gamma != 1.0  # distributions are not in reward units then
    moments = problem.return_moments(greedy.choices.group_ends) if is_discounted else greedy.returns.moments()
    bound = FailureBound(greedy.choices, moments)
    if bound.success_limit(max_m) >= _HOPELESS:
        return None
    search = LeastM(lambda m: Attempt(bound.success_limit(m) < _HOPELESS, None), m=max_m)
    search.narrow(lambda failing, m: m - failing <= 1)
    return search.m


def _why_none(last: int, verified: bool, limit: int | None, max_m: int) -> str:
    """Why there is no m, when the last one tried fails and all from `limit` on provably do."""
    if limit == 1:
        return "success stays below 1/2 for every m, provably"
    if limit is not None:
        which = "all m" if verified else "all m tried"
        return f"success stays below 1/2 for {which} below {limit}, and provably from there on"
    reason = f"success stays below 1/2 for every m tried up to {last}"
    return reason + "; larger m need too many lattice points" if last < max_m else reason
