"""Tables whose rewards depend on the time: one state for each (time, state) pair, and no more than are different."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build import consolidate
from efhorizon.mdp import TabularMDP
from efhorizon.planning.timeline import Timeline
from efhorizon.transform.derived import Rewards, derived, within_reach


def timed_table(
    mdp: TabularMDP,
    line: Timeline,
    usual: NDArray[Any],
    last: NDArray[Any],
    values: NDArray[np.float64],
    *,
    label: str,
    change: Mapping[str, Any],
) -> TabularMDP:
    """A table that pays `usual` [S, A] at every step but the last, and `last` [S, A] then, as codes into `values`.

    `line` is the timeline of the moves. If no state that can be met at the last step is met before it, or if it pays
    the same, the states stay as they are, without those out of reach. Else pairs (time, state) become states, and pairs
    of one state that pay the same and lead to the same become one.
    """
    at_end, before = np.zeros((2, mdp.num_states), np.bool_)
    final = line.layer(line.mdp.horizon - 1)
    at_end[line.states[final]] = True
    before[line.states[: final.start]] = True
    differs = at_end & (usual != last).any(axis=1)
    horizon = line.mdp.horizon
    if not (differs & before).any():
        states, transitions = within_reach(line.mdp.transitions, horizon)
        rewards = _coded(np.where(differs[:, None], last, usual)[states], values)
        return derived(mdp, transitions, rewards, horizon, origin=states, label=label, change=change)
    codes = usual[line.states]
    codes[final] = last[line.states[final]]
    class_of = consolidate.classes(line.successors, codes, line.states, "paper")
    between, first = consolidate.quotient(line.successors, class_of)
    rewards = _coded(codes[first], values)
    changed = {**change, "unrolled": True}
    return derived(mdp, between, rewards, horizon, origin=line.states[first], label=label, change=changed)


def _coded(codes: NDArray[Any], values: NDArray[np.float64]) -> Rewards:
    """Codes without values that nobody is paid."""
    used, dense = np.unique(codes, return_inverse=True)
    return dense.reshape(codes.shape).astype(np.min_scalar_type(len(used) - 1)), values[used]
