"""GORP by the letter of Algorithm 1, many runs at once: nothing shared with the code under test."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from efhorizon import TabularMDP

TINY = 1e-9  # a chance with which successes are drawn by Poisson: numpy's binomial takes 1 - p


def simulated_success(mdp: TabularMDP, k: int, m: int, runs: int, seed: int) -> float:
    """The share of runs of GORP(k, m) that end with the optimal return, ties drawn uniformly among sequences."""
    units = mdp.reward_units()
    assert units is not None
    rewards = units[0][mdp.reward_codes]
    optimal = np.zeros(mdp.num_states + 1, np.int64)  # the last entry is for transition -1
    for _ in range(mdp.horizon):
        optimal[:-1] = (rewards + optimal[mdp.transitions]).max(axis=1)
    return float(_runs(mdp.transitions, rewards, mdp.horizon, k, m, runs, seed, optimal[0]))


@njit(cache=True)
def _runs(
    transitions: NDArray[np.int32],
    rewards: NDArray[np.int64],
    horizon: int,
    k: int,
    m: int,
    runs: int,
    seed: int,
    optimal: int,
) -> float:
    np.random.seed(seed)
    num_actions = transitions.shape[1]
    successes = 0
    for _ in range(runs):
        state, earned = 0, 0
        for time in range(horizon):
            best, ties, chosen = 0, 0, 0
            for sequence in range(num_actions**k):
                total = 0
                for _ in range(m):
                    here, code = state, sequence
                    for step in range(horizon - time):
                        if here < 0:
                            break
                        action = code % num_actions if step < k else np.random.randint(num_actions)
                        code //= num_actions
                        total += rewards[here, action]
                        here = transitions[here, action]
                if ties == 0 or total > best:
                    best, ties, chosen = total, 1, sequence % num_actions
                elif total == best:
                    ties += 1
                    if np.random.randint(ties) == 0:
                        chosen = sequence % num_actions
            earned += rewards[state, chosen]
            state = transitions[state, chosen]
            if state < 0:
                break
        successes += earned == optimal
    return successes / runs


def simulated_with_fiat(
    mdp: TabularMDP, m: int, right: NDArray[np.bool_], fiat: NDArray[np.int64], runs: int, seed: int
) -> int:
    """How many runs of GORP(1, m) end with the optimal return if it takes the actions `fiat` [T, S] (-1: its own).

    `right` [T, S, A] are the optimal actions: a run is lost with the first one that is not.
    """
    units = mdp.reward_units()
    assert units is not None
    return int(_fiat_runs(mdp.transitions, units[0][mdp.reward_codes], right, fiat, m, runs, seed))


def optimal_actions(mdp: TabularMDP) -> NDArray[np.bool_]:
    """Which actions are optimal [T, S, A], by plain backward induction in reward units."""
    units = mdp.reward_units()
    assert units is not None
    rewards = units[0][mdp.reward_codes]
    right = np.zeros((mdp.horizon, *rewards.shape), np.bool_)
    values = np.zeros(mdp.num_states + 1, np.int64)
    for time in reversed(range(mdp.horizon)):
        qs = rewards + values[mdp.transitions]
        right[time] = qs == qs.max(axis=1, keepdims=True)
        values[:-1] = qs.max(axis=1)
    return right


def is_goal(mdp: TabularMDP) -> bool:
    """Whether every reward is a 1 that ends the episode."""
    rewards = mdp.rewards
    return bool(np.isin(rewards, (0, 1)).all() and (mdp.transitions[rewards == 1] < 0).all())


def goal_chances(mdp: TabularMDP) -> NDArray[np.float64]:
    """The chance [T, S, A] to reach the goal after an action, if all later ones are random, by backward induction."""
    chances = np.empty((mdp.horizon, *mdp.rewards.shape))
    after = np.zeros(mdp.num_states + 1)  # the last entry is for transition -1
    for time in reversed(range(mdp.horizon)):
        chances[time] = mdp.rewards + after[mdp.transitions]
        after[:-1] = chances[time].mean(axis=1)
    return chances


def drawn_with_fiat(
    mdp: TabularMDP,
    m: int,
    right: NDArray[np.bool_],
    fiat: NDArray[np.int64],
    runs: int,
    seed: int,
    *,
    chances: NDArray[np.float64],
) -> int:
    """The same where every reward is a 1 that ends the episode: of m episodes a binomial number reach the goal."""
    rng = np.random.default_rng(seed)
    states = np.zeros(runs, np.int64)  # of the runs that are neither over nor lost
    successes = 0
    for time in range(mdp.horizon):
        p = chances[time, states]
        totals = np.where(p < TINY, rng.poisson(m * np.minimum(p, TINY)), rng.binomial(m, p))
        drawn = rng.random(totals.shape)
        chosen = np.where(totals == totals.max(axis=1, keepdims=True), drawn, -1.0).argmax(axis=1)
        forced = fiat[time, states]
        chosen = np.where(forced >= 0, forced, chosen)
        kept = right[time, states, chosen]
        after = mdp.transitions[states[kept], chosen[kept]]
        successes += int((after < 0).sum())
        states = after[after >= 0]
    return successes + len(states)


@njit(cache=True)
def _fiat_runs(
    transitions: NDArray[np.int32],
    rewards: NDArray[np.int64],
    right: NDArray[np.bool_],
    fiat: NDArray[np.int64],
    m: int,
    runs: int,
    seed: int,
) -> int:
    np.random.seed(seed)
    horizon, _, num_actions = right.shape
    successes = 0
    for _ in range(runs):
        state, lost = 0, False
        for time in range(horizon):
            best, ties, chosen = 0, 0, 0
            for action in range(num_actions):
                total = 0
                for _ in range(m):
                    here, step, taken = state, time, action
                    while here >= 0 and step < horizon:
                        total += rewards[here, taken]
                        here = transitions[here, taken]
                        step += 1
                        taken = np.random.randint(num_actions)
                if ties == 0 or total > best:
                    best, ties, chosen = total, 1, action
                elif total == best:
                    ties += 1
                    if np.random.randint(ties) == 0:
                        chosen = action
            if fiat[time, state] >= 0:
                chosen = fiat[time, state]
            if not right[time, state, chosen]:
                lost = True
                break
            state = transitions[state, chosen]
            if state < 0:
                break
        successes += not lost
    return successes
