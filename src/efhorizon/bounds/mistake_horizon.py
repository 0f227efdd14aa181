"""The effective horizon by how clearly Q^k tells optimal actions from mistakes: Theorem 5.4, tightened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from efhorizon.bounds.registry import sample_complexity_bound
from efhorizon.planning.problem import Problem, effective_horizon_of
from efhorizon.planning.sweeps import Witness

_ROUND_UP = 1 + 2.0**-48  # more than the roundings of the formula itself; that of the margin is in the ratio already


@dataclass(frozen=True)
class MistakeHorizon:
    """For the k with the fewest timesteps."""

    k: int | None
    m: int | None
    by_k: Mapping[int, int]  # m for each k that has one
    witnesses: Mapping[int, Witness | None]  # the pair that decides each of them; None: no state has a wrong action
    effective_horizon: float | None
    sample_complexity: int | None
    reason: str | None = None


@sample_complexity_bound("mistakes", title="effective horizon by mistakes (Theorem 5.4 tightened)")
def mistake_horizon(problem: Problem) -> MistakeHorizon:
    """If no reward is negative, and if in every state of an optimal policy all greedy actions on Q^k are optimal, then

        H_k <= k + max_{t, s in S^opt_t} log_A(max_a Q^k_t(s, a) V*_t(s) / margin^k_t(s)^2) + log_A(6 log(2 T A^k))

    where margin^k_t(s) is the difference between the largest Q^k_t(s, .) and the largest of an action that is not
    optimal. States in which every action is optimal ask for no episodes. The proof is in docs/bounds.md.

    Theorem 5.4 takes the gap to the next value instead, even if both actions are optimal: with a policy from a network
    that can be 1e-9, and m is then a trillion.
    """
    if problem.rewards[0] < 0:
        return _none(f"it needs nonnegative rewards, and there is a reward of {problem.rewards[0]:g}")
    num_actions, horizon = problem.mdp.num_actions, problem.mdp.horizon
    sweeps = {k: problem.sweep(k) for k in range(1, problem.max_k + 1)}
    clear = {k: sweep for k, sweep in sweeps.items() if sweep is not None and math.isfinite(sweep.mistake)}
    if not clear:
        return _none(f"for every k up to {problem.max_k}, a mistake may look best in some state of an optimal policy")
    episodes = {k: 6 * math.log(2 * horizon * num_actions**k) * sweep.mistake * _ROUND_UP for k, sweep in clear.items()}
    m = {k: max(1, math.ceil(needed)) for k, needed in episodes.items()}
    best = min(m, key=lambda k: num_actions**k * m[k])
    return MistakeHorizon(
        k=best,
        m=m[best],
        by_k=m,
        witnesses={k: sweep.closest_mistake for k, sweep in clear.items()},
        effective_horizon=effective_horizon_of(num_actions, best, episodes[best]),
        sample_complexity=horizon**2 * num_actions**best * m[best],
    )


def _none(reason: str) -> MistakeHorizon:
    return MistakeHorizon(None, None, {}, {}, None, None, reason)
