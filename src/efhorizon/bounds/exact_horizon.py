"""The exact effective horizon (Definition 5.2): the least m with which GORP(k, m) succeeds at least half the time.

    H_k = k + log_A m_k,    m_k = min { m : P(GORP(k, m) returns an optimal policy) >= 1/2 }

The paper bounds m_k; here it is computed. The law of a rollout's return lives on the lattice of reward units
(`planning/returns.py`), the sum of m of them is its convolution power (`_tails_sums.py`), the chance of each of the A^k
sequences to have the largest sum is one integral (`_choice_exact.py`), and success follows by the recursion

    P(success | t, s) = sum_{a optimal} P(a chosen | t, s) P(success | t + 1, f(s, a)).

Convention: among several sequences with the largest mean, GORP draws one uniformly (the pseudocode leaves it open).
An action that begins more of the tied sequences is then chosen more often.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from efhorizon.bounds.appendix_c.failure_bound import FailureBound
from efhorizon.gorp.backward import GreedyChoices
from efhorizon.gorp.decisions import TooManySequencesError, choices
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.fractions import affordable, success_fraction
from efhorizon.gorp.success import SHOWN_WITHOUT, Success, told_from_half
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.policies import exploration_policy as checked_policy
from efhorizon.planning.returns import NoLatticeError
from efhorizon.planning.timeline import Timeline

MAX_M = 100_000
PATIENT_M = 1_000_000_000  # the same where some m must suffice
MAX_SEQUENCES = 1 << 22  # of all choices, to keep: two or three gigabytes
FULL_POINTS = 5_000_000  # lattice points of one m up to which no choice is left out: half a second
SCAN_POINTS = 100_000_000  # lattice points over which every m is tried, some seconds; beyond, bisection
MAX_POINTS = 100_000_000  # lattice points of one m up to which a larger one is tried: ten seconds
PATIENT_POINTS = 1_000_000_000  # the same where some m must suffice: a minute or two
CHEAP_POINTS = 10_000_000  # of one m: bisection then ends with two neighbouring m, else with one part in PRECISION
PRECISION = 100
VERIFY_POINTS = 1_000_000_000  # lattice points over which the m passed over are tried: a minute or two
_HOPELESS = 0.499  # a bound on success: below 1/2 by more than all rounding


@dataclass(frozen=True)
class Witness:
    """Where GORP fails most: the chance that its first action that is not optimal is taken here."""

    time: int
    state: int
    failure_probability: float


@dataclass(frozen=True)
class ExactHorizon:
    """m_k, with the success probabilities on both sides of the threshold."""

    k: int
    m: int | None  # None where no m was found; `reason` says why
    success_probability: float | None  # at m, or at the largest m tried
    previous_success_probability: float | None  # at m - 1; None where m is 1
    error: float | None  # bound on the error of both
    smallest_m_verified: bool  # every smaller m was tried; else m is the least between two that were
    reason: str | None
    witness: Witness | None
    least_possible_m: int | None = 1  # every smaller m was tried and fails; None where every m does


class _UndecidedError(Exception):
    """Success is too close to 1/2."""


def exact_horizon(
    timeline: Timeline,
    k: int,
    *,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
    gamma: float = 1.0,
    max_m: int = MAX_M,
    max_points: int = MAX_POINTS,
) -> ExactHorizon:
    """The least m up to `max_m` with which GORP(k, m) returns an optimal policy with probability at least 1/2.

    Success need not grow with m, so every m is tried from 1 on while that is cheap. After that m is doubled until it
    suffices or takes more than `max_points` lattice points, and bisection follows; it can miss a smaller m only if
    success crosses 1/2 more than once in between. The m that were passed over are tried then; if they are too many,
    `smallest_m_verified` is False. Where no m can succeed, that is proved by Bennett's inequality if possible. Every
    comparison with 1/2 holds with a proven error bound; where it cannot, success is computed as a fraction.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    explorer = checked_policy(timeline.mdp, exploration_policy)
    try:
        greedy = _Greedy(timeline, k, explorer, gamma)
    except (NoLatticeError, TooManySequencesError) as error:
        return _without(k, str(error))
    limit = greedy.hopeless_from(max_m)
    try:
        m, success, last, num_failing = _least(greedy, max_m if limit is None else max(1, limit - 1), max_points)
    except _UndecidedError as error:
        return _without(k, str(error))
    least_possible_m: int | None = num_failing + 1
    if m is not None:
        success = success.or_closer(greedy.success(m))
        before = greedy.success(m - 1) if m > 1 else None
        return _result(timeline, k, m, success, before, m == least_possible_m, None, least_possible_m)
    verified = num_failing == last
    reason = f"success stays below 1/2 for every m tried up to {last}"
    if limit is not None:
        which = "all m" if verified else "all m tried"
        reason = f"success stays below 1/2 for {which} below {limit}, and provably from there on"
        if limit == 1:
            reason = "success stays below 1/2 for every m, provably"
        least_possible_m = None if verified else least_possible_m
    elif last < max_m:
        reason += "; larger m need too many lattice points"
    return _result(timeline, k, None, success, None, verified, reason, least_possible_m)


class _Greedy:
    """GORP's success for every m: of all choices while they are few, else where it is likely to be."""

    def __init__(self, timeline: Timeline, k: int, explorer: ExplorationPolicy, gamma: float) -> None:
        self._explorer = explorer
        self._forward = ForwardChoices(timeline, k, explorer, gamma=gamma)
        self._options = choices(timeline, k, gamma=gamma) if self._forward.num_sequences <= MAX_SEQUENCES else None
        if self._options is not None:
            self._laws = self._forward.laws_of(self._options.group_ends)
            self._kept = GreedyChoices(self._options, self._laws)

    def told_from_half(self, m: int, *, at_least: float = 0.0) -> Success:
        """Success; where that would take long, with as few choices left out as it takes to compare it with 1/2."""
        if self._all_at_once(m):
            return self._kept.success(m)
        return told_from_half(lambda left_out: self._forward.success(m, left_out, least=0.5), at_least=at_least)

    def success(self, m: int) -> Success:
        """Success; where that would take long, to two digits."""
        return self._kept.success(m) if self._all_at_once(m) else self._forward.success(m, SHOWN_WITHOUT)

    def suffices(self, m: int, success: Success) -> bool:
        """Whether it is at least 1/2, in fractions if floats cannot tell."""
        if success.low < 0.5 <= success.high:
            if self._options is None or not affordable(self._options, self._laws, self._explorer, m):
                raise _UndecidedError(
                    f"the success probability at m = {m} is too close to 1/2 to be told apart from it"
                )
            return success_fraction(self._options, m) * 2 >= 1
        return success.low >= 0.5

    def hopeless_from(self, max_m: int) -> int | None:
        """An m up to max_m from which on no m can succeed half the time; None where there is no proof."""
        if self._options is None:
            return None
        return _hopeless_from(FailureBound(self._options, self._laws.moments()), max_m)

    def _all_at_once(self, m: int) -> bool:
        return self._options is not None and self._kept.points(m) <= FULL_POINTS


def _hopeless_from(problem: FailureBound, max_m: int) -> int | None:
    """An m up to max_m from which on no m can succeed half the time; None where there is no proof."""
    if problem.success_limit(max_m) >= _HOPELESS:
        return None
    possible, hopeless = 0, max_m
    while hopeless - possible > 1:
        middle = (possible + hopeless) // 2
        if problem.success_limit(middle) < _HOPELESS:
            hopeless = middle
        else:
            possible = middle
    return hopeless


def _least(greedy: _Greedy, max_m: int, max_points: int) -> tuple[int | None, Success, int, int]:
    """The least m that suffices and success there, the last m tried, and up to which m all were tried and fail."""
    m, points = 1, 0
    while True:
        success = greedy.told_from_half(m)
        points += success.points
        if greedy.suffices(m, success):
            return m, success, m, m - 1
        if m >= max_m:
            return None, success, m, m
        if points > SCAN_POINTS:
            break
        m += 1
    failing = num_scanned = m
    while failing < max_m and success.points < max_points:
        m = min(max_m, 2 * failing)
        success = greedy.told_from_half(m)
        if greedy.suffices(m, success):
            break
        failing = m
    else:
        return None, success, failing, num_scanned
    while m - failing > 1 and success.points < CHEAP_POINTS:
        middle = (m + failing) // 2
        attempt = greedy.told_from_half(middle)
        if greedy.suffices(middle, attempt):
            m, success = middle, attempt
        else:
            failing = middle
    while m - failing > max(1, m // PRECISION):
        middle = (m + failing) // 2
        attempt = greedy.told_from_half(middle, at_least=SHOWN_WITHOUT)
        if attempt.low >= 0.5:
            m, success = middle, attempt
        else:  # or cannot be told from 1/2 soon, and does not count either
            failing = middle
    points = 0
    for smaller in range(num_scanned + 1, m):
        if points + (m - smaller) * success.points // 2 > VERIFY_POINTS:  # a smaller m takes less, mostly
            return m, success, m, smaller - 1
        attempt = greedy.told_from_half(smaller)
        points += attempt.points
        if greedy.suffices(smaller, attempt):
            return smaller, attempt, smaller, smaller - 1
    return m, success, m, m - 1


def _result(
    timeline: Timeline,
    k: int,
    m: int | None,
    success: Success,
    before: Success | None,
    verified: bool,
    reason: str | None,
    least_possible_m: int | None,
) -> ExactHorizon:
    pair = success.worst_pair
    return ExactHorizon(
        k=k,
        m=m,
        success_probability=success.middle,
        previous_success_probability=None if before is None else before.middle,
        error=max(found.error for found in (success, before) if found is not None),
        smallest_m_verified=verified,
        reason=reason,
        witness=Witness(timeline.time_of(pair), int(timeline.states[pair]), success.worst_failure),
        least_possible_m=least_possible_m,
    )


def _without(k: int, reason: str) -> ExactHorizon:
    return ExactHorizon(k, None, None, None, None, False, reason, None)
