"""MDPs that are hard for one reason each, by construction."""

from __future__ import annotations

import numpy as np

from efhorizon import TabularMDP
from efhorizon.bounds.why import Kind

OVER = -1


def sparse(depth: int = 8) -> TabularMDP:
    """Nothing is paid but for one sequence of actions: action 0, so many times. Any other ends the episode."""
    transitions = np.full((depth, 2), OVER, np.int32)
    transitions[:-1, 0] = np.arange(1, depth)
    rewards = np.zeros((depth, 2))
    rewards[-1, 0] = 1.0
    return TabularMDP(transitions, rewards, depth)


def misleading(depth: int = 4) -> TabularMDP:
    """Action 1 pays 3 at once and ends the episode. Action 0 leads to 10, after `depth` more right actions.

    Random play gets there with a chance of 2^-depth: Q^1 = 10 / 2^depth, and it takes k with 10 / 2^(depth + 1 - k) > 3
    to see that action 0 is right: k = depth for depths from 3 on.
    """
    size = depth + 1
    transitions = np.full((size, 2), OVER, np.int32)
    transitions[:-1, 0] = np.arange(1, size)
    rewards = np.zeros((size, 2))
    rewards[0, 1] = 3.0
    rewards[-1, 0] = 10.0
    return TabularMDP(transitions, rewards, size)


def noisy(later: int = 12) -> TabularMDP:
    """The first choice is worth 1, the `later` ones 10 each: right actions are always 0."""
    size = later + 1
    transitions = np.repeat(np.append(np.arange(1, size), OVER)[:, None], 2, axis=1).astype(np.int32)
    transitions[0, 1] = size  # another state, so that the first step is no idle one
    other = transitions[1:]
    other = np.where(other >= 0, other + later, OVER).astype(np.int32)
    rewards = np.zeros((size, 2))
    rewards[1:, 0] = 10.0
    rewards[0, 0] = 1.0
    return TabularMDP(np.concatenate([transitions, other]), np.concatenate([rewards, rewards[1:]]), size)


def long(steps: int = 40) -> TabularMDP:
    """At each step action 0 pays 1 and goes on; action 1 leads to a last state where one of two actions pays 2."""
    transitions = np.full((steps + 1, 2), steps, np.int32)
    transitions[:steps, 0] = np.append(np.arange(1, steps), OVER)
    transitions[steps] = OVER
    rewards = np.zeros((steps + 1, 2))
    rewards[:steps, 0] = 1.0
    rewards[steps, 0] = 2.0
    rewards[steps - 1, 0] = 3.0  # the last step is no draw with the other branch
    return TabularMDP(transitions, rewards, steps + 1)


def many_actions(num_actions: int = 48) -> TabularMDP:
    """Two actions in a row have to be right, out of many."""
    transitions = np.full((2, num_actions), OVER, np.int32)
    transitions[0, 0] = 1
    rewards = np.zeros((2, num_actions))
    rewards[1, 0] = 1.0
    return TabularMDP(transitions, rewards, 2)


def long_horizon(idle: int = 60) -> TabularMDP:
    """Three actions have to be right, and then nothing is left to do for a long time."""
    start = sparse(3)
    first = idle + 3
    transitions = np.concatenate([start.transitions, np.repeat(np.arange(4, first + 1)[:, None], 2, axis=1)])
    transitions[2, 0] = 3
    transitions[-1] = OVER
    rewards = np.zeros((len(transitions), 2))
    rewards[2, 0] = 1.0
    return TabularMDP(transitions.astype(np.int32), rewards, len(transitions))


HARD: dict[Kind, tuple[TabularMDP, ...]] = {
    "sparse": (sparse(6), sparse(8), sparse(10)),
    "misleading": (misleading(3), misleading(4), misleading(5)),
    "noise": (noisy(8), noisy(12), noisy(20)),
    "long": (long(20), long(40), long(60)),
    "actions": (many_actions(36), many_actions(48), many_actions(96)),
    "horizon": (long_horizon(30), long_horizon(60), long_horizon(200)),
}
