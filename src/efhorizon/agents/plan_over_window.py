"""PlanOverWindow: plan over the rewards of the next W steps, and ignore what follows (Appendix D.3).

    for i = 1, ..., T:
        for each action sequence a_{i:i+W-1} in A^W:
            sample an episode following pi_1, ..., pi_{i-1}, then a_{i:i+W-1}, and then arbitrary actions
            r_i(s_i, a_{i:i+W-1}) = the rewards of timesteps i to i + W - 1
        pi_i(s_i) = arg max_{a_i} max_{a_{i+1:i+W-1}} r_i(s_i, a_{i:i+W-1})

Ties are broken uniformly at random among sequences, as in GORP; nothing else is random. Timesteps: T^2 A^W, as
Theorem D.4 counts.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from efhorizon.agents._kernels import drawn_below, walked
from efhorizon.agents._runs import Runs, check_positive, num_sequences, streams, task
from efhorizon.mdp import TabularMDP


def plan_over_window(mdp: TabularMDP, *, window: int, runs: int = 1, rng: np.random.Generator) -> Runs:
    """Run PlanOverWindow(W) independently `runs` times."""
    check_positive(runs=runs)
    timesteps = mdp.horizon**2 * num_sequences(mdp, window=window)
    prepared = task(mdp)
    actions = np.full((runs, mdp.horizon), -1, np.int32)
    steps = np.zeros(runs, np.int64)
    _plan_runs(window, streams(rng, runs), prepared.arrays, actions, steps)
    return Runs(**prepared.runs(actions, timesteps, steps))


@njit(cache=True, parallel=True)
def _plan_runs(window, words, task, actions, steps):  # type: ignore[no-untyped-def]
    for run in prange(len(words)):
        steps[run] = _plan_run(window, words[run].copy(), task, actions[run])


@njit(cache=True)
def _plan_run(window, words, task, actions):  # type: ignore[no-untyped-def]
    transitions, codes, units, _, _ = task
    horizon, num_actions = len(actions), transitions.shape[1]
    state, steps = 0, 0
    for time in range(horizon):
        length = min(window, horizon - time)
        best, ties, chosen = 0, 0, 0
        steps += length * num_actions**length
        for sequence in range(num_actions**length):
            total = walked(state, sequence, length, transitions, codes, units)[1]
            if ties == 0 or total > best:
                best, ties, chosen = total, 1, sequence
            elif total == best:
                ties += 1
                if drawn_below(words, ties) == 0:
                    chosen = sequence
        actions[time] = chosen // num_actions ** (length - 1)
        state = transitions[state, actions[time]]
        if state < 0:
            break
    return steps
