"""R-max for deterministic MDPs: what was never tried is assumed to pay the largest reward for ever (Appendix D.1).

    f(s, a) = s and R(s, a) = r_max for all pairs
    for j = 1, ..., S A:
        for t = 1, ..., T:
            take an action in the current state s according to the optimal policy for f and R
            set R(s, a) and f(s, a) to what is observed
    return an optimal policy for f and R

Ties between optimal actions are broken uniformly at random. The paper has no terminal transitions; here one leads to a
state that pays 0 for ever, which is known from the start, so r_max is at least 0 where some pair ends the episode. Once
an episode meets nothing new the model never changes again, and its policy is optimal (the proof of Theorem D.1): what
follows is not played. Timesteps: S A T, as the theorem counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.streams import streams
from efhorizon.agents.tabular.kernels import TaskArrays, compared
from efhorizon.agents.tabular.runs import Runs, check_positive, task
from efhorizon.compiled import Flags, Integers, Words, compiled, compiled_parallel, prange
from efhorizon.mdp import TabularMDP


@dataclass(frozen=True)
class RmaxRuns(Runs):
    """Runs of R-max, with what each needed."""

    episodes: NDArray[np.int64]  # [N], until nothing new was met: after these the policy is optimal; at most S A


def rmax(mdp: TabularMDP, *, runs: int = 1, rng: np.random.Generator) -> RmaxRuns:
    """Run R-max independently `runs` times."""
    check_positive(runs=runs)
    prepared = task(mdp)
    prepared.check_sum(1)
    largest = int(prepared.arrays.units[np.unique(mdp.reward_codes)].max())
    if (mdp.transitions < 0).any():
        largest = max(largest, 0)
    actions = np.full((runs, mdp.horizon), -1, np.int32)
    steps, episodes = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
    _rmax_runs(largest, streams(rng, runs), prepared.arrays, actions, steps, episodes)
    timesteps = mdp.num_states * mdp.num_actions * mdp.horizon
    return RmaxRuns(**prepared.runs(actions, timesteps, steps), episodes=episodes)


@compiled_parallel
def _rmax_runs(
    largest: int, words: Words, task: TaskArrays, actions: Integers, steps: Integers, episodes: Integers
) -> None:
    for run in prange(len(words)):
        steps[run], episodes[run] = _rmax_run(largest, words[run].copy(), task, actions[run])


@compiled
def _rmax_run(largest: int, words: Words, task: TaskArrays, actions: Integers) -> tuple[int, int]:
    """Fill in the actions [T] of the returned policy; steps played, and episodes that met something new."""
    transitions = task.transitions
    horizon, num_states = len(actions), transitions.shape[0]
    known = np.zeros(transitions.shape, np.bool_)
    states, count = np.empty(num_states, np.int32), 0  # states with a known pair, in the order of their first visits
    met = np.zeros(num_states, np.bool_)
    # values[t, s]: what the model promises from time t on; a state without a known pair pays r_max to the end
    values = np.empty((horizon + 1, num_states), np.int64)
    for time in range(horizon + 1):
        values[time] = (horizon - time) * largest
    steps, episodes = 0, 0
    while True:
        state, is_new = 0, False
        actions[:] = -1
        for time in range(horizon):
            action = _greedy(words, time, state, largest, task, known, values)
            actions[time] = action
            steps += 1
            if not known[state, action]:
                known[state, action] = True
                is_new = True
                if not met[state]:
                    met[state] = True
                    states[count] = state
                    count += 1
                _plan(time + 1, largest, states[:count], task, known, values)
            state = transitions[state, action]
            if state < 0:
                break
        if not is_new:
            return steps, episodes
        episodes += 1
        _plan(0, largest, states[:count], task, known, values)


@compiled
def _plan(first: int, largest: int, states: Integers, task: TaskArrays, known: Flags, values: Integers) -> None:
    """Value iteration on the model for times `first` and later."""
    for time in range(len(values) - 2, first - 1, -1):
        for state in states:
            best, is_first = 0, True
            for action in range(task.transitions.shape[1]):
                value = _value(time, state, action, largest, task, known, values)
                if is_first or value > best:
                    best, is_first = value, False
            values[time, state] = best


@compiled
def _value(time: int, state: int, action: int, largest: int, task: TaskArrays, known: Flags, values: Integers) -> int:
    """Q of the model."""
    if not known[state, action]:
        return (len(values) - 1 - time) * largest
    value: int = task.units[task.codes[state, action]]
    successor = task.transitions[state, action]
    return value + values[time + 1, successor] if successor >= 0 else value


@compiled
def _greedy(words: Words, time: int, state: int, largest: int, task: TaskArrays, known: Flags, values: Integers) -> int:
    best, ties, chosen = 0, 0, 0
    for action in range(task.transitions.shape[1]):
        value = _value(time, state, action, largest, task, known, values)
        is_better, best, ties = compared(words, value, best, ties)
        if is_better:
            chosen = action
    return chosen
