"""What the rewards of a table are measured in: the best return minus the worst."""

from __future__ import annotations

from efhorizon.planning.problem import Problem

NOTHING_TO_LEARN = "every action sequence earns the same"


def return_range(problem: Problem) -> float:
    """V*_1(s_1) minus what the worst action sequence gets, in reward units; 0 where there is nothing to learn."""
    best = problem.optimal.values.numbers[0]
    return float(best - problem.worst_number)
