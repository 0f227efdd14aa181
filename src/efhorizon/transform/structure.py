"""Fewer actions, or another horizon."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from efhorizon import graph
from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.suites.action_names import action_names
from efhorizon.transform.derived import derived, within_reach


def with_actions(mdp: TabularMDP, actions: Sequence[int | str]) -> TabularMDP:
    """A table with only these actions, in this order; states that are out of reach then are dropped."""
    names = action_names(mdp.metadata, mdp.num_actions)
    numbers = [_number(action, names) for action in actions]
    if not numbers:
        raise InvalidTableError("a table needs at least one action")
    if len(set(numbers)) < len(numbers):
        raise InvalidTableError(f"an action is named twice in {list(actions)!r}")
    states, transitions = within_reach(mdp.transitions[:, numbers], mdp.horizon)
    kept = [names[number] for number in numbers]
    return derived(
        mdp,
        transitions,
        (mdp.reward_codes[states][:, numbers], mdp.reward_values),
        mdp.horizon,
        origin=states,
        label=f"actions{'-'.join(map(str, numbers))}",
        change={"change": "actions", "actions": numbers},
        metadata={"action_names": kept},
    )


def with_horizon(mdp: TabularMDP, horizon: int, *, closed: bool = False) -> TabularMDP:
    """The same MDP with another horizon; a longer one only where nothing was cut off at the old one."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise InvalidTableError(f"horizon must be a positive integer, got {horizon!r}")
    horizon = int(horizon)
    closed = horizon >= mdp.horizon and (closed or is_closed(mdp))
    if horizon > mdp.horizon and not closed:
        raise InvalidTableError(
            f"the table was made for horizon {mdp.horizon}, and states beyond it may have been cut off: build it with "
            f"horizon {horizon}, or say closed=True if you know that every -1 is a true end"
        )
    states, transitions = within_reach(mdp.transitions, horizon)
    return derived(
        mdp,
        transitions,
        (mdp.reward_codes[states], mdp.reward_values),
        horizon,
        origin=states,
        label=f"T{horizon}",
        change={"change": "horizon", "horizon": horizon},
        metadata={"closed": True} if closed else None,
    )


def is_closed(mdp: TabularMDP) -> bool:
    """Whether it is certain that no transition is -1 only because the table ends at its horizon.

    Tables that were built say so, if not by an older version. Else: a state that was cut off would have been entered at
    the horizon T of the search, from a state T - 1 steps away from the start. There is none if nothing is -1, if every
    episode ends before the T-th step, or if no state is that far away. The last holds for states that were not merged
    only: a merged one is as far away as the nearest of them.
    """
    if mdp.metadata.get("closed") is True:
        return True
    order, depths = graph.breadth_first_order(mdp.transitions)
    if mdp.unexplored is not None and mdp.unexplored[order].any():
        return False
    if (mdp.transitions[order] >= 0).all():
        return True
    inputs = mdp.metadata.get("inputs") or {}
    horizon = inputs.get("horizon") or mdp.horizon  # the file's, if `load` was told another one
    acyclic = graph.successors_first(mdp.transitions)
    if acyclic is not None and acyclic[1] < horizon:
        return True
    is_unmerged = mdp.base_states is None and mdp.metadata.get("num_states_raw") == mdp.num_states
    return bool(inputs and is_unmerged and depths.max() < horizon - 1)


def _number(action: int | str, names: tuple[str, ...]) -> int:
    if isinstance(action, str):
        if action not in names:
            raise InvalidTableError(f"no action is called {action!r}; there are {', '.join(names)}")
        return names.index(action)
    if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < len(names):
        raise InvalidTableError(f"actions are numbers from 0 to {len(names) - 1}, or names; got {action!r}")
    return int(action)
