"""Optimal play that does not dawdle: of all optimal actions those that maximise the sum of (T - t) R_t.

Without that rule a gridworld, which pays success at any time, would count an agent that spins until the last moment as
well as one that walks to the goal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning.optimal import OptimalValues
from efhorizon.planning.timeline import Timeline

_NEVER = np.iinfo(np.int64).min // 2  # less than any sum of rewards in units
_EQUAL = 1e-9  # floats that differ by less, in proportion, count as equal


def earliest_actions(timeline: Timeline, optimal: OptimalValues) -> NDArray[np.bool_]:
    """Which actions [P, A] are optimal and paid as early as can be."""
    mdp = timeline.mdp
    units = optimal.values.scale.sum_units
    earliness = np.zeros(timeline.num_pairs, units.dtype)
    found = np.zeros(optimal.actions.shape, np.bool_)
    for time in reversed(range(mdp.horizon)):
        layer = timeline.layer(time)
        successors = timeline.successors[layer]
        following = np.where(successors >= 0, earliness[successors], 0)
        score = (mdp.horizon - time) * units[mdp.reward_codes[timeline.states[layer]]] + following
        score = np.where(optimal.actions[layer], score, _NEVER)
        best = score.max(axis=1)
        margin = 0 if units.dtype.kind == "i" else _EQUAL * np.abs(best)
        found[layer], earliness[layer] = score >= (best - margin)[:, None], best
    return found


def earliest_pairs(timeline: Timeline, optimal: OptimalValues) -> NDArray[np.bool_]:
    """Which pairs [P] such play can meet."""
    actions = earliest_actions(timeline, optimal)
    met = np.zeros(timeline.num_pairs, np.bool_)
    met[0] = True
    for time in range(timeline.mdp.horizon):
        here = np.flatnonzero(met[timeline.layer(time)]) + timeline.layer(time).start
        after = timeline.successors[here][actions[here]]
        met[after[after >= 0]] = True
    return met
