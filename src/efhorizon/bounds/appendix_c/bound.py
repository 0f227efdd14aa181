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

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from efhorizon.bounds.appendix_c.failure_bound import FailureBound
from efhorizon.gorp.decisions import TooManySequencesError, choices
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.policies import exploration_policy as checked_policy
from efhorizon.planning.returns import return_moments
from efhorizon.planning.timeline import Timeline

MAX_M = 10**100
METHODS = ("binomial", "Berry-Esseen", "Bernstein", "Bennett")
RELATIVE_PRECISION = 1e-4  # of the binary search; 1/100 in the paper
MAX_GRID_WORK = 300_000  # groups of sequences with grids: some minutes for the whole search
MAX_GRID_WORK_BESIDE_EXACT = 2_000  # a second or two
_THRESHOLD = 0.5 - 1e-9  # 1/2, less more than all rounding


@dataclass(frozen=True)
class AppendixCBound:
    """An upper bound on m_k, the failure bound there, and the time and state that contribute most to it."""

    k: int
    m: int | None  # None where no m up to 10^100 is certified; `reason` says why
    failure_bound: float | None  # at m, or at 10^100
    method: str | None  # at the witness
    methods: dict[str, int]  # in how many choices each method was the best
    witness_time: int | None
    witness_state: int | None
    reason: str | None


def appendix_c_bound(
    timeline: Timeline,
    k: int,
    *,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
    gamma: float = 1.0,
    sufficient_m: int | None = None,
) -> AppendixCBound:
    """The least m found, up to 10^100, at which GORP(k, m) provably fails with probability below 1/2.

    Binary search on a logarithmic scale: the least m exactly below 10,000, to a relative precision of 1e-4 above. Where
    grids of distribution functions would take too long, Bennett's inequality alone serves. Where the exact laws have
    shown an m to suffice, the search starts there, and is left out if grids would take long: it has nothing to win.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    explorer = checked_policy(timeline.mdp, exploration_policy)
    try:
        options = choices(timeline, k, gamma=gamma)
    except TooManySequencesError as error:
        return AppendixCBound(k, None, None, None, {}, None, None, str(error))
    moments = return_moments(timeline, options.group_ends, explorer, gamma=gamma)
    problem = FailureBound(options, moments)
    if sufficient_m is not None and problem.grid_work > MAX_GRID_WORK_BESIDE_EXACT:
        reason = f"left out: m = {sufficient_m} suffices by exact laws, and {problem.grid_work:,} grids would take long"
        return AppendixCBound(k, None, None, None, {}, None, None, reason)
    if problem.grid_work > MAX_GRID_WORK:
        problem = problem.without_grids()
    m = least_certified(problem, from_m=sufficient_m or 1)
    solution = problem(MAX_M if m is None else m)
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
        reason=None if m is not None else "the failure bound stays above 1/2 for every m up to 10^100",
    )


def least_certified(problem: FailureBound, from_m: int = 1) -> int | None:
    """Squares upward from `from_m` until one is certified, then bisection of the logarithm, and of m once close."""
    if problem(MAX_M).failure > _THRESHOLD:
        return None
    failing, m = from_m - 1, from_m
    while m < MAX_M and problem(m).failure > _THRESHOLD:
        failing, m = m, min(max(2 * m, m * m), MAX_M)
    while m - failing > max(1, int(RELATIVE_PRECISION * failing)):
        middle = (m + failing) // 2 if m < 2 * failing else math.isqrt(m * failing)
        middle = max(middle, failing + 1)
        if problem(middle).failure <= _THRESHOLD:
            m = middle
        else:
            failing = middle
    return m
