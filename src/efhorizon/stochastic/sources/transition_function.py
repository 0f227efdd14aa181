"""Environments that publish their dynamics as `P[state][action] = [(probability, next state, reward, ended), ...]`.

Gymnasium's toy text does: FrozenLake, Taxi, CliffWalking. The start is `initial_state_distrib`, where there is one, or
the state after a reset. Nothing is simulated, so the table is exact; `check` plays episodes against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.stochastic.mdp import StochasticMDP, as_fraction
from efhorizon.stochastic.sources.explored import base_states, explored
from efhorizon.suites.environment_source import EnvironmentSource, time_limit

_Table = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


class NoTransitionFunctionError(EfhorizonError):
    """An environment without `P`, or with one of another form."""


def transition_function(source: EnvironmentSource) -> _Table | None:
    """The `P` of an environment, or None; wrappers may change what it means, so with any there is none."""
    if source.wrappers:
        return None
    found = getattr(source.made().unwrapped, "P", None)
    if not isinstance(found, Mapping) or not found:
        return None
    row = next(iter(found.values()))
    is_right = isinstance(row, Mapping) and all(
        isinstance(pair, Sequence) and pair and all(len(outcome) == 4 for outcome in pair) for pair in row.values()
    )
    return found if is_right else None


def has_chance(source: EnvironmentSource) -> bool:
    """Whether some pair of an environment with `P` has different outcomes."""
    table = transition_function(source)
    if table is None:
        return False
    return any(
        len({outcome[1:] for outcome in pair if outcome[0] > 0}) > 1 for row in table.values() for pair in row.values()
    )


def from_transition_function(
    source: EnvironmentSource, horizon: int | None = None, *, name: str, seed: int | None = None
) -> StochasticMDP:
    """The exact table; with a seed, episodes begin in the state of that reset."""
    table = transition_function(source)
    if table is None:
        raise NoTransitionFunctionError(f"{source.name}: it does not publish its transitions as P")
    length = horizon if horizon is not None else time_limit(source)
    if length is None:
        raise NoTransitionFunctionError(
            f"{source.name}: it has no time limit; say how long an episode is, as with --horizon 50"
        )
    num_actions = len(next(iter(table.values())))

    def outcomes(state: int, action: int) -> list[tuple[Fraction | float, float, int | None]]:
        return [
            (as_fraction(float(chance)) or float(chance), float(reward), None if ended else int(successor))
            for chance, successor, reward, ended in table[state][action]
        ]

    metadata = {
        "id": f"{name}-T{length}",
        "suite": "gymnasium",
        "game": source.name,
        "frameskip": 1,
        "provenance": {"suite": "gymnasium", "arguments": {"arguments": dict(source.arguments)}},
    }
    mdp, states = explored(_initial(source, seed), outcomes, num_actions, length, metadata=metadata)
    return base_states(mdp, states)


def _initial(source: EnvironmentSource, seed: int | None) -> dict[int, Fraction | float]:
    env = source.made()
    given = getattr(env.unwrapped, "initial_state_distrib", None)
    if given is None or seed is not None:
        state, _ = env.reset(seed=0 if seed is None else seed)
        return {int(state): Fraction(1)}
    chances = np.asarray(given, np.float64)
    return {
        int(state): as_fraction(float(chances[state])) or float(chances[state]) for state in np.flatnonzero(chances > 0)
    }


def largest_difference(mdp: StochasticMDP, env: Any, episodes: int, rng: np.random.Generator) -> float:
    """Play random episodes of the environment: the largest difference of a reward to one that the table allows there.

    Infinite where the table does not have what happened. States are found by their number in the environment.
    """
    assert mdp.base_states is not None
    number = {int(base): state for state, base in enumerate(mdp.base_states.tolist())}
    largest = 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=int(rng.integers(2**31)) + episode)
        for _ in range(mdp.horizon):
            state, action = number.get(int(observation)), int(rng.integers(mdp.num_actions))
            observation, reward, ended, _, _ = env.step(action)
            after = -1 if ended else number.get(int(observation), -2)
            if state is None:
                return float("inf")
            close = [abs(known - reward) for _, known, successor in mdp.outcomes(state, action) if successor == after]
            if not close:
                return float("inf")
            largest = max(largest, min(close))
            if ended:
                break
    return largest
