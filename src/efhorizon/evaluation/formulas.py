"""The paper's bounds from the columns of summary.csv, as log10 of timesteps."""

from __future__ import annotations

import math

WORST_CASE, COVERING_LENGTH, EPW, UCB = "worst_case", "covering_length", "epw", "ucb"
EFFECTIVE_HORIZON, SIMPLE_HORIZON = "effective_horizon", "effective_horizon_simple"
SIMPLE_TITLE = "effective horizon by Theorem 5.4"
TITLES = {
    WORST_CASE: "worst case (Theorem 2.1)",
    UCB: "UCB, every pair visited (Theorem D.1)",
    COVERING_LENGTH: "covering length (Lemma D.4)",
    EPW: "effective planning window (Theorem D.6)",
    EFFECTIVE_HORIZON: "effective horizon, GORP (Lemma 5.3)",
    SIMPLE_HORIZON: SIMPLE_TITLE,
}
_EXACT_BITS = 64  # up to here A^T is an integer whose halving and rounding up can be seen in a double


def worst_case_bound(horizon: int, num_actions: int) -> float:
    """T ceil(A^T / 2)."""
    if horizon * math.log2(num_actions) < _EXACT_BITS:
        return math.log10(horizon * -(-(num_actions**horizon) // 2))
    return math.log10(horizon) + horizon * math.log10(num_actions) - math.log10(2)


def ucb_bound(horizon: int, num_actions: int, num_states: int) -> float:
    """S A T."""
    return math.log10(num_states * num_actions * horizon)


def window_bound(horizon: int, num_actions: int, window: int) -> float:
    """T^2 A^W."""
    return 2 * math.log10(horizon) + window * math.log10(num_actions)


def horizon_bound(horizon: int, num_actions: int, effective_horizon: float) -> float:
    """T^2 A^H."""
    if math.isinf(effective_horizon):
        return math.inf
    return 2 * math.log10(horizon) + effective_horizon * math.log10(num_actions)


def covering_length_bound(horizon: int, num_actions: int, num_states: int, least_occupancy: float) -> float:
    """T ceil(log(2 S A) / min_(s,a) max_t mu_t(s, a)): Lemma D.4's upper bound, in timesteps."""
    if least_occupancy <= 0:
        return math.inf
    pairs = math.log(2 * num_states * num_actions)
    log10_episodes = math.log10(pairs) - math.log10(least_occupancy)
    if log10_episodes < 15:  # above, rounding up cannot be seen in a double
        log10_episodes = math.log10(math.ceil(pairs / least_occupancy))
    return math.log10(horizon) + log10_episodes


def horizon_of(num_actions: int, k: int, m: int) -> float:
    """H_k = k + log_A m (Definition 5.2)."""
    if m == 1:
        return float(k)
    return k + math.log(m) / math.log(num_actions) if num_actions > 1 else math.inf
