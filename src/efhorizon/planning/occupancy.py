"""How often an exploration policy comes by: occupancy of states and pairs, and the chance of an optimal episode.

mu_1(s_1) = 1      mu_{t+1}(s') = sum over s, a with f(s, a) = s' of mu_t(s) pi_t(a | s)
mu_t(s, a) = mu_t(s) pi_t(a | s)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.planning import _kernels as kernels
from efhorizon.planning.optimal import OptimalValues
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.threads import on_layer
from efhorizon.planning.timeline import Timeline


@dataclass(frozen=True)
class OccupancyMinima:
    """The rarest state and state-action pair, over states that can be reached before the horizon.

    Published files call these `min_state_occupancy` and so on: the smallest over states (pairs) of the largest, or
    with `sum` of the total, over time.
    """

    num_states: int  # that can be reached before the horizon
    length: float  # of an episode, on average: sum_t sum_s mu_t(s)
    state: float  # min_s max_t mu_t(s)
    state_sum: float  # min_s sum_t mu_t(s)
    state_action: float  # min_(s, a) max_t mu_t(s, a)
    state_action_sum: float  # min_(s, a) sum_t mu_t(s, a)
    rarest: tuple[int, int]  # the (s, a) of state_action
    rarest_sum: tuple[int, int]  # the (s, a) of state_action_sum


def occupancy(timeline: Timeline, policy: ArrayLike | ExplorationPolicy | None = None) -> NDArray[np.float64]:
    """mu_t(s) of every pair [P]."""
    explorer = exploration_policy(timeline.mdp, policy)
    measure = np.zeros(timeline.num_pairs)
    measure[0] = 1.0
    for time in range(timeline.mdp.horizon - 1):
        layer = timeline.layer(time)
        on_layer(kernels.spread, layer, timeline.successors, timeline.states, explorer.at(time), measure)
    return measure


def occupancy_minima(timeline: Timeline, policy: ArrayLike | ExplorationPolicy | None = None) -> OccupancyMinima:
    """The smallest occupancies, from which the covering length is bounded."""
    explorer = exploration_policy(timeline.mdp, policy)
    measure = occupancy(timeline, explorer)
    num_states, num_actions = timeline.mdp.num_states, timeline.mdp.num_actions
    met = np.zeros(num_states, np.bool_)
    met[timeline.states] = True
    largest, total = _over_time(timeline, measure, num_states)
    if explorer.is_stationary:
        # pi does not depend on time, so the rarest pair of a state is its rarest action.
        rarest_actions = np.zeros(num_states, np.int64) if explorer.is_uniform else explorer.at(0).argmin(axis=1)
        shares = 1 / num_actions if explorer.is_uniform else explorer.at(0).min(axis=1)
        pair_largest, pair_total = largest * shares, total * shares
        actions_of_largest = actions_of_total = rarest_actions
    else:
        by_action = [
            _over_time(timeline, _weighted(timeline, explorer, measure, a), num_states) for a in range(num_actions)
        ]
        columns = np.stack([column for column, _ in by_action], axis=1), np.stack([c for _, c in by_action], axis=1)
        pair_largest, pair_total = columns[0].min(axis=1), columns[1].min(axis=1)
        actions_of_largest, actions_of_total = columns[0].argmin(axis=1), columns[1].argmin(axis=1)
    unmet = ~met
    for array in (largest, total, pair_largest, pair_total):
        array[unmet] = np.inf
    rarest, rarest_sum = int(pair_largest.argmin()), int(pair_total.argmin())
    return OccupancyMinima(
        num_states=int(met.sum()),
        length=float(measure.sum()),
        state=float(largest.min()),
        state_sum=float(total.min()),
        state_action=float(pair_largest[rarest]),
        state_action_sum=float(pair_total[rarest_sum]),
        rarest=(rarest, int(actions_of_largest[rarest])),
        rarest_sum=(rarest_sum, int(actions_of_total[rarest_sum])),
    )


def optimal_return_probability(
    timeline: Timeline, optimal: OptimalValues, policy: ArrayLike | ExplorationPolicy | None = None
) -> float:
    """The chance that an episode of the exploration policy gets the optimal return: that every action is optimal."""
    explorer = exploration_policy(timeline.mdp, policy)
    chances = np.zeros(timeline.num_pairs)
    for time in reversed(range(timeline.mdp.horizon)):
        layer = timeline.layer(time)
        on_layer(
            kernels.optimal_probability,
            layer,
            timeline.successors,
            timeline.states,
            explorer.at(time),
            optimal.actions,
            chances,
        )
    return float(chances[0])


def _over_time(
    timeline: Timeline, measure: NDArray[np.float64], num_states: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest and the total over time, for every state [S]."""
    largest, total = np.zeros(num_states), np.zeros(num_states)
    for time in range(timeline.mdp.horizon):
        layer = timeline.layer(time)
        states = timeline.states[layer]  # each once, so these assignments do not collide
        largest[states] = np.maximum(largest[states], measure[layer])
        total[states] += measure[layer]
    return largest, total


def _weighted(
    timeline: Timeline, explorer: ExplorationPolicy, measure: NDArray[np.float64], action: int
) -> NDArray[np.float64]:
    """mu_t(s, a) of one action for every pair [P]."""
    weighted = measure.copy()
    for time in range(timeline.mdp.horizon):
        layer = timeline.layer(time)
        weighted[layer] *= explorer.at(time)[timeline.states[layer], action]
    return weighted
