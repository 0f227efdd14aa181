"""The empirical sample complexity of GORP: T^2 A^k m for the smallest m with which half of the runs succeed.

Section 2 asks for a 50-50 chance of an optimal policy; here at least half of a number of runs must return one. Success
rates are noisy, and need not grow with m (ties may favour small m), so:

- m is increased by at most a half at a time, then found by bisection; it is the smallest one tried that succeeds;
- each m is tried with its own random numbers, so its success rate does not depend on what was tried before;
- m_low is the smallest m whose success rate may be 1/2, m_high the smallest whose rate certainly is, by 95 percent
  Wilson intervals of the rates: the true m lies between them with about that confidence, if rates grow with m;
- `is_monotone` says whether some smaller m did better than a larger one by more than chance explains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.agents.tabular.gorp import gorp_on_task, timesteps_of
from efhorizon.agents.tabular.runs import InvalidSettingError, Runs, check_positive, task
from efhorizon.agents.tabular.tie_order import TieBreaker
from efhorizon.gorp.ties import Ties
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.timeline import timeline
from efhorizon.planning.values import policy_values

RUNS = 101
BUDGET = 100_000_000  # timesteps of one run
_CONFIDENCE = 1.96  # standard errors, 95 percent


@dataclass(frozen=True)
class Trial:
    """How often GORP succeeded with one m."""

    m: int
    num_optimal: int
    runs: int

    @property
    def success_rate(self) -> float:
        return self.num_optimal / self.runs

    @property
    def succeeded(self) -> bool:
        """Whether at least half of the runs returned an optimal policy."""
        return 2 * self.num_optimal >= self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson interval of the success rate."""
        rate, square = self.success_rate, _CONFIDENCE**2 / self.runs
        centre = rate + square / 2
        width = math.sqrt(square * (rate * (1 - rate) + square / 4))
        return (centre - width) / (1 + square), (centre + width) / (1 + square)


@dataclass(frozen=True)
class GorpSearch:
    """What a search found; m is None where no m within the budget succeeds."""

    k: int
    runs: int
    m: int | None
    m_low: int | None  # None: no m within the budget may have a success rate of 1/2
    m_high: int | None  # None: no m within the budget has one surely
    max_m: int  # the largest that the budget allows
    timesteps_each: int  # T^2 A^k, so that a run with m costs m times as many
    trials: tuple[Trial, ...]  # by ascending m
    results: Runs  # with m, or with the largest m tried where none succeeded

    def __repr__(self) -> str:
        found = f"no m up to {self.max_m:,} succeeds" if self.m is None else f"m = {self.m:,}"
        return f"GorpSearch(k = {self.k}: {found}; {self.results!r})"

    @property
    def sample_complexity(self) -> int | None:
        return None if self.m is None else self.m * self.timesteps_each

    @property
    def success_rate(self) -> float:
        """With m, or with the largest m tried where none succeeded."""
        return self.results.success_rate

    @property
    def is_monotone(self) -> bool:
        """Whether chance alone explains every success rate that is below that of a smaller m."""
        best = 0.0
        for trial in self.trials:
            low, high = trial.interval
            if high < best:
                return False
            best = max(best, low)
        return True


@dataclass(frozen=True)
class LearningCurve:
    """The expected return of the policy so far (chosen actions, then exploration) after each of T iterations."""

    timesteps: NDArray[np.int64]  # [T + 1]
    returns: NDArray[np.float64]  # [N, T + 1]

    @property
    def percentiles(self) -> NDArray[np.float64]:
        """Over runs: the median, the 10th and the 90th percentile [3, T + 1]."""
        percentiles: NDArray[np.float64] = np.percentile(self.returns, (50, 10, 90), axis=0)
        return percentiles


def gorp_sample_complexity(
    mdp: TabularMDP,
    *,
    k: int,
    runs: int = RUNS,
    rng: np.random.Generator,
    budget: int = BUDGET,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
    ties: Ties = "uniform",
    on_trial: Callable[[Trial], None] | None = None,
) -> GorpSearch:
    """The smallest m with which at least half of `runs` runs of GORP(k, m) return an optimal policy."""
    check_positive(runs=runs, budget=budget)
    prepared = task(mdp, exploration_policy)
    each = timesteps_of(mdp, k=k, m=1)
    max_m = budget // each
    if max_m < 1:
        raise InvalidSettingError(f"k = {k}: even m = 1 takes {each:,} timesteps, more than the budget of {budget:,}")
    breaker = TieBreaker(prepared, k, ties)
    entropy = int(rng.integers(2**63))
    trials: dict[int, Trial] = {}
    results: dict[int, Runs] = {}

    def trial(m: int) -> Trial:
        if m not in trials:
            rng = np.random.default_rng([entropy, m])
            results[m] = gorp_on_task(prepared, breaker, k=k, m=m, runs=runs, rng=rng)
            trials[m] = Trial(m, results[m].num_optimal, runs)
            if on_trial is not None:
                on_trial(trials[m])
        return trials[m]

    smallest = _smallest(lambda m: trial(m).succeeded, 1, max_m)
    m_low = _smallest(lambda m: trial(m).interval[1] >= 0.5, 1, max_m)
    m_high = None if smallest is None else _smallest(lambda m: trial(m).interval[0] >= 0.5, smallest, max_m)
    tried = tuple(trials[m] for m in sorted(trials))
    m = next((trial.m for trial in tried if trial.succeeded), None)
    return GorpSearch(k, runs, m, m_low, m_high, max_m, each, tried, results[tried[-1].m if m is None else m])


def learning_curve(
    mdp: TabularMDP,
    results: Runs,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
) -> LearningCurve:
    """Learning curves of runs of GORP: exact expectations, by evaluating the exploration policy on the table."""
    pairs = timeline(mdp)
    values = policy_values(pairs, exploration_policy)
    to_go = values.numbers.astype(np.float64) * float(values.scale.unit)
    rewards = mdp.rewards
    returns = np.empty((results.num_runs, mdp.horizon + 1))
    returns[:, 0] = to_go[0]
    place = np.zeros(results.num_runs, np.int64)
    collected = np.zeros(results.num_runs)
    for time in range(mdp.horizon):
        alive = np.flatnonzero(place >= 0)
        action = results.actions[alive, time]
        collected[alive] += rewards[pairs.states[place[alive]], action]
        place[alive] = pairs.successors[place[alive], action]
        returns[:, time + 1] = collected + np.where(place >= 0, to_go[place], 0.0)
    each = results.timesteps // mdp.horizon
    return LearningCurve(each * np.arange(mdp.horizon + 1), returns)


def _smallest(holds: Callable[[int], bool], first: int, last: int) -> int | None:
    """The smallest m in first .. last for which something holds, if it holds for all larger ones; None if for none."""
    below, m = first - 1, first
    while not holds(m):
        if m == last:
            return None
        below, m = m, min(last, m + max(1, (m - first + 1) // 2, m // 4))
    while m - below > 1:
        middle = (below + m) // 2
        below, m = (below, middle) if holds(middle) else (middle, m)
    return m
