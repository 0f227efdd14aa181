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

from efhorizon.agents.tabular.kernels import TaskArrays, compared, walked
from efhorizon.agents.tabular.runs import Runs, check_positive, num_sequences, task
from efhorizon.compiled import Integers, Words, compiled, compiled_parallel, prange
from efhorizon.mdp import TabularMDP


def plan_over_window(mdp: TabularMDP, *, window: int, runs: int = 1, rng: np.random.Generator) -> Runs:
    """Run PlanOverWindow(W) independently `runs` times."""
    check_positive(runs=runs)
    timesteps = mdp.horizon**2 * num_sequences(mdp, window=window)
    prepared = task(mdp)
    return prepared.played(_plan_runs, window, runs=runs, rng=rng, timesteps=timesteps)


@compiled_parallel
def _plan_runs(window: int, words: Words, task: TaskArrays, actions: Integers, steps: Integers) -> None:
    for run in prange(len(words)):
        steps[run] = _plan_run(window, words[run].copy(), task, actions[run])


@compiled
def _plan_run(window: int, words: Words, task: TaskArrays, actions: Integers) -> int:
    transitions, codes, units, _, _ = task
    horizon, num_actions = len(actions), transitions.shape[1]
    state, steps = 0, 0
    for time in range(horizon):
        length = min(window, horizon - time)
        best, ties, chosen = 0, 0, 0
        steps += length * num_actions**length
        for sequence in range(num_actions**length):
            total = walked(state, sequence, length, transitions, codes, units)[1]
            is_better, best, ties = compared(words, total, best, ties)
            if is_better:
                chosen = sequence
        actions[time] = chosen // num_actions ** (length - 1)
        state = transitions[state, actions[time]]
        if state < 0:
            break
    return steps
