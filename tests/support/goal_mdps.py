"""Random goal MDPs."""

from __future__ import annotations

import numpy as np

from efhorizon import TabularMDP
from efhorizon.planning.problem import Problem, problem


def random_goal_mdp(rng: np.random.Generator) -> TabularMDP:
    """A walk towards a goal, with as much time as it takes or a little more; some actions go back or end in nothing."""
    length, num_actions = int(rng.integers(3, 7)), int(rng.integers(2, 5))
    transitions = np.arange(length)[:, None] + rng.integers(-2, 2, size=(length, num_actions))
    transitions[:, 0] = np.arange(length) + 1
    transitions[rng.random(transitions.shape) < 0.1] = -1
    goal = transitions == length
    return TabularMDP(
        np.where(goal, -1, np.maximum(transitions, -1)), np.where(goal, 2.5, 0.0), length + int(rng.integers(4))
    )


def goal_problems(count: int, *, reversed_actions: bool = False) -> list[Problem]:
    """Action 0 leads to the goal; if reversed, the last action does, so that ties to the lowest index do harm."""
    found = []
    for seed in range(3 * count):
        mdp = random_goal_mdp(np.random.default_rng(seed))
        if reversed_actions:
            mdp = TabularMDP(mdp.transitions[:, ::-1].copy(), mdp.rewards[:, ::-1].copy(), mdp.horizon)
        found.append(problem(mdp))
    return [given for given in found if given.is_goal_mdp][:count]
