"""Episodes of a table to be played from reset, and what they showed compared with the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.build.difference import (
    Difference,
    end_difference,
    reward_difference,
    same_rewards,
    screen_difference,
)
from efhorizon.build.player import Episode, Played
from efhorizon.build.table_screens import TableScreens
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import MOST_CHOICES, optimal_choices, optimal_plan


@dataclass(frozen=True)
class Scope:
    """What a table says: the states in which an action can be taken within the horizon and is known."""

    states: NDArray[np.int32]  # breadth first
    num_actions: int

    @property
    def num_pairs(self) -> int:
        return len(self.states) * self.num_actions


def scope_of(mdp: TabularMDP) -> Scope:
    order, depths = graph.breadth_first_order(mdp.transitions)
    states = order[depths[order] < mdp.horizon]
    if mdp.unexplored is not None:
        states = states[~mdp.unexplored[states]]
    return Scope(states, mdp.num_actions)


def mixed_episodes(mdp: TabularMDP, count: int, rng: np.random.Generator) -> tuple[float, list[Episode]]:
    """The optimal return, and episodes: half random, a quarter through the deepest states, a quarter optimal."""
    num_optimal = max(1, count // 4)
    num_deep = max(1, count // 4)
    best, episodes = 0.0, []
    for optimal_return, policy in _optimal_policies(mdp, num_optimal, rng):
        best = optimal_return
        episodes.append(_walk(mdp, policy))
    for path in graph.shortest_paths(mdp.transitions, _deepest_states(mdp, num_deep, rng)):
        episodes.append(_walk(mdp, _path_then_random(path, mdp.num_actions, rng)))
    while len(episodes) < count:
        episodes.append(_walk(mdp, _path_then_random([], mdp.num_actions, rng)))
    return best, [Episode(tuple(actions)) for actions in episodes]


def _optimal_policies(
    mdp: TabularMDP, count: int, rng: np.random.Generator
) -> Iterator[tuple[float, Callable[[int, int], int]]]:
    """The optimal return and policies: the lowest optimal actions first, then ties at random."""
    if mdp.num_actions > MOST_CHOICES:
        for i in range(count):
            plan = optimal_plan(mdp, rng if i else None)
            yield plan.optimal_return, plan.action
        return
    choices = optimal_choices(mdp)
    for i in range(count):
        ties = rng.integers(mdp.num_actions, size=mdp.num_states) if i else None
        yield choices.optimal_return, choices.policy(ties)


def episodes_through_pairs(mdp: TabularMDP, scope: Scope, count: int, rng: np.random.Generator) -> list[Episode]:
    """One episode through each of some pairs, drawn at random without repetition.

    It takes a shortest way to the pair, and goes on at random after it. Where the table has raw states, it stops after
    the pair if the raw state is the one that the table has for the next state.
    """
    drawn = rng.choice(scope.num_pairs, size=min(count, scope.num_pairs), replace=False, shuffle=False)
    states, actions = scope.states[drawn // scope.num_actions], drawn % scope.num_actions
    episodes = []
    for path, state, action in zip(
        graph.shortest_paths(mdp.transitions, states), states.tolist(), actions.tolist(), strict=True
    ):
        way = [*path, action]
        next_state = int(mdp.transitions[state, action])
        goal = None if mdp.states is None or next_state < 0 else mdp.states[next_state]
        walked = _walk(mdp, _path_then_random(way, mdp.num_actions, rng))
        episodes.append(Episode(tuple(walked), goal, len(way)))
    return episodes


def episode_difference(
    mdp: TabularMDP, screens: TableScreens, episode: Episode, played: Played, replayed: NDArray[np.bool_]
) -> Difference | None:
    """The first step at which an episode went otherwise than the table says; marks the pairs [S, A] that agree."""
    shown = screens.of_digests(played.screens)
    start = np.zeros(1, np.int32)
    if shown[0] != screens.of_states(start)[0]:
        return screen_difference((), 0)
    state = 0
    for time, (action, found) in enumerate(zip(episode.actions, played.rewards.tolist(), strict=False)):
        expected = mdp.reward_values[mdp.reward_codes[state, action]]
        if not same_rewards(expected, found):
            return reward_difference(episode.actions[: time + 1], float(expected), found)
        pair, state = (state, action), int(mdp.transitions[state, action])
        if time + 1 < mdp.horizon:  # beyond the last action a table says nothing
            ended = played.ended and time + 1 == len(played.rewards)
            if ended != (state < 0):
                return end_difference(episode.actions[: time + 1], state)
            if not ended and shown[time + 1] != screens.of_states(np.array([state]))[0]:
                return screen_difference(episode.actions[: time + 1], state)
        replayed[pair] = True
        if state < 0 or (mdp.unexplored is not None and mdp.unexplored[state]):
            return None  # what follows is not known
    return None


def _path_then_random(path: list[int], num_actions: int, rng: np.random.Generator) -> Callable[[int, int], int]:
    return lambda t, state: path[t] if t < len(path) else int(rng.integers(num_actions))


def _walk(mdp: TabularMDP, choose: Callable[[int, int], int]) -> list[int]:
    """The actions of one episode in the table."""
    state, actions = 0, []
    for t in range(mdp.horizon):
        action = choose(t, state)
        actions.append(action)
        state = int(mdp.transitions[state, action])
        if state < 0:
            break
    return actions


def _deepest_states(mdp: TabularMDP, count: int, rng: np.random.Generator) -> NDArray[np.int32]:
    order, depths = graph.breadth_first_order(mdp.transitions)
    within = order[depths[order] < mdp.horizon]
    deepest = within[-max(count, int(np.sum(depths[within] == depths[within[-1]]))) :]
    return rng.choice(deepest, size=min(count, len(deepest)), replace=False)
