"""An m that suffices in a goal MDP with more choices than can be kept, or more lattice points than can be summed."""

from __future__ import annotations

from efhorizon.bounds.course import Course, OutOfTimeError
from efhorizon.bounds.exact_horizon import (
    ExactHorizon,
    likeliest_failure,
    note_search,
    noted,
    resumed,
    unfinished,
    watched,
)
from efhorizon.gorp.goal import MAX_SEQUENCES_A_CHOICE, GoalChoices
from efhorizon.gorp.least_m import Attempt, LeastM, geometric_mean, halfway
from efhorizon.gorp.success import SHOWN_WITHOUT, Success, compared_with_half
from efhorizon.gorp.ties import Ties
from efhorizon.planning.problem import Problem

MAX_M = 10**18
MAX_POINTS = 1_000_000_000  # lattice points of one m: some minutes
SCAN_POINTS = 400_000_000  # lattice points over which every smaller m is tried: a minute or so
CHEAP_POINTS = 1_000_000  # of one m: then the search goes on until two neighbouring m differ
PRECISION = 1000  # else it ends when m is known to one part in so many
NOT_TRIED = "not every smaller m was tried"


def goal_sufficient_m(
    problem: Problem,
    k: int,
    *,
    max_points: int = MAX_POINTS,
    ties: Ties = "uniform",
    course: Course | None = None,
) -> ExactHorizon:
    """An m with which GORP(k, m) succeeds at least half the time in a goal MDP, close above one that was not seen to.

    Success is computed from exact distributions (`gorp/goal.py`), up to choices that are hardly ever met. m grows by a
    factor of 4 until it suffices, then bisection to one part in a thousand. Smaller m may suffice as well, so this is
    an upper bound on m_k, unless every smaller m can be tried soon. Ties that go against GORP are beyond this way.
    `course` is that of `exact_horizon`.
    """
    if problem.mdp.num_actions**k > MAX_SEQUENCES_A_CHOICE:
        return ExactHorizon(k, reason=f"{problem.mdp.num_actions}^{k} sequences are too many to compare one by one")
    course = course or Course()
    key = f"goal, {ties}, k = {k}, {max_points} points"
    return noted(course, key, lambda: _found(problem, k, max_points, ties, course, key))


def _found(problem: Problem, k: int, max_points: int, ties: Ties, course: Course, key: str) -> ExactHorizon:
    greedy = GoalChoices(problem, k, check=course.check)

    def attempt(m: int) -> Attempt[Success]:
        success = compared_with_half(lambda left_out: greedy.success(m, left_out, least=0.5, ties=ties))
        return Attempt(True if success.low >= 0.5 else None if success.high >= 0.5 else False, success, success.points)

    search = resumed(course, key, LeastM(attempt, before=watched(course, key, k)))
    try:
        _take_steps(search, max_points)
        if course.further and search.undecided is None:
            search.verify(None)
        note_search(course, key, k, search)
        if search.m is None or search.found is None:
            tried = f"success stays below 1/2 for every m tried up to {search.failing}; larger m were not tried"
            return ExactHorizon(k, reason=tried)
        success = search.found.evidence.or_closer(greedy.success(search.m, SHOWN_WITHOUT, ties=ties))
    except OutOfTimeError:
        return unfinished(k, search, problem, course)
    return ExactHorizon(
        k=k,
        m=search.m,
        success_probability=success.middle,
        error=success.error,
        smallest_m_verified=search.is_least,
        reason=_why_not_least(search),
        witness=likeliest_failure(problem, success),
        least_possible_m=search.num_failing + 1,
    )


def _take_steps(search: LeastM[Success], max_points: int) -> None:
    """Fourfold m until one suffices, bisection, and every m that was passed over."""

    def is_close(failing: int, m: int) -> bool:
        return m - failing <= (1 if search.points < CHEAP_POINTS else max(1, m // PRECISION))

    def middle(failing: int, m: int) -> int:
        return halfway(failing, m) if m <= 2 * failing else geometric_mean(failing, m)

    search.run(
        lambda: search.grow(lambda m: max(1, 4 * m), MAX_M, max_points=max_points),
        lambda: search.narrow(is_close, middle=middle),
        lambda: search.verify(min(SCAN_POINTS, 10 * max_points)),
    )


def _why_not_least(search: LeastM[Success]) -> str | None:
    if search.undecided is not None:
        return f"the success probability at m = {search.undecided} is too close to 1/2 to decide"
    return None if search.is_least else NOT_TRIED
