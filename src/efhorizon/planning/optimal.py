"""Optimal and worst returns, and optimal actions, by backward induction.

V*_t(s) = max_a R(s, a) + V*_{t+1}(f(s, a)), with V*_T = 0. In reward units (integers) where rewards have a unit, so
that ties are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.mdp import TabularMDP
from efhorizon.planning import _kernels
from efhorizon.planning._threads import on_layer


@dataclass(frozen=True)
class OptimalPlan:
    """The optimal return, and one optimal action for each time and state."""

    optimal_return: float
    actions: NDArray[np.uint8]  # [T, S], or [1, S] where no episode can reach the horizon and time plays no part

    def action(self, time: int, state: int) -> int:
        return int(self.actions[min(time, len(self.actions) - 1), state])


def optimal_plan(mdp: TabularMDP, rng: np.random.Generator | None = None) -> OptimalPlan:
    """An optimal policy; ties go to the lowest action, or to a random one with `rng`."""
    units, unit = _units(mdp)
    ties = None if rng is None else rng.integers(mdp.num_actions, size=mdp.num_states)
    value, actions = _induction(mdp, units, ties, keep_actions=True)
    return OptimalPlan(float(value * unit), actions)


def return_range(mdp: TabularMDP) -> tuple[float, float]:
    """The worst and the best return that any action sequence gets."""
    units, unit = _units(mdp)
    best, _ = _induction(mdp, units, None, keep_actions=False)
    worst, _ = _induction(mdp, -units, None, keep_actions=False)
    return float(-worst * unit), float(best * unit)


def is_degenerate(mdp: TabularMDP) -> bool:
    """Whether every action sequence pays the same, so that there is nothing to learn."""
    worst, best = return_range(mdp)
    return worst == best


def _units(mdp: TabularMDP) -> tuple[NDArray[Any], Fraction | float]:
    units = mdp.reward_units()
    return (mdp.reward_values, 1.0) if units is None else units


def _induction(
    mdp: TabularMDP, units: NDArray[Any], ties: NDArray[np.int64] | None, *, keep_actions: bool
) -> tuple[Any, NDArray[np.uint8]]:
    """The value of the start state in reward units, and the best actions."""
    values = np.zeros(mdp.num_states, units.dtype)
    acyclic = graph.successors_first(mdp.transitions)
    if acyclic is not None and acyclic[1] <= mdp.horizon:
        actions = np.zeros((1, mdp.num_states), np.uint8)
        ties = np.zeros(mdp.num_states, np.int64) if ties is None else ties
        _kernels.best_actions_along(acyclic[0], mdp.transitions, mdp.reward_codes, units, ties, values, actions[0])
        return values[0].item(), actions
    actions = np.zeros((mdp.horizon if keep_actions else 1, mdp.num_states), np.uint8)
    following = np.zeros_like(values)
    for time in range(mdp.horizon - 1, -1, -1):
        row = actions[time if keep_actions else 0]
        table = (mdp.transitions, mdp.reward_codes, units)
        if ties is None:
            on_layer(_kernels.lowest_best_actions, slice(0, mdp.num_states), *table, following, values, row)
        else:
            on_layer(_kernels.best_actions, slice(0, mdp.num_states), *table, ties, following, values, row)
        values, following = following, values
    return following[0].item(), actions
