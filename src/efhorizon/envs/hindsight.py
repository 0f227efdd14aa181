"""What only a table can tell an agent: V* and Q* of where it is, and what its actions have cost so far.

The regret of an episode is the sum of V*_t(s_t) - Q*_t(s_t, a_t). At its end that is the optimal return less the return
that was had. It is counted in reward units, so it is exactly 0 for optimal play.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.mdp import TabularMDP
from efhorizon.planning.arrays import as_rewards
from efhorizon.planning.optimal import optimal_values
from efhorizon.planning.timeline import timeline


class Hindsight:
    """Optimal values along n episodes. Pair -1 is the end; it has value 0."""

    def __init__(self, mdp: TabularMDP, num_episodes: int) -> None:
        line = timeline(mdp)
        self._successors, self._states = line.successors, line.states
        self._optimal = optimal_values(line).values
        self._codes, self._units = mdp.reward_codes, self._optimal.units
        self._values = np.append(self._optimal.numbers, self._optimal.numbers.dtype.type(0))  # [P + 1], 0 at -1
        self._pairs = np.zeros(num_episodes, np.int64)
        self._lost = np.zeros(num_episodes, self._values.dtype)

    def restart(self, episodes: NDArray[np.bool_] | None = None) -> None:
        """Some episodes begin again, or all."""
        self._pairs[... if episodes is None else episodes] = 0
        self._lost[... if episodes is None else episodes] = 0

    def follow(self, actions: NDArray[Any]) -> None:
        """An action was taken in every episode; those that are over stay there."""
        playing = self._pairs >= 0
        pairs, taken = self._pairs[playing], actions[playing]
        following = self._successors[pairs, taken]
        worth = self._units[self._codes[self._states[pairs], taken]] + self._values[following]
        self._lost[playing] += self._values[pairs] - worth
        self._pairs[playing] = following

    @property
    def optimal_values(self) -> NDArray[np.float64]:
        """V* of where each episode is [n]; 0 at the end."""
        return as_rewards(self._optimal, self._values[self._pairs])

    @property
    def optimal_q_values(self) -> NDArray[np.float64]:
        """Q* of every action there [n, A]; 0 at the end."""
        rewards = self._units[self._codes[self._states[self._pairs]]]
        worth = rewards + self._values[self._successors[self._pairs]]
        return as_rewards(self._optimal, np.where(self._pairs[:, None] >= 0, worth, 0))

    @property
    def regrets(self) -> NDArray[np.float64]:
        """What the actions of each episode have cost so far [n]."""
        return as_rewards(self._optimal, self._lost)
