"""Before a stored search is used again: does the environment still do what it did?

Some hundred stored transitions are taken again in a fresh environment. The source of an environment is part of the name
of its search, but what an environment does may also depend on a file that it reads, on a server or on a setting.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.difference import Difference, end_difference, next_state_difference, reward_difference
from efhorizon.build.search import Search
from efhorizon.errors import EfhorizonError
from efhorizon.suites.simulator import Simulator

NUM_TRANSITIONS = 200
_A_KIND = 8  # of them end the episode, and have each reward, the rarest rewards first
_DRAWN = 200_000  # transitions from which these are chosen


class ChangedEnvironmentError(EfhorizonError):
    """An environment does something else than when it was searched."""


def stored_difference(search: Search, simulator: Simulator) -> Difference | None:
    """The first of some stored transitions that the environment no longer makes."""
    if simulator.num_actions != search.num_actions:
        return Difference((), "actions", f"{search.num_actions} actions", f"{simulator.num_actions}")
    screens = search.state_screens(search.num_states)
    simulator.reset()
    if not _is_in(search, simulator, 0, screens):
        return Difference((), "start", "another one", "not that of the search")
    if not search.num_expanded:
        return None
    transitions, rewards = search.transitions(search.num_expanded), search.rewards(search.num_expanded)
    for state, action in _chosen(transitions, rewards):
        found = _difference(search, simulator, screens, (state, action), transitions, float(rewards[state, action]))
        if found is not None:
            return replace(found, actions=(*_path(transitions, state), action))
    return None


def _difference(
    search: Search,
    simulator: Simulator,
    screens: NDArray[np.int32],
    pair: tuple[int, int],
    transitions: NDArray[np.int32],
    stored_reward: float,
) -> Difference | None:
    """How one transition differs from what is stored; without the actions that lead there."""
    state, action = pair
    expected = int(transitions[state, action])
    snapshot = search.state(state)
    simulator.set_state(snapshot)
    if simulator.identity(simulator.get_state()) != simulator.identity(snapshot):
        return next_state_difference((), state, -1)
    reward, ended = simulator.step(action)
    if reward != stored_reward:
        return reward_difference((), stored_reward, reward)
    if ended != (expected < 0):
        return end_difference((), expected)
    return None if ended or _is_in(search, simulator, expected, screens) else next_state_difference((), expected, -1)


def changed_environment(name: str, difference: Difference) -> ChangedEnvironmentError:
    """What to say about it, and what to type."""
    where = f"after actions {list(difference.actions)}" if difference.actions else "at the start"
    what = (
        f"the {difference.what} is {difference.found}, and was {difference.expected}"
        if difference.what in ("reward", "end")
        else "it is in another state"
    )
    return ChangedEnvironmentError(
        f"{name}: the environment does not do what it did when it was searched: {where} {what}. Its source is the "
        "same, so something has changed that it reads or calls; add --rebuild to build the table again"
    )


def _is_in(search: Search, simulator: Simulator, number: int, screens: NDArray[np.int32]) -> bool:
    """Whether the simulator stands in a state of the search, and shows what was seen there."""
    if simulator.identity(simulator.get_state()) != simulator.identity(search.state(number)):
        return False
    return bool(np.array_equal(simulator.screen(), search.screen(int(screens[number]))))


def _chosen(transitions: NDArray[np.int32], rewards: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Transitions with every reward, some that end the episode, and others at random; in the order of the search."""
    rng = np.random.default_rng(0)
    drawn = rng.choice(transitions.size, size=min(_DRAWN, transitions.size), replace=False)
    _, codes, counts = np.unique(rewards.ravel()[drawn], return_inverse=True, return_counts=True)
    rarest = np.argsort(counts, kind="stable")[: NUM_TRANSITIONS // (2 * _A_KIND)]
    kinds = [drawn[transitions.ravel()[drawn] == -1], *(drawn[codes.ravel() == code] for code in rarest)]
    chosen = {int(index) for kind in kinds for index in kind[:_A_KIND]}
    for index in drawn[:NUM_TRANSITIONS].tolist():
        if len(chosen) < NUM_TRANSITIONS:
            chosen.add(index)
    return [divmod(index, transitions.shape[1]) for index in sorted(chosen)]


def _path(transitions: NDArray[np.int32], state: int) -> list[int]:
    """Actions that lead to a state: each state was first met from one with a smaller number."""
    path: list[int] = []
    while state > 0:
        pairs = np.flatnonzero(transitions[:state].ravel() == state)
        state, action = divmod(int(pairs[0]), transitions.shape[1])
        path.append(action)
    return path[::-1]
