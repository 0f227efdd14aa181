"""Optimal values and actions by backward induction, and what the worst action sequence earns.

    V*_t(s) = max_a R(s, a) + gamma V*_{t+1}(f(s, a))         V*_T = 0

In two forms, with one rule for the best action (`_kernels._best_action`). `optimal_values` works on the (time, state)
pairs that can be reached and finds every optimal action: what all bounds build on. `optimal_plan` works on the states
of the table, without discount, and keeps one optimal action of each: for tables too large to unroll over time, and for
a policy to follow. Both count in reward units (integers) where rewards have a unit, so that ties are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.errors import InvalidTableError
from efhorizon.io.machine import available_memory
from efhorizon.mdp import TabularMDP
from efhorizon.planning import _kernels as kernels
from efhorizon.planning.rewards import RewardScale, reward_scale
from efhorizon.planning.threads import on_layer
from efhorizon.planning.timeline import Timeline
from efhorizon.planning.values import Values, relative_error, zero_values

_LEAST_CHECKED = 1 << 28  # bytes; less than that is always there
MOST_CHOICES = 16  # actions whose bits take no more memory than two plans


@dataclass(frozen=True)
class OptimalValues:
    """V*, the optimal actions, and the pairs that some optimal policy reaches (S^opt in the paper)."""

    values: Values
    actions: NDArray[np.bool_]  # [P, A]
    reached: NDArray[np.bool_]  # [P]
    undecided_ties: int  # different values that floats cannot order; both actions then count as optimal


@dataclass(frozen=True)
class OptimalPlan:
    """The optimal return, and one optimal action for each time and state."""

    optimal_return: float
    actions: NDArray[np.uint8]  # [T, S], or [1, S] where no episode can reach the horizon and time plays no part

    def action(self, time: int, state: int) -> int:
        return int(self.actions[min(time, len(self.actions) - 1), state])


@dataclass(frozen=True)
class OptimalChoices:
    """The optimal return, and every optimal action for each time and state, as bits: action a is bit a."""

    optimal_return: float
    bits: NDArray[np.unsignedinteger[Any]]  # [T, S], or [1, S] as in `OptimalPlan`
    num_actions: int

    def policy(self, ties: NDArray[np.int64] | None = None) -> Callable[[int, int], int]:
        """The action of a time and state: the lowest optimal one, or with `ties` [S] the first from there on."""

        def action(time: int, state: int) -> int:
            bits = int(self.bits[min(time, len(self.bits) - 1), state])
            first = 0 if ties is None else int(ties[state])
            turned = ((first + i) % self.num_actions for i in range(self.num_actions))
            return next((action for action in turned if bits >> action & 1), 0)

        return action


def optimal_values(timeline: Timeline, *, gamma: float = 1.0) -> OptimalValues:
    """V*_t(s) = max_a Q*_t(s, a) of every reachable pair, with every action that attains it."""
    values, actions, undecided = _maximum(timeline, reward_scale(timeline.mdp, gamma=gamma))
    reached = np.zeros(timeline.num_pairs, np.bool_)
    reached[0] = True
    for time in range(timeline.mdp.horizon):
        on_layer(kernels.mark_reached, timeline.layer(time), timeline.successors, actions, reached)
    return OptimalValues(values, actions, reached, undecided)


def worst_values(timeline: Timeline, *, gamma: float = 1.0) -> Values:
    """V_t(s) = min_a R(s, a) + gamma V_{t+1}(f(s, a)): the least that any action sequence gets."""
    scale = reward_scale(timeline.mdp, gamma=gamma)
    negated = RewardScale(-scale.units, scale.unit, scale.residues, scale.discount, scale.discount_residue)
    values = _maximum(timeline, negated)[0]
    np.negative(values.numbers, out=values.numbers)
    return Values(scale, values.numbers, values.residues[:0], values.magnitudes)


def optimal_plan(mdp: TabularMDP, rng: np.random.Generator | None = None) -> OptimalPlan:
    """An optimal policy; ties go to the lowest action, or to a random one with `rng`."""
    units, unit = _units(mdp)
    ties = np.zeros(0, np.int64) if rng is None else rng.integers(mdp.num_actions, size=mdp.num_states)
    value, actions = _induction(mdp, units, ties, keep_actions=True)
    return OptimalPlan(float(value * unit), actions)


def optimal_choices(mdp: TabularMDP) -> OptimalChoices:
    """Every optimal action, for several optimal policies at the cost of one; at most `MOST_CHOICES` actions."""
    if mdp.num_actions > MOST_CHOICES:
        raise ValueError(f"{mdp.num_actions} actions are more than {MOST_CHOICES}")
    units, unit = _units(mdp)
    table = kernels.Table(mdp.transitions, mdp.reward_codes, units)
    kind: np.dtype[Any] = np.dtype(np.uint8 if mdp.num_actions <= 8 else np.uint16)
    values = np.zeros(mdp.num_states, units.dtype)
    acyclic = graph.successors_first(mdp.transitions)
    if acyclic is not None and acyclic[1] <= mdp.horizon:
        bits: NDArray[Any] = np.zeros((1, mdp.num_states), kind)
        kernels.best_bits_along(acyclic[0], table, values, bits[0])
        return OptimalChoices(float(values[0].item() * unit), bits, mdp.num_actions)
    _check_plan(mdp, kind.itemsize)
    bits = np.zeros((mdp.horizon, mdp.num_states), kind)
    following, every = np.zeros_like(values), slice(0, mdp.num_states)
    for time in range(mdp.horizon - 1, -1, -1):
        on_layer(kernels.best_bits, every, table, following, values, bits[time])
        values, following = following, values
    return OptimalChoices(float(following[0].item() * unit), bits, mdp.num_actions)


def optimal_sum(mdp: TabularMDP, units: NDArray[np.int64]) -> int:
    """The largest sum of rewards that an action sequence gets, if the rewards are these whole numbers [R]."""
    return int(_induction(mdp, units, np.zeros(0, np.int64), keep_actions=False)[0])


def return_range(mdp: TabularMDP) -> tuple[float, float]:
    """The worst and the best return that any action sequence gets."""
    units, unit = _units(mdp)
    ties = np.zeros(0, np.int64)
    best, _ = _induction(mdp, units, ties, keep_actions=False)
    worst, _ = _induction(mdp, -units, ties, keep_actions=False)
    return float(-worst * unit), float(best * unit)


def is_degenerate(mdp: TabularMDP) -> bool:
    """Whether every action sequence pays the same, so that there is nothing to learn."""
    worst, best = return_range(mdp)
    return worst == best


def _maximum(timeline: Timeline, scale: RewardScale) -> tuple[Values, NDArray[np.bool_], int]:
    """V* of every pair, the actions that attain it, and how many ties are undecided."""
    values = zero_values(timeline, scale)
    actions = np.empty(timeline.successors.shape, np.bool_)
    steps, parts, undecided = timeline.steps, values.parts, 0
    for time in reversed(range(timeline.mdp.horizon)):
        error = relative_error(timeline, values, time)
        undecided += on_layer(kernels.maximise, timeline.layer(time), steps, parts, error, actions)
    return values, actions, undecided


def _units(mdp: TabularMDP) -> tuple[NDArray[Any], Fraction | float]:
    units = mdp.reward_units()
    return (mdp.reward_values, 1.0) if units is None else units


def _induction(
    mdp: TabularMDP, units: NDArray[Any], ties: NDArray[np.int64], *, keep_actions: bool
) -> tuple[Any, NDArray[np.uint8]]:
    """The value of the start state in reward units, and the best actions."""
    table = kernels.Table(mdp.transitions, mdp.reward_codes, units)
    values = np.zeros(mdp.num_states, units.dtype)
    acyclic = graph.successors_first(mdp.transitions)
    if acyclic is not None and acyclic[1] <= mdp.horizon:
        actions = np.zeros((1, mdp.num_states), np.uint8)
        kernels.best_actions_along(acyclic[0], table, ties, values, actions[0])
        return values[0].item(), actions
    if keep_actions:
        _check_plan(mdp, 1)
    actions = np.zeros((mdp.horizon if keep_actions else 1, mdp.num_states), np.uint8)
    following, every = np.zeros_like(values), slice(0, mdp.num_states)
    for time in range(mdp.horizon - 1, -1, -1):
        row = actions[time if keep_actions else 0]
        on_layer(kernels.best_actions, every, table, ties, following, values, row)
        values, following = following, values
    return following[0].item(), actions


def _check_plan(mdp: TabularMDP, bytes_an_entry: int) -> None:
    """Refuse a plan that does not fit, before memory is taken for it."""
    needed = mdp.horizon * mdp.num_states * bytes_an_entry
    if needed > _LEAST_CHECKED and needed > available_memory():
        raise InvalidTableError(
            f"a plan of {mdp.horizon:,} steps needs {needed:,} bytes of memory, more than is available"
        )
