"""Chance in a Gymnasium environment: found by playing the same actions with other random numbers.

A table needs an environment that is deterministic after its reset. What is probed, in this order: sticky actions, two
resets with one seed, a random walk whose steps are repeated with every random generator in reach reseeded, and whole
rollouts with other seeds, for noise out of reach. Chance can hide from probes: verifying the table is what decides.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from efhorizon.suites.environment_source import STICKY
from efhorizon.suites.gymnasium_simulator import SEED, GymnasiumSimulator
from efhorizon.suites.simulator import StochasticError
from efhorizon.suites.state_identity import value_bytes

_PROBE_SEEDS = (1, 2, 3, 4)
_PROBE_STEPS = 50
_ADVICE = (
    "a table needs an environment that is deterministic after its reset: turn its chance off, as with --env-arg "
    "is_slippery=False, or add --fixed-noise to study it with the random numbers of one seed"
)


def chance_notices(simulator: GymnasiumSimulator, rng: np.random.Generator) -> Iterator[str]:
    """What the user should know, one line each; raises `StochasticError` where no exact table can be made."""
    _check_sticky_actions(simulator)
    _check_reset(simulator)
    found = stochastic_pair(simulator, _PROBE_STEPS, rng)
    if found and not simulator.is_told_by_history:
        raise StochasticError(found, _ADVICE)
    if simulator.is_told_by_history:
        yield (
            f"its states cannot be compared ({simulator.unreadable}), so every sequence of actions counts as a state "
            "of its own: keep the horizon short, or give the environment get_state() and set_state()"
        )
    if _has_random_start(simulator):
        if simulator.seed == SEED:
            yield f"its start is random, and this is the start of seed {SEED}; for others add --seed 1,2,3"
    elif not found and not simulator.fixed_noise and _depends_on_seed(simulator, rng):
        found = "hidden noise"
    if found or simulator.fixed_noise:
        yield (
            f"it draws random numbers in its steps: this table has those of seed {simulator.seed}, so the same actions "
            "always meet the same chance, and what is found holds for this one sequence of numbers"
        )


def chance(simulator: GymnasiumSimulator, rng: np.random.Generator) -> str | None:
    """One line that shows by which chance the same actions can go differently, if they can."""
    try:
        _check_sticky_actions(simulator)
        _check_reset(simulator)
    except StochasticError as error:
        return error.found
    return stochastic_pair(simulator, _PROBE_STEPS, rng)


def stochastic_pair(simulator: GymnasiumSimulator, num_steps: int, rng: np.random.Generator) -> str | None:
    """One line that names a state and action with two different results, or None where a random walk met none.

    Before each repetition every random generator in reach gets a new seed, so that any dependence on it shows.
    """
    simulator.reset()
    for number in range(num_steps):
        state, observed = simulator.get_state(), _short(simulator.observation)
        path = list(simulator.path)
        action = int(rng.integers(simulator.num_actions))
        outcomes = []
        for seed in _PROBE_SEEDS:
            simulator.go_with_other_noise(state, seed + number * len(_PROBE_SEEDS))  # rare noise needs many draws
            reward, ended = simulator.step(action)
            outcomes.append((value_bytes(simulator.observation), reward, ended, _short(simulator.observation)))
            if outcomes[-1][:3] != outcomes[0][:3]:
                return (
                    f"stochastic: after actions {path} (observation {observed}), action {action} gave "
                    f"{_result(outcomes[0])} and then {_result(outcomes[-1])}"
                )
        simulator.path = [*path, action]
        if outcomes[-1][2]:
            simulator.reset()
    return None


def _check_sticky_actions(simulator: GymnasiumSimulator) -> None:
    """An emulator does not tell which action sticks, so states that differ in it would count as one."""
    ale: Any = getattr(simulator.environment.unwrapped, "ale", None)
    if type(ale).__name__ == "ALEInterface" and ale.getFloat(STICKY) > 0:
        raise StochasticError("stochastic: its actions are sticky", f"add --env-arg {STICKY}=0")


def _check_reset(simulator: GymnasiumSimulator) -> None:
    """The same seed must give the same start."""
    starts = []
    for seed in _PROBE_SEEDS[:2]:
        random.seed(seed)
        np.random.seed(seed)
        simulator.reset()
        starts.append((value_bytes(simulator.observation), simulator.attributes(), _short(simulator.observation)))
    if starts[0][:2] != starts[1][:2]:
        raise StochasticError(
            f"stochastic: two resets with seed {simulator.seed} gave {starts[0][2]} and {starts[1][2]}",
            "let reset() call super().reset(seed=seed), draw from self.np_random and keep nothing of earlier episodes",
        )


def _has_random_start(simulator: GymnasiumSimulator) -> bool:
    """Whether another seed gives another start."""
    identities = simulator.identities
    starts = set()
    for seed in _seeds(simulator):
        observation, _ = simulator.environment.reset(seed=seed)
        attributes = b"" if identities is None else identities.without_noise().of(simulator.environment)
        starts.add((value_bytes(observation), attributes))
    simulator.reset()
    return len(starts) > 1


def _depends_on_seed(simulator: GymnasiumSimulator, rng: np.random.Generator) -> bool:
    """Whether the same actions from the same start go otherwise with another seed: noise that we cannot reach."""
    actions = rng.integers(simulator.num_actions, size=_PROBE_STEPS).tolist()
    rollouts = []
    for seed in _seeds(simulator):
        simulator.environment.reset(seed=seed)
        rollouts.append(simulator.played(simulator.environment, actions))
    simulator.reset()
    return any(rollout != rollouts[0] for rollout in rollouts)


def _seeds(simulator: GymnasiumSimulator) -> list[int]:
    """The simulator's own seed, and some others."""
    return [simulator.seed, *(simulator.seed + other for other in _PROBE_SEEDS)]


def _result(outcome: tuple[bytes, float, bool, str]) -> str:
    _, reward, ended, observation = outcome
    return f"observation {observation}, reward {reward:g}" + (", end" if ended else "")


def _short(observation: Any) -> str:
    """An observation for people, at once: some environments write the next one into the same array."""
    text = " ".join(str(observation).split())
    return text if len(text) <= 40 else text[:37] + "..."
