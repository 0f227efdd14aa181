"""Which m the next runs of GORP get: first ever more episodes, then as many as tell most about the least m.

A run with m costs m times as much as a run with 1. The first runs have 1, 2, 4, ... episodes, up to where they have
taken `CLIMB` of the budget: so the largest m that is tried depends on the budget, and not on a return that only looks
like the best one because nothing better was found yet. The others are spread around the m at which success is most
likely 1/2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from efhorizon.diagnose.least_episodes import Interval, crossing, least_episodes

CLIMB = 0.3  # of the budget, for runs with ever larger m
BATCH = 8  # runs that are chosen together: the same however many processes there are
_SPREAD = (1.0, 0.6, 1.6, 0.8, 1.25, 0.45, 2.0, 1.0)  # times the m where success is most likely 1/2
_SETTLED = 1.2  # an interval so narrow is not improved any more
_MOST_RUNS = 400
_MARGIN = 1.5
_MOST_DOUBLINGS = 40


@dataclass(frozen=True)
class Run:
    """One complete run of GORP(k, m)."""

    m: int
    total: float  # the return
    steps: int  # of the environment


def next_doses(runs: Sequence[Run], best: float, budget: float, steps_of_one: float) -> list[int]:
    """The m of the next runs, at most `BATCH`; none where the budget is spent or m is known well.

    `steps_of_one` is what a run with m = 1 takes, as far as known; `budget` is for these runs.
    """
    spent = sum(run.steps for run in runs)
    left = (budget - spent) / _MARGIN  # runs differ in what they take
    ladder = _ladder(runs, steps_of_one, budget)
    if ladder:
        affordable: list[int] = []
        for dose in ladder:
            if (sum(affordable) + dose) * steps_of_one <= left:
                affordable.append(dose)
        return affordable[::-1]
    if len(runs) >= _MOST_RUNS or (len(runs) >= 2 * BATCH and interval(runs, best, certain=True).width <= _SETTLED):
        return []
    middle = crossing(*counted(runs, best))
    top = max(run.m for run in runs)
    chosen: list[int] = []
    for factor in _SPREAD:
        dose = max(1, round(min(middle, 2.0 * top) * factor))
        if (sum(chosen) + dose) * steps_of_one <= left:
            chosen.append(dose)
    return chosen


def interval(runs: Sequence[Run], best: float, *, certain: bool = False) -> Interval:
    """The least m with which half of the runs end with the best return."""
    return least_episodes(*counted(runs, best), certain=certain)


def counted(runs: Sequence[Run], best: float) -> tuple[list[int], list[int], list[int]]:
    """Distinct m, and for each the successes and the runs."""
    tried = Counter(run.m for run in runs)
    won = Counter(run.m for run in runs if reaches(run.total, best))
    doses = sorted(tried)
    return doses, [won[m] for m in doses], [tried[m] for m in doses]


def reaches(total: float, best: float) -> bool:
    """Whether a return is the best one; sums of rewards differ in their last digits."""
    return total >= best - 1e-9 * max(1.0, abs(best))


def _ladder(runs: Sequence[Run], steps_of_one: float, budget: float) -> list[int]:
    """The powers of two that are still to be tried: 1 and 2 first, which show what a run takes."""
    tried = {run.m for run in runs}
    top = max(1.0, CLIMB * budget / steps_of_one / 2)
    powers = [1 << step for step in range(_MOST_DOUBLINGS) if 1 << step <= top]
    return [dose for dose in (powers if runs else powers[:2]) if dose not in tried]
