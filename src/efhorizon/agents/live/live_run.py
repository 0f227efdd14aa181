"""A run of GORP on a live environment, and its checkpoint: JSON with a checksum."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import UNSET, UnsetType

from efhorizon.errors import StoreError
from efhorizon.gorp.ties import Ties
from efhorizon.io.decode import Count, Finite, Positive, Record, Text, read_object, record_of

FORMAT = "efhorizon-gorp-1"
_WHAT = "a checkpoint of GORP"


class Settings(Record, frozen=True):
    """All that decides the result, besides the environment and the exploration policy."""

    id: Text
    horizon: Positive  # T
    k: Positive
    m: Positive
    seed: Count
    ties: Literal["lowest"] | UnsetType = UNSET  # uniform if it is not set

    @property
    def rule(self) -> Ties:
        """How ties are broken."""
        return "uniform" if self.ties is UNSET else "lowest"


class LiveRun(Record, frozen=True, tag_field="format", tag=FORMAT):
    """A run, finished or not."""

    settings: Settings
    actions: tuple[Count, ...]  # chosen so far
    rewards: tuple[Finite, ...]  # that they got
    estimates: tuple[Finite, ...]  # after each iteration, the mean return of the best sequence's episodes
    ended: bool  # whether the environment ended the episode before the horizon
    steps_played: Count  # environment steps really taken, replays included
    num_actions: Positive

    def __post_init__(self) -> None:
        lengths = {len(self.actions), len(self.rewards), len(self.estimates)}
        if len(lengths) > 1 or len(self.actions) > min(self.settings.horizon, self.steps_played):
            raise ValueError(f"{len(self.actions)} actions, {len(self.rewards)} rewards do not make a run")
        if any(action >= self.num_actions for action in self.actions):
            raise ValueError(f"action {max(self.actions)} of {self.num_actions}")
        if self.ended and not self.actions:
            raise ValueError("an episode without actions has not ended")

    @property
    def is_complete(self) -> bool:
        return self.ended or len(self.actions) == self.settings.horizon

    @property
    def total_reward(self) -> float:
        """The return of the actions so far."""
        return float(sum(map(exact_decimal, self.rewards)))

    @property
    def timesteps(self) -> int:
        """T for each episode, as the paper counts: T^2 A^k m once complete, whether or not the episode ended early."""
        settings = self.settings
        iterations = settings.horizon if self.is_complete else len(self.actions)
        return int(iterations * settings.horizon * self.num_actions**settings.k * settings.m)


@lru_cache(maxsize=4096)
def exact_decimal(reward: float) -> Fraction:
    """A reward as the shortest decimal that float32 rounds to it, as `TabularMDP.reward_units` reads rewards."""
    return Fraction(str(np.float32(reward)))


def read_checkpoint(path: Path, settings: Settings, num_actions: int) -> LiveRun:
    """The run in a file, which must be one with these settings."""
    try:
        run = record_of(read_object(path, _WHAT), LiveRun, str(path))
    except StoreError as error:
        raise bad_checkpoint(path, str(error).removeprefix(f"{path}: ")) from None
    if run.settings != settings or run.num_actions != num_actions:
        raise StoreError(f"{path}: a checkpoint of another run ({run.settings}, not {settings})")
    return run


def bad_checkpoint(path: Path, reason: str) -> StoreError:
    """What is wrong with a checkpoint, and what to do about it."""
    return StoreError(f"{path}: not {_WHAT} that can be used ({reason}); delete it to begin this run again")
