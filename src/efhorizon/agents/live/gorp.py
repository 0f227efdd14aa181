"""GORP on a live environment (Algorithm 1, as `gorp.py` runs it on tables), with progress, checkpoints and resumption.

Rollouts of one iteration all start in the same state. It is reached by a snapshot where the environment has exact ones
(a `Simulator`, or a Gymnasium environment with `get_state` and `set_state`, as all of BRIDGE), else by replaying the
actions so far from a reset with a fixed seed: exact for environments that are deterministic after their reset.

Iteration i draws from a generator seeded by (seed, i), so a run that was stopped and resumed returns what it would have
returned without the stop. Rewards are summed as exact decimals, as in tables, so ties are exact; they are broken
uniformly at random among the maximising action sequences, or go to the first of them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET
from numpy.typing import ArrayLike, NDArray

from efhorizon.agents.live.environments import LiveEnvironment, SnapshotEnvironment, live_environment
from efhorizon.agents.live.live_run import (
    LiveRun,
    Settings,
    bad_checkpoint,
    exact_decimal,
    read_checkpoint,
)
from efhorizon.agents.tabular.runs import InvalidSettingError, check_positive
from efhorizon.gorp.ties import Ties
from efhorizon.io.decode import write_record

__all__ = ["LiveRun", "Settings", "live_environment", "live_gorp"]

_MAX_SEQUENCES = 2**20
_ACTIONS_A_DRAW = 64
_SECONDS_A_CHECKPOINT = 10.0

# Probabilities [A] of the actions after an observation; None stands for the uniform policy.
ObservationPolicy = Callable[[Any], ArrayLike]


def live_gorp(
    environment: LiveEnvironment,
    *,
    k: int,
    m: int,
    seed: int = 0,
    ties: Ties = "uniform",
    policy: ObservationPolicy | None = None,
    max_steps: int | None = None,
    checkpoint: Path | None = None,
    on_progress: Callable[[LiveRun], None] | None = None,
) -> LiveRun:
    """Run GORP(k, m) once on a live environment, for which see `live_environment`.

    `max_steps` ends the run after the iteration in which that many steps have been played; with a `checkpoint` file the
    next call continues from there, as it does after an interruption.
    """
    check_positive(k=k, m=m)
    if seed < 0:
        raise InvalidSettingError(f"the seed must not be negative, got {seed}")
    if ties not in ("uniform", "lowest"):
        raise InvalidSettingError(f"ties must be uniform or lowest in a live environment, got {ties!r}")
    if policy is not None and isinstance(environment, SnapshotEnvironment):
        raise InvalidSettingError("an exploration policy needs observations; give a Gymnasium environment")
    if k > environment.horizon or environment.num_actions**k > _MAX_SEQUENCES:
        raise InvalidSettingError(
            f"k = {k}: {environment.num_actions}^{k} action sequences within {environment.horizon} steps"
        )
    settings = Settings(environment.id, environment.horizon, k, m, seed, "lowest" if ties == "lowest" else UNSET)
    state = LiveRun(settings, (), (), (), False, 0, environment.num_actions)
    if checkpoint is not None and checkpoint.exists():
        state = read_checkpoint(checkpoint, settings, environment.num_actions)
        _replay(environment, state, checkpoint)
    replayed = environment.steps_played  # to get here: not part of what the run costs
    saved = time.monotonic()
    try:
        while not state.is_complete and (max_steps is None or state.steps_played < max_steps):
            before = environment.steps_played
            action, estimate = _iteration(environment, settings, state, policy)
            reward, ended = environment.advance(action)
            state = LiveRun(
                settings=settings,
                actions=(*state.actions, action),
                rewards=(*state.rewards, reward),
                estimates=(*state.estimates, float(estimate + sum(map(exact_decimal, state.rewards)))),
                ended=ended,
                steps_played=state.steps_played + environment.steps_played - before,
                num_actions=environment.num_actions,
            )
            if on_progress is not None:
                on_progress(state)
            if checkpoint is not None and time.monotonic() - saved > _SECONDS_A_CHECKPOINT:
                write_record(checkpoint, state)
                saved = time.monotonic()
    finally:
        if checkpoint is not None and environment.steps_played > replayed:
            write_record(checkpoint, state)
    return state


def _replay(environment: LiveEnvironment, state: LiveRun, checkpoint: Path) -> None:
    """Take the environment to where a checkpoint ended; it must say again what it said then."""
    last = len(state.actions) - 1
    for step, (action, reward) in enumerate(zip(state.actions, state.rewards, strict=True)):
        found = environment.advance(action)
        if found != (reward, state.ended and step == last):
            raise bad_checkpoint(checkpoint, f"step {step + 1} has another reward or end when it is replayed")


def _iteration(
    environment: LiveEnvironment, settings: Settings, state: LiveRun, policy: ObservationPolicy | None
) -> tuple[int, Fraction]:
    """The action of one iteration, and the best mean reward-to-go."""
    now = len(state.actions)
    rng = np.random.default_rng([settings.seed, now])
    length = min(settings.k, settings.horizon - now)
    best, chosen, ties = Fraction(0), 0, 0
    for sequence in itertools.product(range(environment.num_actions), repeat=length):
        total = sum(
            (_episode(environment, sequence, settings.horizon - now, policy, rng) for _ in range(settings.m)),
            Fraction(),
        )
        if ties == 0 or total > best:
            best, chosen, ties = total, sequence[0], 1
        elif total == best and settings.rule == "uniform":
            ties += 1
            if rng.integers(ties) == 0:
                chosen = sequence[0]
    return chosen, best / settings.m


def _episode(
    environment: LiveEnvironment,
    sequence: tuple[int, ...],
    time_left: int,
    policy: ObservationPolicy | None,
    rng: np.random.Generator,
) -> Fraction:
    """The reward-to-go of one episode: the sequence, then the exploration policy."""
    total, observation = Fraction(0), None
    environment.restore()
    draws: list[int] = []
    for step in range(time_left):
        if step < len(sequence):
            action = sequence[step]
        elif policy is not None:
            action = _drawn(np.asarray(policy(observation), np.float64), environment.num_actions, rng)
        else:
            if not draws:
                draws = rng.integers(environment.num_actions, size=_ACTIONS_A_DRAW).tolist()
            action = draws.pop()
        observation, reward, ended = environment.step(action)
        if reward:
            total += exact_decimal(reward)
        if ended:
            break
    return total


def _drawn(probabilities: NDArray[np.float64], num_actions: int, rng: np.random.Generator) -> int:
    if (
        probabilities.shape != (num_actions,)
        or not np.isclose(probabilities.sum(), 1, atol=1e-5)
        or (probabilities < 0).any()
    ):
        raise InvalidSettingError(
            f"the exploration policy gave {probabilities}, no probabilities of {num_actions} actions"
        )
    return int(rng.choice(num_actions, p=probabilities / probabilities.sum()))
