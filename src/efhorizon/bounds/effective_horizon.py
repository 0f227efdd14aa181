"""The effective horizon: the exponent in the sample complexity of GORP."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from efhorizon.bounds.appendix_c.bound import AppendixCBound, appendix_c_bound
from efhorizon.bounds.course import Course
from efhorizon.bounds.exact_horizon import (
    MAX_M,
    MAX_POINTS,
    PATIENT_M,
    PATIENT_POINTS,
    ExactHorizon,
    LikeliestFailure,
    exact_horizon,
)
from efhorizon.bounds.goal_horizon import goal_horizon
from efhorizon.bounds.goal_sufficient import NOT_TRIED, goal_sufficient_m
from efhorizon.bounds.mistake_horizon import mistake_horizon
from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.bounds.theorem_horizon import theorem_horizon
from efhorizon.gorp.exact_success import MAX_SEQUENCES
from efhorizon.gorp.ties import Ties
from efhorizon.planning.problem import Problem, effective_horizon_of
from efhorizon.planning.sweeps import Witness

_SHARE = 2 / 3  # of the time that is left for a k, so that others get some
_EXACT_SHARE = 0.9  # of that for exact figures, so that Appendix C gets some
MAX_WORK_BESIDE_EXACT = 1 << 22  # sequences times standard deviations of their sums, to do Appendix C as well: seconds

_Place = tuple[int | None, int | None]  # time and state


@dataclass(frozen=True)
class HorizonAtK:
    """How many episodes m GORP needs for each action sequence, for one k; H_k = k + log_A m."""

    k: int
    exact_m: int | None
    upper_m: int | None  # the least of all upper bounds
    theorem_m: int | None  # by Theorem 5.4
    method: str | None  # what gave the m that is used: "exact", or the name of the upper bound
    exact_reason: str | None
    upper_reason: str | None
    theorem_reason: str | None
    witness: LikeliestFailure | Witness | _Place | None  # of the method
    least_possible_m: int | None = 1  # exact success rules out every smaller one; None where it rules out all
    is_finished: bool = True  # False where time was up

    @property
    def m(self) -> int | None:
        return self.upper_m if self.exact_m is None else self.exact_m


@dataclass(frozen=True)
class EffectiveHorizon:
    value: float | None
    k: int | None
    m: int | None
    kind: Literal["exact", "upper"] | None
    by_k: tuple[HorizonAtK, ...]
    sample_complexity: int | None
    reason: str | None = None
    at_least: float = 1.0  # the effective horizon is not below it

    @property
    def is_finished(self) -> bool:
        """Whether no k was cut short by a time budget; if one was, `reason` says so."""
        return all(entry.is_finished for entry in self.by_k)

    @property
    def why_not_exact(self) -> str | None:
        """Why it is an upper bound, or not known at all."""
        if self.kind == "exact" or self.k is None:
            return self.reason
        best = self.by_k[self.k - 1]
        return best.exact_reason if best.exact_m is None else "a k that was not computed may do with fewer episodes"


@sample_complexity_bound("effective_horizon", title="effective horizon, GORP (Lemma 5.3)")
def effective_horizon(problem: Problem) -> EffectiveHorizon:
    """Definition 5.2: H = min_k H_k with H_k = k + log_A m_k, where m_k is the least m for which GORP with parameters k
    and m returns an optimal policy with probability at least 1/2. Lemma 5.3: T^2 A^H steps then suffice.

    For each k up to `max_k`: the exact m_k where it can be computed, else the least upper bound (Appendix C, Theorem
    5.4 or its tightened form, in goal MDPs Theorem B.4). The result is "exact" if no k left out or only bounded can be
    better: H_k is at least k + log_A m if every smaller m was tried and fails.
    """
    return effective_horizon_on(problem, Course())


def effective_horizon_on(problem: Problem, course: Course) -> EffectiveHorizon:
    """The same, with progress and perhaps within a time budget.

    Where time is left in the end and may be used, every m is tried that limits on work had passed over.
    """
    found = _over_k(problem, course)
    if course.may_go_further and found.is_finished and found.kind != "exact":
        with course.going_further():
            found = _over_k(problem, course)
    return found


def _over_k(problem: Problem, course: Course) -> EffectiveHorizon:
    by_k = []
    for k in range(1, problem.max_k + 1):
        with course.share(_SHARE if k < problem.max_k else 1.0):
            by_k.append(_at_k(problem, k, *_from_distributions(problem, k, course)))
    return _least(problem, tuple(by_k), course)


def effective_horizon_with(
    problem: Problem, ties: Ties, *, max_points: int = PATIENT_POINTS, course: Course | None = None
) -> EffectiveHorizon:
    """The same for another rule for ties, with at most so many lattice points for one m.

    Theorems 5.4 and B.4 hold however ties are broken; Appendix C is done in the form that does, and only where no exact
    m is found and no work is spared. For k > 1 no m is tried that would be no better than a smaller k.
    """
    course = course or Course()
    if ties == "uniform":
        return effective_horizon_on(problem, course)
    num_actions, by_k = problem.mdp.num_actions, list[HorizonAtK]()
    for k in range(1, problem.max_k + 1):
        best = min((num_actions**entry.k * entry.m for entry in by_k if entry.m is not None), default=None)
        most = None if best is None else (best - 1) // num_actions**k
        if most == 0:
            exact, tight = ExactHorizon(k, reason="no m is better than a smaller k"), AppendixCBound(k)
        else:
            with course.share(_SHARE if k < problem.max_k else 1.0):
                exact, tight = _with_ties(problem, k, ties, most, max_points, course)
        by_k.append(_at_k(problem, k, exact, tight))
    return _least(problem, tuple(by_k), course)


def horizon_of_searches(
    problem: Problem, searches: Sequence[ExactHorizon], course: Course | None = None
) -> EffectiveHorizon:
    """The effective horizon from what a search has found for k = 1, 2, ..., and the theorems; without Appendix C."""
    found = [
        _at_k(problem, exact.k, exact, AppendixCBound(exact.k, reason=exact.reason or "not tried in a quick look"))
        for exact in searches
    ]
    return _least(problem, tuple(found), course or Course())


def _least(problem: Problem, by_k: tuple[HorizonAtK, ...], course: Course) -> EffectiveHorizon:
    """The least over k."""
    found = [entry for entry in by_k if entry.m is not None]
    stopped = None if all(entry.is_finished for entry in by_k) else course.why_stopped
    if not found:
        reason = f"no bound for k up to {problem.max_k}: {stopped or by_k[0].upper_reason or by_k[0].theorem_reason}"
        return EffectiveHorizon(None, None, None, None, by_k, None, reason)
    num_actions, horizon = problem.mdp.num_actions, problem.mdp.horizon
    best = min(found, key=lambda entry: (num_actions**entry.k * _m(entry), entry.k))
    value = effective_horizon_of(num_actions, best.k, _m(best))
    is_exact = best.exact_m is not None and _none_is_better(problem, by_k, num_actions**best.k * _m(best))
    return EffectiveHorizon(
        value=value,
        k=best.k,
        m=best.m,
        kind="exact" if is_exact else "upper",
        by_k=by_k,
        sample_complexity=horizon**2 * num_actions**best.k * _m(best),
        reason=None if is_exact else stopped,
        at_least=value if is_exact else min(value, _at_least(problem, by_k)),
    )


def _at_least(problem: Problem, by_k: tuple[HorizonAtK, ...]) -> float:
    """What the effective horizon is not below: the m of each k that are ruled out, and a k that was not looked at."""
    possible = [(entry.k, entry.exact_m or entry.least_possible_m) for entry in by_k]
    least = [effective_horizon_of(problem.mdp.num_actions, k, m) for k, m in possible if m is not None]
    least += [problem.max_k + 1.0] if problem.max_k < problem.mdp.horizon else []
    return min(least, default=1.0)


def _none_is_better(problem: Problem, by_k: tuple[HorizonAtK, ...], episodes: int) -> bool:
    """Whether no k can do with fewer than so many episodes A^k m, be it one whose m_k is not known, or a larger one."""
    num_actions = problem.mdp.num_actions
    rivals = [entry for entry in by_k if entry.exact_m is None and entry.least_possible_m is not None]
    least = [num_actions**entry.k * (entry.least_possible_m or 1) for entry in rivals]
    least += [num_actions ** (problem.max_k + 1)] if problem.max_k < problem.mdp.horizon else []
    return all(episodes <= each for each in least)


def _m(entry: HorizonAtK) -> int:
    assert entry.m is not None
    return entry.m


def _at_k(problem: Problem, k: int, exact: ExactHorizon, tight: AppendixCBound) -> HorizonAtK:
    theorem = theorem_horizon(problem, k)
    exact_m = exact.m if exact.smallest_m_verified else None
    uppers: list[tuple[int, str, LikeliestFailure | Witness | _Place | None]] = []
    if exact.m is not None and exact_m is None:
        uppers.append((exact.m, "exact laws, by bisection", exact.witness))
    elif exact_m is not None and tight.m is None:
        uppers.append((exact_m, "exact", exact.witness))
    if tight.m is not None:
        uppers.append((tight.m, f"Appendix C ({tight.method})", (tight.witness_time, tight.witness_state)))
    if theorem.m is not None:
        uppers.append((theorem.m, "Theorem 5.4", theorem.witness))
    mistakes = mistake_horizon(problem)
    if k in mistakes.by_k:
        uppers.append((mistakes.by_k[k], "Theorem 5.4 tightened", mistakes.witnesses[k]))
    goal = goal_horizon(problem) if k == 1 else None
    if goal is not None and goal.m is not None:
        uppers.append((goal.m, "Theorem B.4", goal.witness))
    upper = min(uppers, key=lambda bound: bound[0]) if uppers else None
    method = "exact" if exact_m is not None else upper[1] if upper else None
    return HorizonAtK(
        k=k,
        exact_m=exact_m,
        upper_m=upper[0] if upper else None,
        theorem_m=theorem.m,
        method=method,
        exact_reason=exact.reason or (None if exact.smallest_m_verified else NOT_TRIED),
        upper_reason=tight.reason,
        theorem_reason=theorem.reason,
        witness=exact.witness if exact_m is not None else upper[2] if upper else None,
        least_possible_m=exact.least_possible_m,
        is_finished=exact.is_finished and tight.is_finished,
    )


def _from_distributions(problem: Problem, k: int, course: Course) -> tuple[ExactHorizon, AppendixCBound]:
    """What the distributions of returns show: the exact m or one that suffices, and Appendix C's bound where it can add
    to that.

    Goal MDPs have a quicker way of their own, which keeps no sequences; but an m at which success is 1/2 to all digits
    is decided in fractions.
    """
    num_sequences = _num_sequences(problem, k)
    if problem.exact and problem.is_goal_mdp and problem.gamma == 1.0:
        with _looking(problem, k, course):
            found = goal_sufficient_m(problem, k, course=course)
        work = num_sequences * math.isqrt(found.m or 1)
        if num_sequences > MAX_SEQUENCES or (found.m is not None and work > MAX_WORK_BESIDE_EXACT):
            return found, _no_appendix_c(k, num_sequences)
        if found.smallest_m_verified or found.reason == NOT_TRIED or not found.is_finished:
            return found, _appendix_c(problem, k, course, sufficient_m=found.m)
    exact = _exact(problem, k, course)
    if exact.m is not None and num_sequences > MAX_SEQUENCES:
        return exact, _no_appendix_c(k, num_sequences)
    return exact, _appendix_c(problem, k, course, sufficient_m=exact.m)


def _with_ties(
    problem: Problem, k: int, ties: Ties, most: int | None, max_points: int, course: Course
) -> tuple[ExactHorizon, AppendixCBound]:
    """The same for another rule: an m up to `most`, and Appendix C where there is none but work may be done."""
    num_sequences = _num_sequences(problem, k)
    is_goal = problem.is_goal_mdp and problem.gamma == 1.0 and ties != "adversarial"
    exact = ExactHorizon(k, reason="not asked for")
    if problem.exact and not is_goal and max_points < PATIENT_POINTS and num_sequences > MAX_SEQUENCES:
        return ExactHorizon(k, reason=f"not affordable: {num_sequences:,} action sequences"), AppendixCBound(k)
    if problem.exact and is_goal and (most is None or num_sequences > MAX_SEQUENCES):
        with _looking(problem, k, course, ties):
            exact = goal_sufficient_m(problem, k, max_points=max_points, ties=ties, course=course)
    if problem.exact and exact.is_finished and not (exact.smallest_m_verified or exact.reason == NOT_TRIED):
        exact = _exact(problem, k, course, ties, most, max_points)
    if exact.m is not None or most is not None or max_points < PATIENT_POINTS or num_sequences > MAX_SEQUENCES:
        return exact, AppendixCBound(k, reason="left out")
    return exact, _appendix_c(problem, k, course, uniform_ties=False)


@contextmanager
def _looking(problem: Problem, k: int, course: Course, ties: Ties = "uniform") -> Iterator[None]:
    """Look for an exact m: say so, and leave some time for Appendix C."""
    rule = "" if ties == "uniform" else f", ties {ties}"
    course.phase(f"exact horizon, k = {k} of {problem.max_k}{rule}")
    with course.share(_EXACT_SHARE):
        yield


def _appendix_c(
    problem: Problem, k: int, course: Course, *, sufficient_m: int | None = None, uniform_ties: bool = True
) -> AppendixCBound:
    course.phase(f"Appendix C, k = {k} of {problem.max_k}")
    return appendix_c_bound(problem, k, sufficient_m=sufficient_m, uniform_ties=uniform_ties, course=course)


def _num_sequences(problem: Problem, k: int) -> int:
    return int(problem.optimal.reached.sum()) * int(problem.mdp.num_actions**k)


def _exact(
    problem: Problem,
    k: int,
    course: Course,
    ties: Ties = "uniform",
    most: int | None = None,
    points: int = PATIENT_POINTS,
) -> ExactHorizon:
    if not problem.exact:
        return ExactHorizon(k, reason="not asked for")
    sweep = problem.sweep(k)
    most_m = MAX_M
    if sweep is not None and sweep.solvable:  # some m suffices, by the law of large numbers: only optimal actions tie
        most_m = PATIENT_M
    else:
        points = min(points, MAX_POINTS)
    with _looking(problem, k, course, ties):
        return exact_horizon(problem, k, max_m=min(most_m, most or most_m), max_points=points, ties=ties, course=course)


def _no_appendix_c(k: int, num_sequences: int) -> AppendixCBound:
    return AppendixCBound(k, reason=f"left out: {num_sequences:,} action sequences would take long")
