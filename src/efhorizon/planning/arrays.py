"""Values and policies of a whole table as plain arrays, for people who calculate on with them.

Legend: T the horizon, S states, A actions, P reachable (time, state) pairs. Other parts of the package work on the P
pairs; T times S can be far more, so arrays that would not fit in memory are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.io.machine import available_memory
from efhorizon.mdp import TabularMDP
from efhorizon.planning import optimal
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.timeline import Timeline, timeline
from efhorizon.planning.values import Values, action_values, policy_values

_LEAST_CHECKED = 1 << 28  # bytes; less than that is always there


def optimal_values(mdp: TabularMDP, *, gamma: float = 1.0) -> NDArray[np.float64]:
    """V*_t(s) [T, S]; NaN for pairs that cannot be reached."""
    line = _timeline(mdp)
    values = optimal.optimal_values(line, gamma=gamma).values
    return _by_time(line, as_rewards(values, values.numbers), np.nan)


def q_values(
    mdp: TabularMDP, policy: ArrayLike | ExplorationPolicy | None = None, *, gamma: float = 1.0
) -> NDArray[np.float64]:
    """Q_t(s, a) [T, S, A] of a policy, or Q* where none is given; NaN for pairs that cannot be reached."""
    line = _timeline(mdp)
    if policy is None:
        values = optimal.optimal_values(line, gamma=gamma).values
    else:
        values = policy_values(line, policy, gamma=gamma)
    return _by_time(line, as_rewards(values, action_values(line, values, slice(None))), np.nan)


def optimal_policy(mdp: TabularMDP, *, gamma: float = 1.0) -> NDArray[np.float64]:
    """Every optimal action equally likely [T, S, A]; every action, for pairs that cannot be reached."""
    line = _timeline(mdp)
    actions = optimal.optimal_values(line, gamma=gamma).actions
    return _by_time(line, actions / actions.sum(axis=1, keepdims=True), 1 / mdp.num_actions)


def random_policy(mdp: TabularMDP) -> NDArray[np.float64]:
    """Every action equally likely [T, S, A]."""
    return _filled((mdp.horizon, mdp.num_states, mdp.num_actions), 1 / mdp.num_actions)


def as_rewards(values: Values, numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Values in reward units as rewards: 3 tenths are 0.3, not 3 times 0.1."""
    unit = values.scale.unit
    rewards: NDArray[np.float64] = numbers * float(unit.numerator) / float(unit.denominator)
    return rewards


def _timeline(mdp: TabularMDP) -> Timeline:
    if not mdp.is_complete:
        raise InvalidTableError("the table is unfinished: values of states that were not explored are unknown")
    return timeline(mdp)


def _by_time(line: Timeline, of_pairs: NDArray[np.float64], elsewhere: float) -> NDArray[np.float64]:
    """What pairs have [P, ...] as an array [T, S, ...]."""
    mdp = line.mdp
    times = np.repeat(np.arange(mdp.horizon), np.diff(line.starts))
    array = _filled((mdp.horizon, mdp.num_states, *of_pairs.shape[1:]), elsewhere)
    array[times, line.states] = of_pairs
    return array


def _filled(shape: tuple[int, ...], value: float) -> NDArray[np.float64]:
    needed = int(np.prod(shape, dtype=object)) * np.dtype(np.float64).itemsize
    if needed > _LEAST_CHECKED and needed > available_memory():
        raise InvalidTableError(
            f"an array {list(shape)} needs {needed:,} bytes of memory, more than is available; "
            "a shorter horizon needs less (with_horizon)"
        )
    return np.full(shape, value)
