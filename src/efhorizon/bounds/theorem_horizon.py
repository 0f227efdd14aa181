"""The effective horizon by the gap of Q^k."""

from __future__ import annotations

import math
from dataclasses import dataclass

from efhorizon.planning.problem import Problem, effective_horizon_of
from efhorizon.planning.sweeps import Sweep, Witness

_ROUND_UP = 1 + 2.0**-48  # more than the roundings of the formula itself; that of the gap is in the hardness already


@dataclass(frozen=True)
class TheoremHorizon:
    k: int
    m: int | None  # episodes for each action sequence
    episodes: float | None  # the same before it is rounded up to an integer
    effective_horizon: float | None
    sample_complexity: int | None
    witness: Witness | None  # the pair that decides
    reason: str | None = None
    greedy_witness: Witness | None = None  # what decides along greedy policies: the state of the paper's Figure 2d
    greedy_horizon: float | None = None  # the theorem's formula there; not a bound by itself
    deciding: Witness | None = None  # where a greedy policy is closest to a mistake, whether the theorem applies or not


def theorem_horizon(problem: Problem, k: int) -> TheoremHorizon:
    """Theorem 5.4: if the MDP is k-QVI-solvable and no reward is negative, then

        H_k <= k + max_{t, s in S^opt_t, a} log_A(Q^k_t(s, a) V*_t(s) / gap^k_t(s)^2) + log_A(6 log(2 T A^k))

    where S^opt_t are the states that some optimal policy visits at time t, and gap^k_t(s) is the difference between the
    largest Q^k_t(s, .) and the largest that is not equal to it. m is A to the last two terms, rounded up. A state
    without a gap (all actions tie) asks for no episodes.

    The paper's Figure 2d puts other figures into the formula: only states that greedy policies visit, and the gap to
    the best action that is not optimal. That names the state where a mistake is closest, but proves nothing: GORP may
    leave the greedy path by another optimal action. It is kept as `greedy_witness` and `greedy_horizon`, and decides
    wherever greedy actions are optimal; where no mistake is possible, the theorem's own state does. That can be said
    where the theorem does not hold, too: where rewards are negative, the state with the smallest gap decides.
    """
    sweep = problem.sweep(k)
    reason = _reason(problem, k)
    if reason is not None or sweep is None:
        failure, decides = (None, None) if sweep is None else (sweep.failure, _deciding(sweep))
        return TheoremHorizon(k, None, None, None, None, failure, reason, deciding=decides)
    num_actions, horizon = problem.mdp.num_actions, problem.mdp.horizon
    factor = 6 * math.log(2 * horizon * num_actions**k)
    episodes = factor * sweep.hardness * _ROUND_UP
    m = max(1, math.ceil(episodes))
    return TheoremHorizon(
        k=k,
        m=m,
        episodes=episodes,
        effective_horizon=effective_horizon_of(num_actions, k, episodes),
        sample_complexity=horizon**2 * num_actions**k * m,
        witness=sweep.hardest,
        greedy_witness=sweep.riskiest,
        greedy_horizon=None if sweep.riskiest is None else effective_horizon_of(num_actions, k, factor * sweep.risk),
        deciding=_deciding(sweep),
    )


def _deciding(sweep: Sweep) -> Witness | None:
    return (sweep.riskiest or sweep.hardest) if sweep.solvable else None


def _reason(problem: Problem, k: int) -> str | None:
    if problem.rewards[0] < 0:
        return f"Theorem 5.4 needs nonnegative rewards, and there is a reward of {problem.rewards[0]:g}"
    sweep = problem.sweep(k)
    if sweep is None or k > problem.max_k:
        return f"k = {k} was not looked at"
    if not sweep.solvable:
        return f"not {k}-QVI-solvable" + (" as far as float64 can tell" if sweep.undecided else "")
    if math.isinf(sweep.hardness):
        return "a gap is too small for float64 to tell it from 0"
    return None
