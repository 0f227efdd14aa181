"""Analyses: how hard a table is for RL, and why."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

from numpy.typing import ArrayLike

from efhorizon.bounds import analysis as bounds
from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.course import Course
from efhorizon.bounds.unfinished import AnytimeAnalysis
from efhorizon.gorp.ties import Ties
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.problem import DEFAULT_MAX_K
from efhorizon.reasons.why import explained
from efhorizon.study.kept_analysis import keep_analysis


def analyze(
    mdp: TabularMDP,
    *,
    gamma: float = 1.0,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
    max_k: int = DEFAULT_MAX_K,
    exact: bool = True,
    reward_bounds: tuple[float, float] | None = None,
    ties: Ties | Literal["all"] = "uniform",
    max_minutes: float | None = None,
    course: Course | None = None,
    results: str | Path | None = None,
) -> Analysis | AnytimeAnalysis:
    """Every bound of the paper and of the registry, for the uniform exploration policy or a given one, and in `why` the
    states where GORP loses its chance, with the kind of difficulty (docs/why.md).

    `exact=False` leaves out the exact effective horizon, which takes the longest on large tables. `ties` is the rule
    with which GORP breaks ties in the exact effective horizon (`gorp/ties.py`); "all" is uniform ties, and beside them
    the others in `by_ties`. A table with unexplored states gives intervals instead of numbers; `reward_bounds` says
    between what their rewards lie.

    `max_minutes` is a time budget for the exact effective horizon. When it is used up, what is known is returned:
    bounds, with the reason in `effective_horizon.reason`, and `is_finished` is False. Time that is left goes to what
    takes too long without a budget. A `course` in its place also receives progress, and goes on from what earlier calls
    have found.

    With a folder `results`, such as "results", the analysis is kept there too, beside the runs of `ef.train`, for
    `ef.report`.
    """
    course = bounds.course_of(max_minutes, course)
    found: Analysis | AnytimeAnalysis
    if mdp.unexplored is not None:
        found = bounds.analyze(
            mdp, gamma=gamma, exploration_policy=exploration_policy, reward_bounds=reward_bounds, ties=ties
        )
    else:
        given = bounds.prepared(
            mdp, course, gamma=gamma, exploration_policy=exploration_policy, max_k=max_k, exact=exact
        )
        found = explained(given, bounds.analysis_of(given, ties, course), course)
    if results is not None:
        refused = keep_analysis(Path(results), mdp, found, max_k=max_k, is_uniform=exploration_policy is None)
        if refused is not None:
            warnings.warn(refused, stacklevel=2)
    return found
