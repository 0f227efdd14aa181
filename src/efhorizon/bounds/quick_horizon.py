"""The effective horizon within a fixed amount of work: for many changed tables in a row, not for one verdict.

    H_k = k + log_A m_k,    m_k = min { m : P(GORP(k, m) returns an optimal policy) >= 1/2 }

The same success as in `exact_horizon.py`, with fewer attempts: m grows from a guess, bisection ends within a few
percent, and all stops once success has been summed over `max_points` lattice points. That is work, not time, so the
result is the same on every machine. It is labelled as ever: "exact" if every smaller m was tried and fails and no other
k can be better, "upper" if an m is only known to suffice.
"""

from __future__ import annotations

from collections.abc import Callable

from efhorizon.bounds.effective_horizon import EffectiveHorizon, horizon_of_searches
from efhorizon.bounds.exact_horizon import ExactHorizon, likeliest_failure
from efhorizon.gorp.decisions import TooManySequencesError
from efhorizon.gorp.forward import ForwardChoices
from efhorizon.gorp.goal import MAX_SEQUENCES_A_CHOICE, GoalChoices
from efhorizon.gorp.least_m import Attempt, LeastM, geometric_mean, halfway
from efhorizon.gorp.success import Success
from efhorizon.planning.problem import Problem
from efhorizon.planning.return_units import NoLatticeError
from efhorizon.planning.threads import threads_if

QUICK_POINTS = 4_000_000  # of one table: a second or two
MAX_M = 10**12
MAX_HOPELESS_M = 1_000  # the same where the law of large numbers promises nothing: greedy actions are not all optimal
_LEFT_OUT = (0.2, 0.02, 0.002)  # chance of the choices left out, until success is above or below 1/2 for certain
_PRECISION = 16  # bisection ends when m is known to one part in so many
_CHEAPER = 4  # times as quick as in goal MDPs are the lattice points of other MDPs, about
_MANY_CHOICES = 1 << 16  # then threads are worth waking, also on a busy machine
_LAYERS = 40  # of distributions of returns, each at its largest, take as much work as there is

_SuccessAt = Callable[[int, float], Success]


class _OutOfWorkError(Exception):
    """The search has had its share."""


class _Work:
    """How much may still be done."""

    def __init__(self, points: int) -> None:
        self.left = points

    def check(self) -> None:
        if self.left <= 0:
            raise _OutOfWorkError

    def attempt(self, success_at: _SuccessAt, cheaper: int) -> Callable[[int], Attempt[Success]]:
        """Whether an m suffices, with as few choices left out as it takes."""

        def attempt(m: int) -> Attempt[Success]:
            points = 0
            for left_out in _LEFT_OUT:
                success = success_at(m, left_out)
                points += success.points // cheaper
                self.left -= success.points // cheaper
                if success.low >= 0.5 or success.high < 0.5:
                    break
            suffices = True if success.low >= 0.5 else False if success.high < 0.5 else None
            return Attempt(suffices, success, points)

        return attempt


def quick_horizon(problem: Problem, *, max_points: int = QUICK_POINTS, guess: int | None = None) -> EffectiveHorizon:
    """The effective horizon with at most about so many lattice points; `guess` is an m for k = 1 to begin near."""
    with threads_if(int(problem.optimal.reached.sum()) >= _MANY_CHOICES):
        return _over_k(problem, max_points, guess)


def _over_k(problem: Problem, max_points: int, guess: int | None) -> EffectiveHorizon:
    work, num_actions = _Work(max_points), problem.mdp.num_actions
    searches: list[ExactHorizon] = []
    best: int | None = None  # the fewest episodes A^k m so far
    for k in range(1, problem.max_k + 1):
        if best is not None and num_actions**k >= best:
            searches.append(ExactHorizon(k, reason="no m is better than a smaller k"))
            continue
        near = guess if k == 1 else None if best is None else best // num_actions**k
        found = _search(problem, k, work, max_points, near or 1)
        searches.append(found)
        if found.m is not None:
            best = min(best or num_actions**k * found.m, num_actions**k * found.m)
    return horizon_of_searches(problem, searches)


def _search(problem: Problem, k: int, work: _Work, max_points: int, near: int) -> ExactHorizon:
    search: LeastM[Success] | None = None
    reason = None
    try:
        work.check()
        success_at, cheaper = _success_at(problem, k, max_points)
        search = LeastM(work.attempt(success_at, cheaper), before=lambda *_: work.check())
        sweep = problem.sweep(k)
        _take_steps(search, near, MAX_M if sweep is not None and sweep.solvable else MAX_HOPELESS_M, work)
    except _OutOfWorkError:
        reason = "it takes more work than a quick look may; `efhorizon analyze` does it"
    except (NoLatticeError, TooManySequencesError) as error:
        reason = str(error)
    if search is None or search.m is None or search.found is None:
        least = 1 if search is None else search.num_failing + 1
        return ExactHorizon(k, reason=reason or "no m was found that suffices", least_possible_m=least)
    success = search.found.evidence
    return ExactHorizon(
        k=k,
        m=search.m,
        success_probability=success.middle,
        error=success.error,
        smallest_m_verified=search.is_least,
        reason=None if search.is_least else reason or "not every smaller m was tried",
        witness=likeliest_failure(problem, success),
        least_possible_m=search.num_failing + 1,
    )


def _success_at(problem: Problem, k: int, max_points: int) -> tuple[_SuccessAt, int]:
    """Success at an m, and how much cheaper its points are than those of goal MDPs."""
    is_small = problem.mdp.num_actions**k <= MAX_SEQUENCES_A_CHOICE
    if problem.is_goal_mdp and problem.gamma == 1.0 and is_small:
        goal = GoalChoices(problem, k)
        return lambda m, left_out: goal.success(m, left_out, least=0.5), 1
    forward = ForwardChoices(problem, k, max_points=max_points // _LAYERS)
    return lambda m, left_out: forward.success(m, left_out, least=0.5), _CHEAPER


def _take_steps(search: LeastM[Success], near: int, max_m: int, work: _Work) -> None:
    """Fourfold m from about half the guess until one suffices, bisection, and every smaller m if work is left."""

    def growth(failing: int) -> int:
        return max(1, near // 2, 4 * failing)

    def is_close(failing: int, m: int) -> bool:
        return m - failing <= max(1, m // _PRECISION)

    def middle(failing: int, m: int) -> int:
        return halfway(failing, m) if m <= 2 * failing else geometric_mean(failing, m)

    search.grow(growth, max_m)
    search.narrow(is_close, middle=middle)
    search.verify(max(0, work.left))
