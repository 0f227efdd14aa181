"""An m with which tabular SQIRL is proved to succeed, with all constants. It is ours: the paper's theorem leaves its
constant open, and holds for any regression; this one is for exact means, and uses quantities of the MDP.

Let every policy that is greedy with respect to Q^k be optimal, and let Delta be the least gap of Q^k over the pairs
that can be reached. G bounds what returns from any pair can differ by.

1. If every mean that SQIRL takes to choose pi_t is within eta < Delta / (2 k) of its expectation, all of Q_t is within
   k eta < Delta / 2 of Q^k_t (each step back adds one eta), so pi_t(s) is greedy with respect to Q^k.
2. A mean of n samples is off by eta or more with probability at most 2 exp(-2 n eta^2 / G^2) (Hoeffding).
3. A triple (time, state, action) that an episode meets with probability p is met at least m p / 2 times in m episodes,
   but with probability exp(-m p / 8) (Chernoff).

There are at most M = k P A triples, counted once for each time t at which they are used. With delta = 1/2 shared
between 2 and 3, SQIRL succeeds with probability at least one half if, for the least p,

    m >= max(2 N, 8 ln(2 M / delta)) / p,     N = G^2 / (2 eta^2) ln(4 M / delta)

For p: where the greedy policy is unique, p is computed exactly, triple by triple, and pairs (t, s) that it meets so
rarely that they cannot cost more than 1% of the optimal return are left out, rarest first. Elsewhere the bound does
not apply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.stochastic import _kernels as kernels
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sweeps import Sweep, greedy_bits
from efhorizon.stochastic.training import RELATIVE_LOSS

_FAILURE = 0.5  # delta
_BELOW = 0.999  # eta lies strictly below Delta / (2 k)


@dataclass(frozen=True)
class SufficientM:
    m: int | None
    rarest: float | None  # p
    reason: str | None = None


def sufficient_m(plan: Plan, sweep: Sweep) -> SufficientM:
    """The m of this module for k = sweep.k."""
    if not sweep.solvable:
        return SufficientM(None, None, f"not every policy that is greedy on Q^{sweep.k} is proved optimal")
    if sweep.gap is None:
        return SufficientM(1, None, "every policy is optimal")
    if sweep.gap_undecided:
        return SufficientM(None, None, "floats cannot tell the least gap from a tie")
    mdp = plan.mdp
    actions = _unique_greedy(plan, sweep.k)
    if actions is None:
        return SufficientM(None, None, "greedy actions tie on the way, so how often a pair is met depends on ties")
    spread = _largest_difference(plan)
    rarest = _rarest(plan, actions, sweep.k, RELATIVE_LOSS * abs(plan.optimal.values.at_start) / spread)
    triples = sweep.k * plan.layers.num_pairs * mdp.num_actions
    eta = _BELOW * sweep.gap / (2 * sweep.k)
    samples = math.ceil(spread**2 / (2 * eta**2) * math.log(4 * triples / _FAILURE))
    m = math.ceil(max(2 * samples, 8 * math.log(2 * triples / _FAILURE)) / rarest)
    return SufficientM(m, rarest)


def _unique_greedy(plan: Plan, k: int) -> NDArray[np.int64] | None:
    """The greedy action of each time and state [T, S]; None if two tie in a pair that greedy policies reach."""
    bits = greedy_bits(plan, plan.exploration(), k)
    actions = np.zeros((plan.mdp.horizon, plan.mdp.num_states), np.int64)
    is_greedy = (bits & (kernels.TIED | kernels.UNDECIDED)) > 0
    here = plan.row(np.bool_)
    here[plan.mdp.initial_states] = True
    for time in range(plan.mdp.horizon):
        span, states = plan.layers.span(time), plan.layers.layer(time)
        if (is_greedy[span][here[states]].sum(axis=1) > 1).any():
            return None
        actions[time, states] = is_greedy[span].argmax(axis=1)
        following = plan.row(np.bool_)
        kernels.follow_greedy(plan.outcomes, states, bits[span], bits[span], here, following)
        here = following
    return actions


def _rarest(plan: Plan, actions: NDArray[np.int64], k: int, allowed: float) -> float:
    """The least probability of a triple that has to be met; pairs of total probability up to `allowed` are left out."""
    mdp = plan.mdp
    uniform = np.empty((0, mdp.num_actions))
    chances = []  # of each time [S], under the greedy policy
    here = plan.row()
    here[mdp.initial_states] = mdp.initial_probabilities
    for time in range(mdp.horizon):
        chances.append(here)
        following = plan.row()
        one_hot = np.eye(mdp.num_actions)[actions[time]]
        kernels.spread(plan.outcomes, plan.layers.layer(time), one_hot, here, following)
        here = following
    met = np.sort(np.concatenate([row[row > 0] for row in chances]))
    num_left_out = int((np.cumsum(met) <= allowed).sum())
    least = float(met[num_left_out])
    rarest = 1.0
    for time in range(mdp.horizon):
        here = np.where(chances[time] >= least, chances[time], 0.0)
        for now in range(time, min(time + k, mdp.horizon)):
            rarest = min(rarest, float(here[here > 0].min()) / mdp.num_actions if here.any() else 1.0)
            following = plan.row()
            kernels.spread(plan.outcomes, plan.layers.layer(now), uniform, here, following)
            here = following
    return rarest


def _largest_difference(plan: Plan) -> float:
    """How far apart two returns from the same pair can be: over all actions and outcomes."""
    mdp = plan.mdp
    firsts = mdp.offsets[: -1 : mdp.num_actions]
    rewards = mdp.reward_values[mdp.reward_codes]
    ended, following = mdp.successors < 0, np.maximum(mdp.successors, 0)
    high, low, largest = np.zeros(mdp.num_states), np.zeros(mdp.num_states), 0.0
    for _ in range(mdp.horizon):
        high = np.maximum.reduceat(rewards + np.where(ended, 0.0, high[following]), firsts)
        low = np.minimum.reduceat(rewards + np.where(ended, 0.0, low[following]), firsts)
        largest = max(largest, float((high - low).max()))
    return largest
