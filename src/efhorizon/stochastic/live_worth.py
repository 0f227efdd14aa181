"""What a policy found in an environment is worth: the mean of episodes with an interval, or exactly with a table.

    mean +- t_(n-1, 0.975) s / sqrt(n)        where returns differ
    mean +- 3 (highest - lowest) / n          where all n are equal: the rule of three, over the returns seen before

The policy has solved the environment if its return is within 1% of optimal: yes or no where the whole interval is on
one side of that, else undecided. What is optimal has to be known: from a table, or because the user says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from efhorizon.agents.deep.observations import FlatColumns, UntrainableTableError
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.live_episodes import LiveGame, Policy
from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.stochastic.observed import sticky_observed_table
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sqirl_live import LiveSqirl
from efhorizon.stochastic.training import is_solved

LEVEL = 0.95


class UnknownObservationsError(EfhorizonError):
    """A table that does not say what is observed in its states; the message is one line for the user."""


@dataclass(frozen=True)
class Worth:
    """The return of a policy."""

    value: float
    low: float
    high: float
    episodes: int  # 0: exact

    def is_success(self, optimal: float | None) -> bool | None:
        """Within 1% of optimal; None: undecided, or nobody knows what is optimal."""
        if optimal is None:
            return None
        above, below = is_solved(self.low, optimal), is_solved(self.high, optimal)
        return above if above == below else None


def estimated(game: LiveGame, found: LiveSqirl, episodes: int) -> Worth:
    """The mean return of so many episodes, with an interval of 95%."""
    returns = np.array([game.episode(found.policy, game.horizon, 0).total for _ in range(episodes)])
    mean = float(returns.mean())
    if episodes > 1 and returns.min() < returns.max():
        half = float(scipy.stats.t.ppf((1 + LEVEL) / 2, episodes - 1) * returns.std(ddof=1) / np.sqrt(episodes))
    else:
        lowest, highest = min(found.returns[0], mean), max(found.returns[1], mean)
        half = 3 * (highest - lowest) / episodes
    return Worth(mean, mean - half, mean + half, episodes)


@dataclass(frozen=True)
class Known:
    """A table with chance, and what is observed in each of its states."""

    mdp: StochasticMDP
    observations: NDArray[np.float32]  # [S, D]

    def worth(self, policy: Policy) -> tuple[Worth, float]:
        """The exact return of a policy, and the optimal one."""
        mdp, plan = self.mdp, Plan(self.mdp)
        shares = np.full((mdp.horizon, mdp.num_states, mdp.num_actions), 1.0 / mdp.num_actions)
        for time in range(mdp.horizon):
            for state in plan.layers.layer(time):
                action = policy.action(time, self.observations[state])
                if action is not None:
                    shares[time, state] = np.eye(mdp.num_actions)[action]
        value = plan.exploration(shares).at_start
        return Worth(value, value, value, 0), plan.optimal.values.at_start


def known(table: TabularMDP | StochasticMDP, chance: float, width: int, horizon: int) -> Known:
    """A table of the environment that is played in; a deterministic one with this chance of sticky actions."""
    if table.horizon != horizon:
        raise UnknownObservationsError(
            f"{table.metadata.get('id')}: its episodes have {table.horizon} steps, those of the environment {horizon}; "
            "give one --horizon for both"
        )
    if isinstance(table, TabularMDP):
        observed, made = sticky_observed_table(table, chance)
        if not isinstance(observed.seen, FlatColumns):
            raise UntrainableTableError(f"{observed.id}: its observations are pictures; SQIRL learns from flat ones")
        groups = observed.seen.groups
        seen = np.where(groups >= 0, observed.seen.values[:, np.maximum(groups, 0)], np.float32(0))
        return _checked(Known(made, seen[observed.observation].astype(np.float32)), width)
    if table.base_states is None:
        raise UnknownObservationsError(f"{table.metadata.get('id')}: the table does not say what is observed")
    return _checked(Known(table, np.eye(width, dtype=np.float32)[table.base_states]), width)


def _checked(found: Known, width: int) -> Known:
    if found.observations.shape[1] != width:
        raise UnknownObservationsError(
            f"{found.mdp.metadata.get('id')}: {found.observations.shape[1]} numbers are observed in the table, {width} "
            "in the environment"
        )
    return found
