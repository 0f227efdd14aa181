"""A Problem: a table with a discount and an exploration policy, and what several bounds need of it, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.mdp import TabularMDP
from efhorizon.planning import _kernels as kernels
from efhorizon.planning.moments import ReturnMoments, return_moments
from efhorizon.planning.occupancy import OccupancyMinima, occupancy_minima
from efhorizon.planning.optimal import OptimalValues, optimal_values, worst_values
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.returns import MAX_POINTS, ReturnDistributions, return_distributions
from efhorizon.planning.rewards import RewardScale, reward_scale
from efhorizon.planning.sweeps import Sweep, sweeps
from efhorizon.planning.timeline import Timeline, timeline
from efhorizon.planning.values import policy_values

DEFAULT_MAX_K = 3
_PAIRS_A_BLOCK = 1 << 16


@dataclass(frozen=True)
class Exploration:
    """What Q-value iteration from the exploration policy's Q-function shows."""

    exploration_return: float
    sweeps: tuple[Sweep, ...]  # k = 1, 2, ... up to max_k and to the first that is solvable


@dataclass(frozen=True, eq=False)
class Problem:
    """What every bound is a function of. Derived parts are computed when first asked for, and kept."""

    mdp: TabularMDP
    policy: ExplorationPolicy
    gamma: float = 1.0
    max_k: int = DEFAULT_MAX_K
    exact: bool = True  # whether to look for the exact effective horizon

    @cached_property
    def timeline(self) -> Timeline:
        return timeline(self.mdp)

    @cached_property
    def scale(self) -> RewardScale:
        return reward_scale(self.mdp, gamma=self.gamma)

    @cached_property
    def optimal(self) -> OptimalValues:
        return optimal_values(self.timeline, gamma=self.gamma)

    @property
    def worst_number(self) -> Any:
        """The least that any action sequence gets from the start, in reward units: an integer where those are exact."""
        return self._worst[0]

    @property
    def worst_return(self) -> float:
        """The same as a reward."""
        return self._worst[1]

    @cached_property
    def _worst(self) -> tuple[Any, float]:
        values = worst_values(self.timeline, gamma=self.gamma)
        return values.numbers[0], values.reward()

    @cached_property
    def occupancy_minima(self) -> OccupancyMinima:
        return occupancy_minima(self.timeline, self.policy)

    @cached_property
    def exploration(self) -> Exploration:
        values = policy_values(self.timeline, self.policy, gamma=self.gamma)
        exploration_return = values.reward()
        found: list[Sweep] = []
        solved = False
        negative = self.rewards[0] < 0
        for sweep in sweeps(self.timeline, self.optimal, values, gaps_until=self.max_k, by_gap=negative):  # overwrites
            found.append(sweep)
            solved = solved or sweep.solvable
            if solved and sweep.k >= self.max_k:
                break
        return Exploration(exploration_return, tuple(found))

    @cached_property
    def num_reachable_states(self) -> int:
        """States that can be reached before the horizon: others play no part in any bound."""
        met = np.zeros(self.mdp.num_states, np.bool_)
        met[self.timeline.states] = True
        return int(met.sum())

    @cached_property
    def rewards(self) -> tuple[float, ...]:
        """The distinct rewards that an episode can meet, ascending."""
        used = np.zeros(len(self.mdp.reward_values), np.bool_)
        kernels.used_rewards(self.timeline.states, self.mdp.reward_codes, used)
        return tuple(np.unique(self.mdp.reward_values[used]).tolist())

    @cached_property
    def is_goal_mdp(self) -> bool:
        """Definition B.3: the only reward is paid on reaching a goal, where nothing more can be got.

        In a table that is one positive reward value, on transitions after which no reward can be got: mostly -1.
        """
        if self.rewards[0] < 0 or len([reward for reward in self.rewards if reward != 0]) != 1:
            return False
        line = self.timeline
        paying = self.mdp.reward_values != 0
        future = self.optimal.values.numbers > 0
        for start in range(0, line.num_pairs, _PAIRS_A_BLOCK):
            block = slice(start, start + _PAIRS_A_BLOCK)
            successors = line.successors[block]
            more = future[successors] & (successors >= 0) & paying[self.mdp.reward_codes[line.states[block]]]
            if more.any():
                return False
        return True

    @cached_property
    def goal_chances(self) -> NDArray[np.float64]:
        """The chance [P] that the exploration policy reaches the goal of a goal MDP, without discount.

        Always below 1, even where only rounding keeps it there.
        """
        values = policy_values(self.timeline, self.policy)
        pays = self.mdp.reward_values == self.rewards[-1]
        chances: NDArray[np.float64] = values.numbers / values.scale.units[pays].max()
        return np.minimum(chances, np.nextafter(1.0, 0.0), out=chances)

    @cached_property
    def uniform_ratio(self) -> float:
        """|| uniform / policy ||_inf = max over reachable t, s, a of 1 / (A pi_t(a | s)); infinite if some pi is 0."""
        if self.policy.is_uniform:
            return 1.0
        least = math.inf
        for time in range(self.mdp.horizon):
            layer = self.timeline.layer(time)
            if layer.stop > layer.start:
                least = min(least, float(self.policy.at(time)[self.timeline.states[layer]].min()))
        return 1.0 / (self.mdp.num_actions * least) if least > 0 else math.inf

    def return_moments(self, pairs: ArrayLike) -> ReturnMoments:
        """Moments of the exploration policy's return-to-go from some pairs (-1: an episode that is over)."""
        return return_moments(self.timeline, pairs, self.policy, gamma=self.gamma)

    def return_distributions(self, pairs: ArrayLike, *, max_points: int = MAX_POINTS) -> ReturnDistributions:
        """Distributions of the exploration policy's return-to-go from some pairs (-1: an episode that is over)."""
        return return_distributions(self.timeline, pairs, self.policy, gamma=self.gamma, max_points=max_points)

    def sweep(self, k: int) -> Sweep | None:
        """The sweep for one k, where there is one."""
        found = self.exploration.sweeps
        return found[k - 1] if 1 <= k <= len(found) else None


def problem(
    mdp: TabularMDP,
    *,
    gamma: float = 1.0,
    policy: ArrayLike | ExplorationPolicy | None = None,
    max_k: int = DEFAULT_MAX_K,
    exact: bool = True,
) -> Problem:
    """A validated Problem: a uniform exploration policy unless an array [S, A] or [T, S, A] is given."""
    reward_scale(mdp, gamma=gamma)  # refuses a bad discount
    return Problem(mdp, exploration_policy(mdp, policy), float(gamma), min(max(1, max_k), mdp.horizon), exact)


def effective_horizon_of(num_actions: int, k: int, m: float) -> float:
    """H_k = k + log_A m (Definition 5.2)."""
    if m <= 1:
        return float(k)
    return k + math.log(m) / math.log(num_actions) if num_actions > 1 else math.inf
