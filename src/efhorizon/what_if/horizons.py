"""Another horizon: episodes that are cut short, or go on for longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from efhorizon.transform.structure import is_closed, with_horizon
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Changed, Needs


def changes(base: Base, *, horizons: Sequence[int] | None = None) -> Iterator[Change]:
    """Half the horizon, the shortest one in which the best return can be had, and twice the horizon; or given ones."""
    own = base.mdp.horizon
    if horizons is not None:
        for horizon in horizons:
            with_horizon(base.mdp, horizon)  # refuses what the table does not hold
            yield _change(base, horizon, "nothing")
        return
    shortest = shortest_optimal(base)
    if shortest < own // 2:
        yield _change(base, own // 2, "nothing")
    if shortest < own:
        yield _change(base, shortest, "the solution", "just enough")
    if is_closed(base.mdp):
        yield _change(base, 2 * own, "nothing")


def shortest_optimal(base: Base) -> int:
    """The least number of steps in which the optimal return can be had."""
    mdp, units = base.mdp, base.mdp.reward_units()
    rewards = (mdp.reward_values if units is None else units[0])[mdp.reward_codes]
    values = np.zeros(mdp.num_states + 1, rewards.dtype)  # the last stands for the end
    best = [values[0].item()]
    for _ in range(mdp.horizon):
        values[:-1] = (rewards + values[mdp.transitions]).max(axis=1)
        best.append(values[0].item())
    return max(1, best.index(best[-1]))


def _change(base: Base, horizon: int, needs: Needs, why: str = "") -> Change:
    title = f"horizon {horizon}" + (f", {why}" if why else "")
    return Change("horizon", title, needs, lambda: Changed(with_horizon(base.mdp, horizon)), {"horizon": horizon})
