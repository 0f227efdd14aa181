"""SQIRL with a network (extra `train`): regression by an MLP with one head for each step of k.

Head 1 is fitted to returns (Q^1), head j to r + max_a' of head j - 1 in the next state (Q^j); the policy is greedy on
head k. Adam with learning rate 1e-4, batches of 128, 10 epochs at each timestep, over the data of all timesteps so far:
one network for all of them, which sees what PPO and DQN see, not the time and not the previous action. With
fewer than k steps left, the policy is greedy on the head for as many steps as are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from efhorizon.agents.deep.observations import FlatColumns, ObservedTable, UntrainableTableError
from efhorizon.agents.streams import streams
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sqirl import InvalidSqirlError, empty_played, play
from efhorizon.stochastic.sqirl_learner import HeadsLearner, SqirlSettings
from efhorizon.stochastic.training import is_solved

BEHAVIOUR = 1  # raise it when the same inputs give another result


@dataclass(frozen=True)
class NetworkRun:
    """One run: the exact return of its policy, and the timesteps played."""

    found_return: float
    optimal_return: float
    timesteps: int

    @property
    def is_success(self) -> bool:
        return is_solved(self.found_return, self.optimal_return)


def sqirl_network(
    plan: Plan,
    table: ObservedTable,
    *,
    k: int,
    m: int,
    seed: int,
    settings: SqirlSettings | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> NetworkRun:
    """One run on a table whose nodes are the states of the plan's MDP (see `observed.py`)."""
    mdp = plan.mdp
    if not 1 <= k <= mdp.horizon or m < 1:
        raise InvalidSqirlError(f"SQIRL needs 1 <= k <= T and at least one episode; got k={k}, m={m}")
    if not isinstance(table.seen, FlatColumns):
        raise UntrainableTableError(f"{table.id}: SQIRL's network is for flat observations")
    learner = HeadsLearner(table.seen.values, k, mdp.num_actions, seed, settings or SqirlSettings())
    words = streams(np.random.default_rng([seed, 2]), 1)[0]
    actions = np.zeros((mdp.horizon, mdp.num_states), np.int32)
    starts, timesteps, played = np.cumsum(mdp.initial_probabilities), 0, empty_played(m, k)
    for time in range(mdp.horizon):
        steps = min(k, mdp.horizon - time)
        timesteps += play(plan.outcomes, time, steps, mdp.initial_states, starts, words, actions, played)
        for place in range(steps):
            met = played.path[:, place] >= 0
            following = played.path[met, place + 1]
            learner.add(
                steps - 1 - place,  # the last step of the plan is that of head 1, which is number 0
                table.observation[played.path[met, place]],
                played.taken[met, place],
                played.rewards[met, place] + (played.tails[met] if place == steps - 1 else 0.0),
                np.where(following >= 0, table.observation[np.maximum(following, 0)], -1),
            )
        learner.fit()
        actions[time] = learner.greedy(steps - 1)[table.observation]
        if on_progress is not None:
            on_progress(time + 1)
    return NetworkRun(plan.return_of(actions), plan.optimal.values.at_start, timesteps)
