"""The paper's example MDPs, with A actions and horizon T. Action 0 is the one that the figures draw on the left.

In the paper every action sequence leads to a state of its own, A^T in all. Here states with the same future are one, so
a few suffice; returns, Q-values and effective horizons are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TERMINAL, TabularMDP


class InvalidExampleError(EfhorizonError, ValueError):
    """Parameters for which an example is not defined."""


def sparse_rewards(horizon: int, num_actions: int = 2) -> TabularMDP:
    """Figure 2a: one action sequence is paid, with 1 at its end. H is of order T."""
    _check(horizon, num_actions)
    transitions, rewards = _chain(horizon, num_actions)
    rewards[-1, 0] = 1.0
    return _mdp("sparse_rewards", transitions, rewards, horizon)


def dense_rewards(horizon: int, num_actions: int = 2) -> TabularMDP:
    """Figure 2b: each optimal action is paid 1, until the first that is not optimal. H is of order 1, W = 1."""
    _check(horizon, num_actions)
    transitions, rewards = _chain(horizon, num_actions)
    rewards[:, 0] = 1.0
    return _mdp("dense_rewards", transitions, rewards, horizon)


def delayed_rewards(horizon: int, num_actions: int = 2) -> TabularMDP:
    """Figure 2c: as 2b, but all is paid at the last step. H is of order 1, W = T."""
    _check(horizon, num_actions)
    # State (t, j): time t, after j optimal actions and then another one; (t, t) is on the optimal path.
    places = {(0, 0): 0}
    for time in range(1, horizon):
        for count in range(time + 1):
            places[time, count] = len(places)
    transitions = np.full((len(places), num_actions), TERMINAL)
    rewards = np.zeros(transitions.shape)
    for (time, count), state in places.items():
        for action in range(num_actions):
            following = count + (count == time and action == 0)
            if time == horizon - 1:
                rewards[state, action] = following
            else:
                transitions[state, action] = places[time + 1, following]
    return _mdp("delayed_rewards", transitions, rewards, horizon)


def worst_case_qvi(horizon: int, num_actions: int = 2) -> TabularMDP:
    """Lemma A.1: action 1 is paid 3/4 at once, the sequence of zeros 1 at its end: k-QVI-solvable for k = T only."""
    _check(horizon, num_actions)
    transitions, rewards = _chain(horizon, num_actions)
    rewards[0, 1] = 0.75
    rewards[-1, 0] = 1.0
    return _mdp("worst_case_qvi", transitions, rewards, horizon)


def lower_bound_family(
    horizon: int, num_actions: int = 2, *, effective_horizon: int, sequence: tuple[int, ...] | None = None
) -> TabularMDP:
    """Theorem B.5: one action sequence (zeros unless given), paid 1 after every `effective_horizon` steps.

    The paper's formula pays at l = 0 (mod H), on the first of H actions; its text ("a reward of 1 every H timesteps")
    and its proof need the last of them, which is what is built here.
    """
    _check(horizon, num_actions)
    if not 1 <= effective_horizon <= horizon:
        raise InvalidExampleError(f"the effective horizon must lie in 1 .. {horizon}, got {effective_horizon}")
    actions = (0,) * horizon if sequence is None else tuple(sequence)
    if len(actions) != horizon or not all(0 <= action < num_actions for action in actions):
        raise InvalidExampleError(f"the sequence must be {horizon} actions below {num_actions}, got {actions}")
    transitions, rewards = _chain(horizon, num_actions, actions)
    for time in range(effective_horizon - 1, horizon, effective_horizon):
        rewards[time, actions[time]] = 1.0
    return _mdp("lower_bound_family", transitions, rewards, horizon)


def distracting_reward(horizon: int, num_actions: int = 2) -> TabularMDP:
    """Appendix D.4: as 2b, and the sequence of last actions is paid T - 1 at its end. H = W = 1."""
    _check(horizon, num_actions)
    transitions, rewards = _chain(horizon, num_actions)
    rewards[:, 0] = 1.0
    if horizon == 1:
        return _mdp("distracting_reward", transitions, rewards, horizon)
    # The second chain, of times 1 .. T - 1, is paid for the last action.
    other = np.full((horizon - 1, num_actions), TERMINAL)
    other[:-1, -1] = np.arange(horizon + 1, 2 * horizon - 1)
    other_rewards = np.zeros(other.shape)
    other_rewards[-1, -1] = horizon - 1
    transitions[0, -1] = horizon
    return _mdp(
        "distracting_reward", np.concatenate([transitions, other]), np.concatenate([rewards, other_rewards]), horizon
    )


def _chain(
    horizon: int, num_actions: int, sequence: tuple[int, ...] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """States 0 .. T - 1 that the sequence visits; every other action ends the episode, with nothing more to get."""
    transitions = np.full((horizon, num_actions), TERMINAL, np.int64)
    for time in range(horizon - 1):
        transitions[time, 0 if sequence is None else sequence[time]] = time + 1
    return transitions, np.zeros((horizon, num_actions))


def _check(horizon: int, num_actions: int) -> None:
    if horizon < 1:
        raise InvalidExampleError(f"the horizon must be at least 1, got {horizon}")
    if num_actions < 2:
        raise InvalidExampleError(f"an example needs at least 2 actions, got {num_actions}")


def _mdp(name: str, transitions: NDArray[Any], rewards: NDArray[Any], horizon: int) -> TabularMDP:
    num_actions = transitions.shape[1]
    return TabularMDP(transitions, rewards, horizon, metadata={"id": f"{name}_T{horizon}_A{num_actions}"})


EXAMPLES = (sparse_rewards, dense_rewards, delayed_rewards, worst_case_qvi, distracting_reward)
