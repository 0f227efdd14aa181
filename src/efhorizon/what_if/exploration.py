"""Another exploration policy: one that repeats its last action, or prefers some actions.

A policy that repeats actions depends on the last one, which a state does not hold. So it explores a table whose states
are pairs (state, last action): the same MDP, with up to A times as many states.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.transform.derived import derived, within_reach
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Changed

STICKINESS = (0.5, 0.75)  # the chance to repeat the last action; else a random one
PREFERENCE = 2.0  # times as likely as any other action
MAX_PAIRS = 2_000_000  # of time, state and last action: what a second or two can plan on


def changes(base: Base) -> Iterator[Change]:
    if base.mdp.num_actions < 2:
        return
    for chance in STICKINESS:
        yield _sticky(base, chance)
    for action in range(base.mdp.num_actions):
        yield _preferring(base, action)
    yield _like_optimal(base)


def with_last_action(mdp: TabularMDP) -> tuple[TabularMDP, NDArray[np.int64]]:
    """The table over pairs (state, last action), and the last action of each [S']: -1 at the start."""
    size, num_actions = mdp.num_states, mdp.num_actions
    leads = np.where(mdp.transitions >= 0, (1 + np.arange(num_actions)) * size + mdp.transitions, -1)
    unfolded = np.tile(leads, (num_actions + 1, 1)).astype(np.int32)  # [(last + 1) * S + state, A]
    kept, transitions = within_reach(unfolded, mdp.horizon)
    origin, last = kept % size, kept // size - 1
    table = derived(
        mdp,
        transitions,
        (mdp.reward_codes[origin], mdp.reward_values),
        mdp.horizon,
        origin=origin,
        label="last-action",
        change={"change": "last action"},
    )
    return table, last


def sticky_policy(last: NDArray[np.int64], num_actions: int, chance: float) -> NDArray[np.float64]:
    """pi(a | s, last) = chance [a = last] + (1 - chance) / A; uniform at the start [S', A]."""
    policy = np.full((len(last), num_actions), (1 - chance) / num_actions)
    policy[last < 0] = 1 / num_actions
    repeats = np.flatnonzero(last >= 0)
    policy[repeats, last[repeats]] += chance
    return policy


def _sticky(base: Base, chance: float) -> Change:
    def make() -> Changed:
        mdp = base.mdp
        if base.problem.timeline.num_pairs * mdp.num_actions > MAX_PAIRS:
            raise InvalidTableError("too large with the last action in the state")
        table, last = with_last_action(mdp)
        return Changed(table, policy=sticky_policy(last, mdp.num_actions, chance))

    title = f"explore: repeat actions, {chance:.0%}"
    return Change("exploration", title, "nothing", make, {"repeat_chance": chance})


def _preferring(base: Base, action: int) -> Change:
    weights = np.ones(base.mdp.num_actions)
    weights[action] = PREFERENCE
    title = f"explore: {base.called(action)} {PREFERENCE:g} times as often"
    return _fixed(base, weights / weights.sum(), title, solved=False)


def _like_optimal(base: Base) -> Change:
    """Half uniform, half as often as one optimal episode takes each action."""
    counts = np.bincount(base.optimal_episode[1], minlength=base.mdp.num_actions)
    chances = 0.5 / base.mdp.num_actions + 0.5 * counts / counts.sum()
    return _fixed(base, chances, "explore: half as optimal play does", solved=True)


def _fixed(base: Base, chances: NDArray[np.float64], title: str, *, solved: bool) -> Change:
    def make() -> Changed:
        return Changed(base.mdp, policy=np.tile(chances, (base.mdp.num_states, 1)))

    given = {"probabilities": dict(zip(base.names, np.round(chances, 6).tolist(), strict=True))}
    return Change("exploration", title, "the solution" if solved else "nothing", make, given)
