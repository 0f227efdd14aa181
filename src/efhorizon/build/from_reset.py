"""Raw states reached by restoring snapshots, reached again from reset without restoring anything.

A restored state that is not quite the state that was saved may look right and still go on differently. So walks from
reset are played through the states that were restored. At each step the raw state, the screen, the reward and the end
must be those that restoring gave. A walk follows the way by which a state was first met, and then goes on through
states that no walk has met yet; without a clock in the state, one walk meets a great many. Its last action ends the
episode where one can.

So every state is reached from reset, but not every pair: most pairs are only replayed from restored states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.difference import (
    Difference,
    end_difference,
    restored_state_difference,
    reward_difference,
)
from efhorizon.build.player import Episode, Played, Player
from efhorizon.build.raw_states import ENDED, RawStates
from efhorizon.build.table_screens import TableScreens
from efhorizon.engines.engine import Engine

_WALKS_A_TASK = 8
_LONGEST_WALK = 1000


@dataclass(frozen=True)
class Walks:
    """How many states were reached from reset, and the first difference if there was one."""

    num_states: int
    num_steps: int
    difference: Difference | None


@dataclass(frozen=True)
class _Walk:
    actions: list[int]
    states: list[int]  # before each action


def walk_from_reset(
    environment: RawStates,
    restored: NDArray[np.int32],
    screens: TableScreens,
    engine: Engine[Player],
    rng: np.random.Generator,
    *,
    max_steps: int | None,
    on_progress: Callable[[int], None] = lambda num_states: None,
) -> Walks:
    """Reach the given states, in which every action was taken, from reset; not all if that takes too many steps.

    The processes of `engine` must never have restored a state.
    """
    waiting = _walks(environment, restored, rng)
    sent: deque[list[_Walk]] = deque()
    reached: set[int] = set()
    planned = num_steps = 0
    is_over = False
    while sent or not is_over:
        while not is_over and engine.has_room:
            batch: list[_Walk] = []
            while len(batch) < _WALKS_A_TASK and not is_over:
                walk = next(waiting, None)
                is_over = walk is None or (max_steps is not None and planned + len(walk.actions) > max_steps)
                if walk is not None and not is_over:
                    planned += len(walk.actions)
                    batch.append(walk)
            if batch:
                sent.append(batch)
                episodes = [Episode(tuple(walk.actions)) for walk in batch]
                engine.submit(partial(Player.played, episodes=episodes))
        if not sent:
            break
        for walk, played in zip(sent.popleft(), engine.next_result(), strict=True):
            difference = _difference(environment, screens, walk, played)
            num_steps += len(played.rewards)
            if difference is not None:
                return Walks(len(reached), num_steps, difference)
            reached.update(walk.states)
        on_progress(len(reached))
    return Walks(len(reached), num_steps, None)


def _walks(environment: RawStates, restored: NDArray[np.int32], rng: np.random.Generator) -> Iterator[_Walk]:
    """Walks that together meet every state, those that are far away in random order first."""
    is_left = np.zeros(len(environment), bool)
    is_left[restored] = True
    has_child = np.zeros(len(environment), bool)
    has_child[environment.parents[restored[restored > 0], 0]] = True
    for ends in (restored[~has_child[restored]], restored):
        for end in rng.permutation(ends).tolist():
            if not is_left[end]:
                continue
            actions, states = environment.path(end), [0]
            for action in actions:
                states.append(int(environment.successors[states[-1], action]))
            is_left[states] = False
            while len(actions) < _LONGEST_WALK:
                nexts = environment.successors[states[-1]]
                choices = np.flatnonzero((nexts != ENDED) & is_left[nexts])
                if not len(choices):
                    break
                actions.append(int(choices[0]))
                states.append(int(nexts[choices[0]]))
                is_left[states[-1]] = False
            ends_it = environment.successors[states[-1]] == ENDED
            actions.append(int(rng.choice(np.flatnonzero(ends_it if ends_it.any() else ~ends_it))))
            yield _Walk(actions, states)


def _difference(environment: RawStates, screens: TableScreens, walk: _Walk, played: Played) -> Difference | None:
    """The first step at which a walk went otherwise than restored states did."""
    states, actions = np.array(walk.states), tuple(walk.actions)
    expected, rewards = environment.successors[states, actions], environment.rewards[states, actions]
    met = np.append(0, expected[expected != ENDED])[: len(played.states)]  # only the last action may end it
    num_played, numbers = len(played.rewards), environment.numbers(played.states)[: len(met)]
    shown = screens.of_digests(played.screens)[: len(met)]
    other_state = np.flatnonzero((numbers != met) | (shown != environment.screens[met]))
    other_reward = np.flatnonzero(rewards[:num_played] != played.rewards)
    if len(other_state) and (not len(other_reward) or other_state[0] <= other_reward[0]):
        return restored_state_difference(actions[: other_state[0]])
    if len(other_reward):
        time = int(other_reward[0])
        return reward_difference(actions[: time + 1], float(rewards[time]), float(played.rewards[time]))
    if played.ended != (expected[num_played - 1] == ENDED):
        return end_difference(actions[:num_played], int(expected[num_played - 1]))
    return None
