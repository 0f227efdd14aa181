"""What several kinds of changes need to know about the table: distances, one optimal episode, states on all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Flags, Integers, Words, compiled
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import Problem
from efhorizon.suites.action_names import action_names


@dataclass(frozen=True, eq=False)
class Base:
    """The table as it is, with what is computed once and used by several changes."""

    problem: Problem

    @property
    def mdp(self) -> TabularMDP:
        return self.problem.mdp

    @cached_property
    def names(self) -> tuple[str, ...]:
        return action_names(self.mdp.metadata, self.mdp.num_actions)

    def called(self, action: int) -> str:
        """The name of an action in a sentence: "left", or "action 0"."""
        name = self.names[action]
        return f"action {name}" if name.isdigit() else name

    @cached_property
    def largest_reward(self) -> float:
        """In absolute value; what weights of potentials are relative to."""
        return max(map(abs, self.problem.rewards)) or 1.0

    @cached_property
    def distances(self) -> NDArray[np.int32]:
        """Steps from each state [S] until a positive reward is paid; if there is none, the largest reward.

        States from which none can be reached count one step more than the farthest from which one can.
        """
        best = max(self.problem.rewards)
        pays = self.mdp.rewards > 0 if best > 0 else self.mdp.rewards == best
        found = np.where(pays.any(axis=1), 1, -1).astype(np.int32)
        _spread(self.mdp.transitions, found)
        found[found < 0] = found.max() + 1
        return found

    @cached_property
    def optimal_episode(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The states and actions of one optimal episode: of all best actions, the one nearest to a reward."""
        line, optimal = self.problem.timeline, self.problem.optimal
        pair, states, actions = 0, list[int](), list[int]()
        while pair >= 0:
            best = np.flatnonzero(optimal.actions[pair])
            following = line.successors[pair, best]
            far = np.where(following >= 0, self.distances[line.states[following]], 0)
            action = int(best[far.argmin()])
            states.append(int(line.states[pair]))
            actions.append(action)
            pair = int(line.successors[pair, action])
        return tuple(states), tuple(actions)

    @cached_property
    def subgoals(self) -> tuple[int, ...]:
        """States that every optimal episode passes, in the order of one of them, without the start."""
        line, optimal = self.problem.timeline, self.problem.optimal
        candidates = list(dict.fromkeys(self.optimal_episode[0]))
        number = np.full(self.mdp.num_states, -1, np.int64)
        number[candidates] = np.arange(len(candidates))
        passed = np.full((line.num_pairs + 1, (len(candidates) + 63) // 64), ~np.uint64(0))
        _passed_always(line.successors, line.states, optimal.actions, optimal.reached, number, passed)
        always = passed[-1]  # by every episode, at its end
        return tuple(
            state
            for place, state in enumerate(candidates)
            if state != 0 and int(always[place // 64]) >> (place % 64) & 1
        )


@compiled
def _spread(transitions: Integers, distance: Integers) -> None:
    """Fill in distances that are -1, breadth first from those that are known to be 1."""
    num_states, num_actions = transitions.shape
    starts = np.zeros(num_states + 1, np.int64)  # predecessors of each state, as one list
    for state in range(num_states):
        for action in range(num_actions):
            if transitions[state, action] >= 0:
                starts[transitions[state, action] + 1] += 1
    starts = np.cumsum(starts)
    filled = starts.copy()
    before = np.empty(starts[-1], np.int32)
    for state in range(num_states):
        for action in range(num_actions):
            successor = transitions[state, action]
            if successor >= 0:
                before[filled[successor]] = state
                filled[successor] += 1
    queue = np.empty(num_states, np.int32)
    count = 0
    for state in range(num_states):
        if distance[state] == 1:
            queue[count] = state
            count += 1
    head = 0
    while head < count:
        state = queue[head]
        head += 1
        for i in range(starts[state], starts[state + 1]):
            if distance[before[i]] < 0:
                distance[before[i]] = distance[state] + 1
                queue[count] = before[i]
                count += 1


@compiled
def _passed_always(
    successors: Integers, states: Integers, optimal: Flags, reached: Flags, number: Integers, passed: Words
) -> None:
    """Sets of candidates as bits: those on every optimal way to a pair [P], and to the end (the last row).

    passed(p) = {p} + the intersection of passed(q) over all q from which an optimal action leads to p.
    """
    num_words = passed.shape[1]
    last = passed.shape[0] - 1
    for word in range(num_words):
        passed[0, word] = 0
    for pair in range(len(states)):
        if not reached[pair]:
            continue
        own = number[states[pair]]
        if own >= 0:
            passed[pair, own // 64] |= np.uint64(1) << np.uint64(own % 64)
        for action in range(successors.shape[1]):
            if optimal[pair, action]:
                after = successors[pair, action] if successors[pair, action] >= 0 else last
                for word in range(num_words):
                    passed[after, word] &= passed[pair, word]
