"""Where GORP(1, m) makes its first mistake, by playing it: for MDPs whose returns lie on no lattice that can be held.

The frequencies of N runs take the place of chances: the result has the form of the exact one, and its success is the
share of runs that succeeded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.tabular.gorp import gorp
from efhorizon.gorp.ties import Ties
from efhorizon.planning.problem import Problem
from efhorizon.reasons.losses import LEFT_OUT, OVER, WRONG, Losses

RUNS = 400
RESAMPLES = 40  # their least and largest figures bound 95%
MAX_STEPS = 200_000_000  # of all runs together: some seconds
_RUNS_A_CALL = 50


def affordable_m(problem: Problem) -> int:
    """The largest m with which RUNS runs are affordable; 0 if there is none."""
    mdp = problem.mdp
    return MAX_STEPS // (mdp.horizon**2 * mdp.num_actions * RUNS)


def simulated_losses(
    problem: Problem, m: int, *, ties: Ties = "uniform", check: Callable[[], None] | None = None, seed: int = 0
) -> tuple[Losses, list[Losses]]:
    """GORP(1, m) from RUNS runs, and from RESAMPLES samples of them, drawn with replacement.

    `check` may end it between runs by an exception.
    """
    rng = np.random.default_rng(seed)
    played: list[NDArray[np.int32]] = []
    while len(played) * _RUNS_A_CALL < RUNS:
        if check is not None:
            check()
        found = gorp(problem.mdp, k=1, m=m, runs=_RUNS_A_CALL, rng=rng, exploration_policy=problem.policy, ties=ties)
        played.append(found.actions)
    actions = np.concatenate(played)
    resampled = []
    for _ in range(RESAMPLES):
        if check is not None:
            check()
        resampled.append(_counted(problem, m, actions[rng.integers(len(actions), size=len(actions))]))
    return _counted(problem, m, actions), resampled


def _counted(problem: Problem, m: int, actions: NDArray[np.int32]) -> Losses:
    """The frequencies of what runs did, as long as they made no mistake; actions [N, T]."""
    line, optimal = problem.timeline, problem.optimal.actions
    place = np.zeros(len(actions), np.int64)  # the pair of each run; -1: over, or lost
    pairs, counts = [], []
    for time in range(problem.mdp.horizon):
        alive = np.flatnonzero(place >= 0)
        if not len(alive):
            break
        here, own = np.unique(place[alive], return_inverse=True)
        table = np.zeros((len(here), problem.mdp.num_actions))
        np.add.at(table, (own, actions[alive, time]), 1.0)
        pairs.append(here)
        counts.append(table)
        taken = actions[alive, time]
        place[alive] = np.where(optimal[place[alive], taken], line.successors[place[alive], taken], -1)
    visited, numbers = np.concatenate(pairs), np.concatenate(counts)
    successors = line.successors[visited]
    number = np.minimum(np.searchsorted(visited, successors), len(visited) - 1)
    following = np.where(visited[number] == successors, number, LEFT_OUT)
    following = np.where(successors >= 0, following, OVER)
    following = np.where(optimal[visited], following, WRONG)
    total = numbers.sum(axis=1)
    return Losses(line, m, visited, total / len(actions), numbers / total[:, None], following)
