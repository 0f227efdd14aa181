"""Each action taken several times in a row: frameskip, on the table."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.timeline import timeline
from efhorizon.transform.derived import require_complete
from efhorizon.transform.rewards import exact_values
from efhorizon.transform.unrolled import timed_table


def with_action_repeat(mdp: TabularMDP, times: int) -> TabularMDP:
    """A table of horizon ceil(T / times) where one step is `times` steps with the same action.

    If the horizon is no multiple of `times`, the last action is repeated for the steps that are left.
    """
    if isinstance(times, bool) or not isinstance(times, int | np.integer) or times < 1:
        raise InvalidTableError(f"an action is repeated a positive number of times, got {times!r}")
    require_complete(mdp, "repeating actions")
    times = min(int(times), mdp.horizon)
    horizon, left = -(-mdp.horizon // times), mdp.horizon % times
    usual, last, ends, unit = _repeated(mdp, times, left or times)
    numbers, codes = np.unique(np.stack([usual, last]), return_inverse=True)
    codes = codes.reshape(2, *usual.shape)
    values = numbers if unit is None else exact_values(numbers, unit)
    if values is None:
        raise InvalidTableError(f"sums of {times} rewards have more digits than a table can hold")
    moves = TabularMDP(ends, np.zeros(ends.shape), horizon)
    label, change = f"repeat{times}", {"change": "action repeat", "times": times}
    return timed_table(mdp, timeline(moves), codes[0], codes[1], values, label=label, change=change)


def _repeated(
    mdp: TabularMDP, times: int, left: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int32], Fraction | None]:
    """Sums of rewards over `times` and over `left` steps [S, A], where the former lead, and the rewards' unit."""
    units = mdp.reward_units()
    rewards: NDArray[Any] = (mdp.reward_values if units is None else units[0])[mdp.reward_codes]
    actions = np.arange(mdp.num_actions)
    places = np.repeat(np.arange(mdp.num_states)[:, None], mdp.num_actions, axis=1)
    total = np.zeros(rewards.shape, rewards.dtype)
    last = total
    for step in range(times):
        alive = places >= 0
        total = total + np.where(alive, rewards[places, actions], 0)
        places = np.where(alive, mdp.transitions[places, actions], -1)
        if step + 1 == left:
            last = total
    return total, last, places.astype(np.int32), None if units is None else units[1]
