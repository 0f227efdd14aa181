"""Exhaustive search: half of all action sequences, in random order (Appendix A.1).

    shuffle the A^T action sequences
    for i = 1, ..., ceil(A^T / 2):
        J[i] = the return of an episode with the i-th sequence
    return the sequence with the largest J

Timesteps: T ceil(A^T / 2), as Theorem 2.1 counts.
"""

from __future__ import annotations

import numpy as np

from efhorizon.agents.streams import drawn_below, streams
from efhorizon.agents.tabular.kernels import TaskArrays, walked
from efhorizon.agents.tabular.runs import InvalidSettingError, Runs, check_positive, task
from efhorizon.compiled import Integers, Words, compiled, compiled_parallel, prange
from efhorizon.mdp import TabularMDP

MAX_SEQUENCES = 2**22


def exhaustive_search(mdp: TabularMDP, *, runs: int = 1, rng: np.random.Generator) -> Runs:
    """Run exhaustive search independently `runs` times."""
    check_positive(runs=runs)
    num_sequences = mdp.num_actions**mdp.horizon
    if num_sequences > MAX_SEQUENCES:
        raise InvalidSettingError(
            f"{mdp.num_actions}^{mdp.horizon} action sequences are too many to try (at most {MAX_SEQUENCES:,})"
        )
    prepared = task(mdp)
    actions = np.empty((runs, mdp.horizon), np.int32)
    num_episodes = -(-num_sequences // 2)
    _search_runs(num_sequences, num_episodes, streams(rng, runs), prepared.arrays, actions)
    timesteps = mdp.horizon * num_episodes
    return Runs(**prepared.runs(actions, timesteps, np.full(runs, timesteps)))


@compiled_parallel
def _search_runs(num_sequences: int, num_episodes: int, words: Words, task: TaskArrays, actions: Integers) -> None:
    for run in prange(len(words)):
        _search_run(num_sequences, num_episodes, words[run].copy(), task, actions[run])


@compiled
def _search_run(num_sequences: int, num_episodes: int, words: Words, task: TaskArrays, actions: Integers) -> None:
    transitions, codes, units, _, _ = task
    horizon, num_actions = len(actions), transitions.shape[1]
    sequences = np.arange(num_sequences)
    best, chosen = 0, -1
    for i in range(num_episodes):
        j = i + drawn_below(words, num_sequences - i)  # a shuffle, one sequence at a time
        sequences[i], sequences[j] = sequences[j], sequences[i]
        total = walked(0, sequences[i], horizon, transitions, codes, units)[1]
        if chosen < 0 or total > best:
            best, chosen = total, sequences[i]
    for time in range(horizon - 1, -1, -1):
        actions[time] = chosen % num_actions
        chosen //= num_actions
