"""An m that suffices in a goal MDP with more choices than can be kept, or more lattice points than can be summed."""

from __future__ import annotations

import math

from efhorizon.bounds.exact_horizon import ExactHorizon, Witness
from efhorizon.gorp.goal import MAX_SEQUENCES, GoalChoices
from efhorizon.gorp.success import SHOWN_WITHOUT, Success, told_from_half
from efhorizon.planning.problem import Problem

MAX_M = 10**18
MAX_POINTS = 1_000_000_000  # lattice points of one m: some minutes
SCAN_POINTS = 400_000_000  # lattice points over which every smaller m is tried: a minute or so
CHEAP_POINTS = 1_000_000  # of one m: then the search goes on until two neighbouring m are told apart
PRECISION = 1000  # else it ends when m is known to one part in so many
NOT_TRIED = "not every smaller m was tried"


def goal_sufficient_m(problem: Problem, k: int) -> ExactHorizon:
    """An m with which GORP(k, m) succeeds at least half the time in a goal MDP, close above one that was not seen to.

    Success is computed from exact laws (`_goal_choices.py`), up to choices that are hardly ever met. m grows by a
    factor of 4 until it suffices, then bisection to one part in a thousand. Smaller m may suffice as well, so this is
    an upper bound on m_k, unless every smaller m can be tried soon.
    """
    if problem.mdp.num_actions**k > MAX_SEQUENCES:
        return _without(k, f"{problem.mdp.num_actions}^{k} sequences are too many to compare one by one")
    greedy = GoalChoices(problem, k)
    failing, m = 0, 1
    while (found := _told_from_half(greedy, m)).low < 0.5:
        if m >= MAX_M or found.points > MAX_POINTS:
            return _without(k, f"success stays below 1/2 for every m tried up to {m}; larger m were not tried")
        failing, m = m, min(4 * m, MAX_M)
    while m - failing > (1 if found.points < CHEAP_POINTS else max(1, m // PRECISION)):
        middle = (m + failing) // 2 if m <= 2 * failing else max(failing + 1, math.isqrt(m * failing))
        attempt = _told_from_half(greedy, middle)
        if attempt.low >= 0.5:
            m, found = middle, attempt
        else:  # or cannot be told from 1/2, and does not count either
            failing = middle
    m, found, reason, least_possible_m = _least(greedy, m, found)
    found = found.or_closer(greedy.success(m, SHOWN_WITHOUT))
    pair = found.worst_pair
    witness = Witness(problem.timeline.time_of(pair), int(problem.timeline.states[pair]), found.worst_failure)
    return ExactHorizon(k, m, found.middle, None, found.error, reason is None, reason, witness, least_possible_m)


def _least(greedy: GoalChoices, m: int, found: Success) -> tuple[int, Success, str | None, int]:
    """The least m that suffices, up to one that does; or that one, why it need not be the least, and what may be."""
    points = 0
    for smaller in range(1, m):
        if points + (m - smaller) * found.points // 2 > SCAN_POINTS:  # a smaller m takes less, mostly
            return m, found, NOT_TRIED, smaller
        attempt = _told_from_half(greedy, smaller)
        points += attempt.points
        if attempt.low >= 0.5:
            return smaller, attempt, None, smaller
        if attempt.high >= 0.5:
            reason = f"the success probability at m = {smaller} is too close to 1/2 to be told apart from it"
            return m, found, reason, smaller
    return m, found, None, m


def _told_from_half(greedy: GoalChoices, m: int) -> Success:
    return told_from_half(lambda left_out: greedy.success(m, left_out, least=0.5))


def _without(k: int, reason: str) -> ExactHorizon:
    return ExactHorizon(k, None, None, None, None, False, reason, None)
