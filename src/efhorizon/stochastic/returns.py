"""The distribution of the return of a policy, exactly: forward over (state, return so far).

Rewards must have a unit, so that returns lie on a lattice: return = unit * integer.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.compiled import Floats, Integers, compiled
from efhorizon.errors import InvalidTableError
from efhorizon.stochastic import _kernels as kernels
from efhorizon.stochastic.planning import Plan, checked_policy

_MAX_CELLS = 1 << 28  # (state, return) cells in memory: two arrays of float64


@dataclass(frozen=True)
class ReturnDistribution:
    """Returns [G] in ascending order, each with its probability [G]."""

    returns: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return float(self.returns @ self.probabilities)

    @property
    def variance(self) -> float:
        return float((self.returns - self.mean) ** 2 @ self.probabilities)


def return_distribution(plan: Plan, policy: ArrayLike | None = None) -> ReturnDistribution:
    """Of a policy [S, A] or [T, S, A], by default the uniform one."""
    mdp = plan.mdp
    units, unit = reward_units(mdp.reward_values)
    low, high = min(0, int(units.min())) * mdp.horizon, max(0, int(units.max())) * mdp.horizon
    width = high - low + 1
    if width * mdp.num_states > _MAX_CELLS:
        raise InvalidTableError(f"{width:,} different returns are too many for {mdp.num_states:,} states")
    probabilities = checked_policy(mdp, policy)
    uniform = np.empty((0, mdp.num_actions))
    here = np.zeros((mdp.num_states, width))
    here[mdp.initial_states, -low] = mdp.initial_probabilities
    over = np.zeros(width)
    for time in range(mdp.horizon):
        now = uniform if probabilities is None else probabilities[min(time, len(probabilities) - 1)]
        following = np.zeros_like(here)
        _spread_returns(plan.outcomes, plan.layers.layer(time), units, now, here, following, over)
        here = following
    total = over + here.sum(axis=0)
    found = np.flatnonzero(total > 0)
    values = np.array([float((int(place) + low) * unit) for place in found])
    return ReturnDistribution(values, total[found])


def reward_units(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Fraction]:
    """Rewards as integers [R] times one unit."""
    fractions = [Fraction(repr(value)) for value in values.tolist()]
    denominator = lcm(*(fraction.denominator for fraction in fractions))
    numerators = [int(fraction * denominator) for fraction in fractions]
    divisor = gcd(*numerators) or 1
    if max(abs(number) // divisor for number in numerators) > 2**31:
        raise InvalidTableError("the rewards have no practical unit, so returns are not on a lattice")
    return np.array([number // divisor for number in numerators], np.int64), Fraction(divisor, denominator)


@compiled
def _spread_returns(
    outcomes: kernels.Outcomes,
    states: Integers,
    units: Integers,
    policy: Floats,
    here: Any,
    following: Any,
    over: Floats,
) -> None:
    num_actions = outcomes.num_actions
    width = here.shape[1]
    for i in range(len(states)):
        state = states[i]
        for action in range(num_actions):
            weight = policy[state, action] if len(policy) else 1.0 / num_actions
            if weight <= 0.0:
                continue
            pair = state * num_actions + action
            for j in range(outcomes.offsets[pair], outcomes.offsets[pair + 1]):
                share = weight * outcomes.probabilities[outcomes.probability_codes[j]]
                shift = units[outcomes.reward_codes[j]]
                successor = outcomes.successors[j]
                for place in range(max(0, -shift), min(width, width - shift)):
                    mass = here[state, place]
                    if mass > 0.0:
                        if successor >= 0:
                            following[successor, place + shift] += share * mass
                        else:
                            over[place + shift] += share * mass
