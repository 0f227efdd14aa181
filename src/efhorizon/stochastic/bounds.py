"""Bounds for stochastic MDPs beside the effective horizon, and why those for deterministic ones do not apply."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from efhorizon.stochastic.planning import Plan

RELATIVE_LOSS = 0.01  # a run counts as successful within 1% of the optimal return

NOT_APPLICABLE = {
    "effective_horizon_gorp": "GORP plays one sequence of actions, so its exact horizon and Theorem 5.4 are about "
    "deterministic MDPs",
    "ucb_deterministic": "S A T (Theorem D.1) visits each pair once; with chance one visit does not show its outcomes",
    "covering_length_solves": "visiting each pair once (Theorem D.3) does not show the probabilities of its outcomes",
    "worst_case": "T ceil(A^T / 2) counts sequences of actions; with chance a policy is more than a sequence",
}


@dataclass(frozen=True)
class StochasticUcb:
    """Azar, Osband and Munos (2017), UCBVI: regret of order sqrt(T S A N) after N timesteps, with returns up to T.

    With returns scaled to [0, 1] an average regret of eps takes S A / eps^2 episodes: T S A / eps^2 timesteps, without
    constants and logarithms. Here eps is 1% of the optimal return, as a share of the spread of returns.
    """

    order: float | None  # timesteps, an order of magnitude and no bound for this MDP
    num_states: int
    reason: str | None = None


@dataclass(frozen=True)
class StochasticCoveringLength:
    """Episodes of the exploration policy until every pair that can be reached was met, with a chance of one half.

        log 2 / (2 min_(s,a) sum_t mu_t(s, a))  <=  L  <=  ceil(log(2 S A) / min_(s,a) max_t mu_t(s, a))

    Lemma D.4 of Laidlaw et al. (2023); its proof uses nothing but the chance that an episode meets a pair, so it holds
    with chance too. That L episodes solve the MDP does not.
    """

    lower: float | None
    upper: int | None
    reason: str | None = None


def ucb(plan: Plan) -> StochasticUcb:
    """See `StochasticUcb`."""
    mdp = plan.mdp
    num_states = len(np.unique(plan.layers.states))
    best, worst = plan.optimal.values.at_start, plan.worst.at_start
    if best <= worst:
        return StochasticUcb(None, num_states, "all policies have the same return")
    if best == 0.0:
        return StochasticUcb(None, num_states, "the optimal return is 0, so 1% of it is nothing")
    share = RELATIVE_LOSS * abs(best) / (best - worst)
    return StochasticUcb(mdp.horizon * num_states * mdp.num_actions / share**2, num_states)


def covering_length(plan: Plan) -> StochasticCoveringLength:
    """See `StochasticCoveringLength`; for the uniform policy."""
    mdp = plan.mdp
    sums, largest = np.zeros(mdp.num_states), np.zeros(mdp.num_states)
    occupancy = plan.occupancy()
    for time in range(mdp.horizon):
        states, share = plan.layers.layer(time), occupancy[plan.layers.span(time)] / mdp.num_actions
        sums[states] += share
        largest[states] = np.maximum(largest[states], share)
    met = np.unique(plan.layers.states)
    if largest[met].min() <= 0.0:
        return StochasticCoveringLength(None, None, "a pair is so rare that its chance is 0 in float64")
    upper = math.ceil(math.log(2 * len(met) * mdp.num_actions) / largest[met].min())
    return StochasticCoveringLength(math.log(2) / (2 * float(sums[met].min())), upper)
