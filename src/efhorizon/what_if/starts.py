"""A start further along: a state of an optimal episode, as the stages of a curriculum that works backwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from efhorizon import graph
from efhorizon.mdp import TabularMDP
from efhorizon.transform.derived import derived, within_reach
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Changed

PARTS = (0.25, 0.5, 0.75)  # of the way to the last reward


def changes(base: Base, *, parts: Sequence[float] = PARTS) -> Iterator[Change]:
    states, actions = base.optimal_episode
    length = _steps_to_last_reward(base.mdp, states, actions)
    for depth in sorted({int(part * length) for part in parts} - {0}):
        yield _change(base, states[depth], actions[:depth], length)


def started_at(mdp: TabularMDP, state: int, time: int) -> TabularMDP:
    """The same table, started in a state at a time: what is left of an episode that has got there."""
    order = np.concatenate([[state], np.delete(np.arange(mdp.num_states), state)]).astype(np.int32)
    horizon = mdp.horizon - time
    places, transitions = within_reach(graph.renumbered_transitions(mdp.transitions, order), horizon)
    origin = order[places]
    change = {"change": "start", "state": state, "time": time}
    rewards = mdp.reward_codes[origin], mdp.reward_values
    return derived(mdp, transitions, rewards, horizon, origin=origin, label=f"start{state}-{time}", change=change)


def _steps_to_last_reward(mdp: TabularMDP, states: Sequence[int], actions: Sequence[int]) -> int:
    paid = np.flatnonzero(mdp.rewards[list(states), list(actions)])
    return int(paid[-1]) + 1 if len(paid) else len(actions)


def _change(base: Base, state: int, prefix: tuple[int, ...], length: int) -> Change:
    depth = len(prefix)

    def make() -> Changed:
        return Changed(started_at(base.mdp, state, depth), prefix=prefix)

    note = f"the first {depth} of {length} steps are still to be learnt"
    given = {"state": state, "time": depth}
    return Change("start", f"start after {depth} of {length} optimal steps", "the solution", make, given, note)
