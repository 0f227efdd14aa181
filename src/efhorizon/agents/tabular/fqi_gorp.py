"""FQI-GORP: GORP that fits Q-functions (Algorithm 3, Appendix B.1).

    for i = 1, ..., T:
        sample A^k m episodes, following pi for timesteps 1 to i - 1 and then pi^expl
        fit Q^1_{i+k-1}(s, a) to the rewards-to-go of the episodes from timestep i + k - 1
        for t = i + k - 2, ..., i:
            fit Q^{i+k-t}_t(s, a) to R(s, a) + max_a' Q^{i+k-t-1}_{t+1}(f(s, a), a')
        pi_i(s_i) = arg max_a Q^k_i(s_i, a)

A least-squares fit on a table is the mean over the visits of a pair; the second kind of fit has one target only. Pairs
that no episode visited are in no loss, so any value fits them: here they are left out of every maximum. Near the
horizon the window is cut to the steps that are left. Means are kept as fractions of integers, so ties are exact; they
are broken uniformly at random among actions. Timesteps: T^2 A^k m, as Theorem B.2 counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from efhorizon.agents.streams import drawn_action, drawn_below
from efhorizon.agents.tabular.kernels import TaskArrays, rollouts
from efhorizon.agents.tabular.runs import InvalidSettingError, Runs, check_positive, num_sequences, task
from efhorizon.compiled import Integers, Words, compiled, compiled_parallel, prange
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy

_MAX_EPISODES = 2**31  # so that products of two counts fit in int64


def fqi_gorp(
    mdp: TabularMDP,
    *,
    k: int,
    m: int,
    runs: int = 1,
    rng: np.random.Generator,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
) -> Runs:
    """Run FQI-GORP(k, m) independently `runs` times."""
    check_positive(m=m, runs=runs)
    episodes = num_sequences(mdp, k=k) * m
    if episodes > _MAX_EPISODES:
        raise InvalidSettingError(f"A^k m = {episodes:,} episodes per iteration are too many")
    prepared = task(mdp, exploration_policy)
    prepared.check_sum(episodes)
    return prepared.played(_fqi_gorp_runs, k, episodes, runs=runs, rng=rng, timesteps=mdp.horizon**2 * episodes)


@compiled_parallel
def _fqi_gorp_runs(k: int, episodes: int, words: Words, task: TaskArrays, actions: Integers, steps: Integers) -> None:
    for run in prange(len(words)):
        steps[run] = _fqi_gorp_run(k, episodes, words[run].copy(), task, actions[run])


@compiled
def _fqi_gorp_run(k: int, episodes: int, words: Words, task: TaskArrays, actions: Integers) -> int:
    """Fill in the actions [T] of one run, and return the steps that it played."""
    transitions, codes, units, _, probabilities = task
    horizon, num_actions = len(actions), transitions.shape[1]
    place = np.full(transitions.shape[0], -1, np.int32)
    state, steps = 0, 0
    for time in range(horizon):
        length = min(k, horizon - time)
        starts, states, following = _window(state, length, transitions, place)
        # the fitted value of pair (node, action) is sums / counts; a count of 0: never visited
        sums = np.zeros((len(states), num_actions), np.int64)
        counts = np.zeros((len(states), num_actions), np.int64)
        for _ in range(episodes):
            node = 0
            for step in range(length):
                action = drawn_action(words, time + step, states[node], num_actions, probabilities)
                steps += 1
                counts[node, action] += 1
                if step == length - 1:
                    successor = transitions[states[node], action]
                    to_go, played = rollouts(words, 1, successor, time + length, horizon, task)
                    sums[node, action] += units[codes[states[node], action]] + to_go
                    steps += played
                elif following[node, action] < 0:
                    break
                else:
                    node = following[node, action]
        for node in range(starts[length - 1] - 1, -1, -1):
            for action in range(num_actions):
                if counts[node, action] > 0:
                    total, count = 0, 1
                    if following[node, action] >= 0:
                        total, count = _largest(sums[following[node, action]], counts[following[node, action]])
                    sums[node, action] = units[codes[states[node], action]] * count + total
                    counts[node, action] = count
        actions[time] = _chosen(words, sums[0], counts[0])
        state = transitions[state, actions[time]]
        if state < 0:
            break  # the episode is over: no later choice has any effect
    return steps


@compiled
def _window(start: int, length: int, transitions: Integers, place: Integers) -> tuple[Integers, Integers, Integers]:
    """The states within `length` - 1 steps as nodes, layer by layer: starts of layers, states, next nodes [nodes, A].

    `place` is -1 for every state, before and after.
    """
    num_actions = transitions.shape[1]
    starts = np.zeros(length + 1, np.int64)
    starts[1] = 1
    states = np.full(1, start, np.int32)
    following = np.full((1, num_actions), -1, np.int32)
    for layer in range(1, length):
        first, last = starts[layer - 1], starts[layer]
        found = np.empty((last - first) * num_actions, np.int32)
        count = 0
        for node in range(first, last):
            for action in range(num_actions):
                successor = transitions[states[node], action]
                if successor >= 0:
                    if place[successor] < 0:
                        place[successor] = last + count
                        found[count] = successor
                        count += 1
                    following[node, action] = place[successor]
        place[found[:count]] = -1
        starts[layer + 1] = last + count
        states = np.concatenate((states, found[:count]))
        following = np.concatenate((following, np.full((count, num_actions), -1, np.int32)))
    return starts, states, following


@compiled
def _less(sum_0: int, count_0: int, sum_1: int, count_1: int) -> bool:
    """Whether sum_0 / count_0 < sum_1 / count_1, exactly and without overflow: whole parts first, then remainders."""
    whole_0, whole_1 = sum_0 // count_0, sum_1 // count_1
    if whole_0 != whole_1:
        return whole_0 < whole_1
    return (sum_0 - whole_0 * count_0) * count_1 < (sum_1 - whole_1 * count_1) * count_0


@compiled
def _largest(sums: Integers, counts: Integers) -> tuple[int, int]:
    """The largest of several fractions, among those that have been visited (at least one has)."""
    total, count = 0, 0
    for action in range(len(sums)):
        if counts[action] > 0 and (count == 0 or _less(total, count, sums[action], counts[action])):
            total, count = sums[action], counts[action]
    return total, count


@compiled
def _chosen(words: Words, sums: Integers, counts: Integers) -> int:
    """A maximising action, uniformly at random."""
    total, count = _largest(sums, counts)
    chosen, ties = 0, 0
    for action in range(len(sums)):
        if counts[action] > 0 and not _less(sums[action], counts[action], total, count):
            ties += 1
            if drawn_below(words, ties) == 0:
                chosen = action
    return chosen
