"""PG-GORP: GORP that chooses actions by a policy gradient (Algorithm 2, Appendix B.1).

    pi = pi^expl
    for i = 1, ..., T:
        sample m episodes following pi
        for each action a:
            g_i(a | s_i) = (1 / m) sum_j [a_i^j = a] / pi_i(a | s_i) * (the reward-to-go of episode j)
        pi_i(s_i) = arg max_a g_i(a | s_i)

An action that no episode took has gradient 0, as the formula says, and takes part in the arg max; one to which the
exploration policy gives no chance (the formula divides 0 by 0, and the theorem's bound is infinite) does not. Ties are
broken uniformly at random among actions; they are exact under the uniform policy, where 1 / pi is the same for all.
Timesteps: T^2 m, as Theorem B.1 counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from efhorizon.agents.streams import drawn_action
from efhorizon.agents.tabular.kernels import TaskArrays, compared, rollouts
from efhorizon.agents.tabular.runs import Runs, check_positive, task
from efhorizon.compiled import Integers, Words, compiled, compiled_parallel, prange
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy


def pg_gorp(
    mdp: TabularMDP,
    *,
    m: int,
    runs: int = 1,
    rng: np.random.Generator,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
) -> Runs:
    """Run PG-GORP(m) independently `runs` times."""
    check_positive(m=m, runs=runs)
    prepared = task(mdp, exploration_policy)
    prepared.check_sum(m)
    return prepared.played(_pg_gorp_runs, m, runs=runs, rng=rng, timesteps=mdp.horizon**2 * m)


@compiled_parallel
def _pg_gorp_runs(m: int, words: Words, task: TaskArrays, actions: Integers, steps: Integers) -> None:
    for run in prange(len(words)):
        steps[run] = _pg_gorp_run(m, words[run].copy(), task, actions[run])


@compiled
def _pg_gorp_run(m: int, words: Words, task: TaskArrays, actions: Integers) -> int:
    """Fill in the actions [T] of one run, and return the steps that it played."""
    transitions, codes, units, _, probabilities = task
    horizon, num_actions = len(actions), transitions.shape[1]
    sums = np.empty(num_actions, np.int64)
    state, steps = 0, 0
    for time in range(horizon):
        sums[:] = 0
        for _ in range(m):
            action = drawn_action(words, time, state, num_actions, probabilities)
            to_go, played = rollouts(words, 1, transitions[state, action], time + 1, horizon, task)
            sums[action] += units[codes[state, action]] + to_go
            steps += played + 1
        best, ties = np.float64(0), 0
        for action in range(num_actions):
            gradient = np.float64(sums[action])  # without the factors that all actions share
            if len(probabilities):
                probability = probabilities[min(time, len(probabilities) - 1), state, action]
                if probability == 0:
                    continue
                gradient /= probability
            is_better, best, ties = compared(words, gradient, best, ties)
            if is_better:
                actions[time] = action
        state = transitions[state, actions[time]]
        if state < 0:
            break  # the episode is over: no later choice has any effect
    return steps
