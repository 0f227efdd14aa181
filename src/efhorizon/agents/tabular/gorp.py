"""GORP: Greedy Over Random Policy (Algorithm 1, section 5).

    for i = 1, ..., T:
        for each action sequence a_{i:i+k-1} in A^k:
            sample m episodes following pi_1, ..., pi_{i-1}, then a_{i:i+k-1}, and finally pi^expl
            Q_i(s_i, a_{i:i+k-1}) = the mean reward-to-go of these episodes
        pi_i(s_i) = arg max_{a_i} max_{a_{i+1:i+k-1}} Q_i(s_i, a_i, a_{i+1:i+k-1})

Ties, about which the paper says nothing, are broken uniformly at random among the maximising action *sequences*, as
the exact effective horizon (`bounds.exact_horizon`) assumes; or by one of the other rules of `gorp/ties.py`. Near the
horizon sequences are cut to the steps that are left: each would have the same number of copies, which changes no
chance. Timesteps: T^2 A^k m, as Lemma 5.3 counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from efhorizon.agents.tabular.kernels import TaskArrays, compared, rollouts, walked
from efhorizon.agents.tabular.runs import PreparedTable, Runs, check_positive, num_sequences, task
from efhorizon.agents.tabular.tie_order import TieBreaker, TieOrder
from efhorizon.compiled import Integers, Words, compiled, compiled_parallel, prange
from efhorizon.gorp.ties import Ties
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py


def gorp(
    mdp: TabularMDP,
    *,
    k: int,
    m: int,
    runs: int = 1,
    rng: np.random.Generator,
    exploration_policy: ArrayLike | ExplorationPolicy | None = None,
    ties: Ties = "uniform",
) -> Runs:
    """Run GORP(k, m, exploration policy) independently `runs` times."""
    check_positive(m=m, runs=runs)
    timesteps_of(mdp, k=k, m=m)  # refuses a bad k
    prepared = task(mdp, exploration_policy)
    return gorp_on_task(prepared, TieBreaker(prepared, k, ties), k=k, m=m, runs=runs, rng=rng)


def gorp_on_task(
    prepared: PreparedTable, breaker: TieBreaker, *, k: int, m: int, runs: int, rng: np.random.Generator
) -> Runs:
    """The same on a task that was prepared once for many calls."""
    check_positive(m=m, runs=runs)
    timesteps = timesteps_of(prepared.mdp, k=k, m=m)
    prepared.check_sum(m)
    return prepared.played(_gorp_runs, k, m, breaker.order(m), runs=runs, rng=rng, timesteps=timesteps)


def timesteps_of(mdp: TabularMDP, *, k: int, m: int) -> int:
    """T^2 A^k m: what one run costs."""
    return mdp.horizon**2 * num_sequences(mdp, k=k) * m


@compiled_parallel
def _gorp_runs(
    k: int, m: int, order: TieOrder, words: Words, task: TaskArrays, actions: Integers, steps: Integers
) -> None:
    for run in prange(len(words)):
        steps[run] = _gorp_run(k, m, order, words[run].copy(), task, actions[run])


@compiled
def _gorp_run(k: int, m: int, order: TieOrder, words: Words, task: TaskArrays, actions: Integers) -> int:
    """Fill in the actions [T] of one run, and return the steps that it played."""
    transitions, codes, units, _, _ = task
    horizon, num_actions = len(actions), transitions.shape[1]
    state, place, steps = 0, 0, 0
    for time in range(horizon):
        length = min(k, horizon - time)
        best, ties, chosen = 0, 0, 0
        for sequence in range(num_actions**length):
            end, prefix = walked(state, sequence, length, transitions, codes, units)
            total, played = rollouts(words, m, end, time + length, horizon, task)
            total += m * prefix
            steps += played + length
            first = sequence // num_actions ** (length - 1)
            if order.is_uniform:
                is_better, best, ties = compared(words, total, best, ties)
            else:
                is_tied = sequence > 0 and total == best
                is_better = sequence == 0 or total > best or (is_tied and _is_ahead(place, first, chosen, order))
                best = total if is_better else best
            if is_better:
                chosen = first
        actions[time] = chosen
        state = transitions[state, actions[time]]
        if state < 0:
            break  # the episode is over: no later choice has any effect
        if len(order.successors):
            place = order.successors[place, actions[time]]
    return steps


@compiled
def _is_ahead(place: int, action: int, other: int, order: TieOrder) -> bool:
    """Whether an action is taken rather than another with a lower number, if they tie."""
    return len(order.ranks) > 0 and order.ranks[place, action] < order.ranks[place, other]
