"""Q-value iteration and greedy policies: Q' = QVI(Q), and whether every policy greedy with respect to it is optimal.

    Q'_t(s, a) = R(s, a) + gamma max_a' Q_{t+1}(f(s, a), a')

A policy is optimal if its return from the start state is (section 2 of the paper), so what it would do in states that
it never reaches does not matter. Every greedy policy is therefore optimal if and only if, in every state that some
greedy policy reaches from the start, all greedy actions are optimal: if one is not, the policy that goes there and
takes it loses; if all are, none ever loses. That is what a sweep checks, forward from the start.

Sweeps run in place: Q'_t needs V_{t+1} as it was, so a pass with ascending time may overwrite V_t. With k steps to go
or fewer, Q^k is Q*: its greedy actions are the optimal ones, and later sweeps need not look there again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning import _kernels as kernels
from efhorizon.planning.optimal import OptimalValues
from efhorizon.planning.threads import on_layer
from efhorizon.planning.timeline import Timeline
from efhorizon.planning.values import Values, action_values, relative_error


@dataclass(frozen=True)
class Witness:
    """A pair (time, state) that decides a result, with its values as rewards; time counts from 0."""

    time: int
    state: int
    pair: int
    q_values: tuple[float, ...]  # [A], of the Q-function at hand
    optimal_q_values: tuple[float, ...]  # [A]
    optimal_value: float
    gap: float | None  # best minus second-best of the Q-function; None where all actions tie
    margin: float | None = None  # best minus the best of the actions that are not optimal; None where all are
    k: int = 1  # the Q-function at hand is Q^k


@dataclass(frozen=True)
class Sweep:
    """What one Q-function says: k = 1 for the first."""

    k: int
    solvable: bool  # every greedy policy is optimal
    failure: Witness | None  # the first pair of a greedy policy where a greedy action is not optimal
    undecided: bool  # not solvable only because floats cannot order some values
    hardest: Witness | None  # where max_a Q V* / gap^2 is largest, over pairs of optimal policies; None: see gaps_until
    hardness: float  # that ratio, rounded up; 0 where no pair has a gap, infinite where floats cannot tell a gap from 0
    least_optimal: Witness | None  # where an optimal action has the smallest Q, over pairs of optimal policies, V* > 0
    least_optimal_q: float  # that Q, as a reward
    riskiest: Witness | None  # where max_a Q V* / margin^2 is largest, over pairs of greedy policies
    risk: float  # that ratio, rounded up; 0 where greedy policies meet optimal actions only
    closest_mistake: Witness | None  # where the same ratio is largest over pairs of optimal policies
    mistake: float  # that ratio, rounded up; infinite where an action that is not optimal may have the largest Q there


def sweeps(
    timeline: Timeline,
    optimal: OptimalValues,
    initial: Values,
    *,
    gaps_until: int | None = None,
    by_gap: bool = False,
) -> Iterator[Sweep]:
    """Sweeps for k = 1 .. T, where Q^1_t(s, a) = R(s, a) + gamma V_{t+1}(s') with V = initial, which is overwritten.

    Gaps take longer; they are looked at for k up to `gaps_until` only, if that is given. With `by_gap`, Q V* in
    hardness and risk gives way to 1, so that the smallest gap or margin decides: for rewards that may be negative.
    """
    horizon = timeline.mdp.horizon
    changed = np.ones(horizon + 1, np.bool_)
    for k in range(1, horizon + 1):
        with_gaps = k <= (horizon if gaps_until is None else gaps_until)
        sweep, changed = _sweep(k, timeline, optimal, initial, changed, with_gaps=with_gaps, by_gap=by_gap)
        yield sweep


def _sweep(
    k: int,
    timeline: Timeline,
    optimal: OptimalValues,
    values: Values,
    last_changed: NDArray[np.bool_],
    *,
    with_gaps: bool,
    by_gap: bool,
) -> tuple[Sweep, NDArray[np.bool_]]:
    """A sweep, and at which times it changed a value [T + 1]; `last_changed` says so of the sweep before.

    V_t is a function of V_{t+1} as the sweep before left it. Where that was not changed, V_t does not change either,
    and once it is known that the sweep fails, nothing else is asked of such a time: with few rewards, most of a sweep.
    """
    changed = np.zeros(timeline.mdp.horizon + 1, np.bool_)
    sizes = np.append(np.diff(timeline.starts), 0)
    width = int(sizes.max())
    verdict = np.empty(width, np.uint8)
    hardness, least, risk, mistake = np.empty((4, width if with_gaps else 0))
    greedy = np.ones(1, np.uint8)
    steps, parts = timeline.steps, values.parts
    best = kernels.Optimum(optimal.values.numbers, optimal.actions, optimal.reached)
    failure: Witness | None = None
    undecided, largest, smallest, most_risk, worst_mistake = False, 0.0, np.inf, 0.0, 0.0
    hardest: Witness | None = None
    least_optimal: Witness | None = None
    riskiest: Witness | None = None
    closest_mistake: Witness | None = None
    horizon = timeline.mdp.horizon
    for time in range(horizon if with_gaps else horizon - k + 1):
        layer, size = timeline.layer(time), int(sizes[time])
        if failure is not None and not with_gaps and not last_changed[time + 1]:
            greedy = np.zeros(int(sizes[time + 1]), np.uint8)  # who is greedy no longer matters
            continue
        greedy_next = np.zeros(int(sizes[time + 1]), np.uint8)
        greed = kernels.Greed(layer.start, layer.stop, greedy, greedy_next, verdict, hardness, least, risk, mistake)
        error = relative_error(timeline, values, time)
        following = _Row(k, timeline, optimal, values, time)
        before = None if with_gaps else [part[layer].copy() for part in _numbers(values)]
        on_layer(kernels.greedy_sweep, layer, steps, parts, error, best, greed, by_gap)
        changed[time] = before is None or not all(
            np.array_equal(old, new[layer]) for old, new in zip(before, _numbers(values), strict=True)
        )
        if size and failure is None and verdict[:size].any():
            place = int(np.flatnonzero(verdict[:size])[0])
            failure, undecided = following.witness(place), verdict[place] == kernels.UNCERTAIN
        if size and with_gaps and hardness[:size].max() > largest:
            place = int(hardness[:size].argmax())
            largest, hardest = float(hardness[place]), following.witness(place)
        if size and with_gaps and least[:size].min() < smallest:
            place = int(least[:size].argmin())
            smallest, least_optimal = float(least[place]), following.witness(place)
        if size and with_gaps and risk[:size].max() > most_risk:
            place = int(risk[:size].argmax())
            most_risk, riskiest = float(risk[place]), following.witness(place)
        if size and with_gaps and mistake[:size].max() > worst_mistake:
            place = int(mistake[:size].argmax())
            worst_mistake, closest_mistake = float(mistake[place]), following.witness(place)
        greedy = greedy_next
    sweep = Sweep(
        k=k,
        solvable=failure is None,
        failure=failure,
        undecided=undecided,
        hardest=hardest,
        hardness=largest,
        least_optimal=least_optimal,
        least_optimal_q=values.scale.reward(smallest),
        riskiest=riskiest,
        risk=most_risk,
        closest_mistake=closest_mistake,
        mistake=worst_mistake,
    )
    return sweep, changed


def _numbers(values: Values) -> tuple[NDArray[Any], ...]:
    """All that a value is made of, as far as it is there."""
    return tuple(part for part in (values.numbers, values.residues, values.magnitudes) if len(part))


@dataclass(frozen=True)
class _Row:
    """Witnesses of one layer, while the next layer still holds the previous values."""

    k: int
    timeline: Timeline
    optimal: OptimalValues
    values: Values
    time: int

    def witness(self, place: int) -> Witness:
        pair = self.timeline.layer(self.time).start + place
        row = action_values(self.timeline, self.values, pair)
        best_row = action_values(self.timeline, self.optimal.values, pair)
        error = relative_error(self.timeline, self.values, self.time)
        best = row.max()
        below = row[best - row > 2 * error * abs(best)]
        mistakes = row[~self.optimal.actions[pair]]
        reward = self.values.scale.reward
        return Witness(
            time=self.time,
            state=int(self.timeline.states[pair]),
            pair=pair,
            q_values=tuple(reward(q) for q in row.tolist()),
            optimal_q_values=tuple(reward(q) for q in best_row.tolist()),
            optimal_value=self.optimal.values.reward(pair),
            gap=reward((best - below.max()).item()) if len(below) else None,
            margin=reward((best - mistakes.max()).item()) if len(mistakes) else None,
            k=self.k,
        )
