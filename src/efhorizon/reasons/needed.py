"""How much of the horizon is needed: less, if the optimal return can be had sooner, or if many steps decide nothing.

A shorter horizon T' keeps the task if every horizon from T' to T has the same optimal return. A step is idle if all its
actions lead to the same state with the same reward. What is needed is the largest number of steps of an optimal episode
that are not idle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.planning.problem import Problem

MAX_WORK = 50_000_000  # states times actions times steps


def shortest_horizon(problem: Problem) -> int | None:
    """The least horizon from which on the optimal return stays the same; None where that takes too long to find."""
    mdp, gamma = problem.mdp, problem.gamma
    if mdp.num_states * mdp.num_actions * mdp.horizon > MAX_WORK:
        return None
    scale = problem.scale
    units: NDArray[Any] = scale.sum_units
    rewards = units[mdp.reward_codes]
    values = np.zeros(mdp.num_states + 1, rewards.dtype)  # the last entry is for transition -1
    starts = []
    for _ in range(mdp.horizon):
        following = values[mdp.transitions]
        values[:-1] = (rewards + (following if gamma == 1.0 else gamma * following)).max(axis=1)
        starts.append(values[0].item())
    shortest = mdp.horizon
    while shortest > 1 and starts[shortest - 2] == starts[-1]:
        shortest -= 1
    return shortest


def steps_that_can_go_wrong(problem: Problem) -> int:
    """The least number of steps of an optimal episode at which some action is not optimal."""
    line, optimal = problem.timeline, problem.optimal
    steps = np.zeros(line.num_pairs + 1, np.int32)
    for time in reversed(range(problem.mdp.horizon)):
        layer = line.layer(time)
        if layer.stop == layer.start:
            continue
        right = optimal.actions[layer]
        after = np.where(right, steps[line.successors[layer]], problem.mdp.horizon).min(axis=1)
        steps[layer] = after + ~right.all(axis=1)
    return int(steps[0])


def deciding_steps(problem: Problem) -> int:
    """The largest number of steps of an optimal episode that are not idle."""
    line, optimal = problem.timeline, problem.optimal
    steps = np.zeros(line.num_pairs + 1, np.int32)  # the last entry is for episodes that are over
    for time in reversed(range(problem.mdp.horizon)):
        layer = line.layer(time)
        if layer.stop == layer.start:
            continue
        successors = line.successors[layer]
        codes = problem.mdp.reward_codes[line.states[layer]]
        idle = (successors == successors[:, :1]).all(axis=1) & (codes == codes[:, :1]).all(axis=1)
        after = np.where(optimal.actions[layer], steps[successors], 0).max(axis=1)
        steps[layer] = after + ~idle
    return int(steps[0])
