"""CoveringLengthRL: explore for L episodes, then plan on what was seen (Appendix D.2).

    collect L episodes, sampling actions according to pi^expl
    record R(s, a) and f(s, a) for all pairs seen; define them arbitrarily for the others
    return a policy from value iteration on the record

Pairs never seen are never chosen here (their value is minus infinity), so the policy keeps to what it knows. Timesteps:
T L, as the theorem on the covering length counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from efhorizon.agents.streams import drawn_action
from efhorizon.agents.tabular.kernels import TaskArrays
from efhorizon.agents.tabular.runs import Runs, check_positive, task
from efhorizon.compiled import Integers, Words, compiled, compiled_parallel, prange
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy


def covering_length_rl(
    mdp: TabularMDP,
    *,
    episodes: int,
    runs: int = 1,
    rng: np.random.Generator,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
) -> Runs:
    """Run CoveringLengthRL with L = `episodes` independently `runs` times."""
    check_positive(episodes=episodes, runs=runs)
    prepared = task(mdp, exploration_policy)
    return prepared.played(_covering_runs, episodes, runs=runs, rng=rng, timesteps=mdp.horizon * episodes)


@compiled_parallel
def _covering_runs(episodes: int, words: Words, task: TaskArrays, actions: Integers, steps: Integers) -> None:
    for run in prange(len(words)):
        steps[run] = _covering_run(episodes, words[run].copy(), task, actions[run])


@compiled
def _covering_run(episodes: int, words: Words, task: TaskArrays, actions: Integers) -> int:
    transitions, codes, units, _, probabilities = task
    horizon, num_actions = len(actions), transitions.shape[1]
    seen = np.zeros(transitions.shape, np.bool_)
    visited = np.zeros(transitions.shape[0], np.bool_)
    states = np.empty(transitions.shape[0], np.int32)  # those visited, in the order of their first visits
    count, steps = 0, 0
    for _ in range(episodes):
        state = 0
        for time in range(horizon):
            if not visited[state]:
                visited[state] = True
                states[count] = state
                count += 1
            action = drawn_action(words, time, state, num_actions, probabilities)
            seen[state, action] = True
            steps += 1
            state = transitions[state, action]
            if state < 0:
                break

    # Backward induction on the record. A state met only at the end of an episode has no action seen: it is left out
    # wherever time remains (known), and counts as worth 0 where none does.
    choices = np.full((horizon, count), -1, np.int32)
    number = np.full(transitions.shape[0], -1, np.int32)
    number[states[:count]] = np.arange(count).astype(np.int32)
    following, values = np.zeros(count, np.int64), np.zeros(count, np.int64)
    known = np.ones(count, np.bool_)
    known_next = np.ones(count, np.bool_)
    for time in range(horizon - 1, -1, -1):
        for i in range(count):
            state, ties, best = states[i], 0, 0
            for action in range(num_actions):
                if not seen[state, action]:
                    continue
                successor = transitions[state, action]
                value = units[codes[state, action]]
                if successor >= 0 and time < horizon - 1:
                    j = number[successor]
                    if j < 0 or not known_next[j]:
                        continue
                    value += following[j]
                if ties == 0 or value > best:
                    best, ties, choices[time, i] = value, 1, action
            values[i], known[i] = best, ties > 0
        following, values = values, following
        known_next, known = known, known_next
    state = 0
    for time in range(horizon):
        actions[time] = choices[time, number[state]]
        state = transitions[state, actions[time]]
        if state < 0:
            break
    return steps
