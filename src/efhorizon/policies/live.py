"""A live environment that also shows every frame of a step, for recordings.

In Atari a step plays several frames, and a recording has them all. The environment itself shows only the last, so the
same game runs beside it frame by frame. Both must show the same at the end of each step. Elsewhere a step is one frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.policies.actions import ATARI, ale_numbers
from efhorizon.policies.recordings import Picture
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.simulator import SimulatorError
from efhorizon.suites.specification import spec_of
from efhorizon.suites.suite import Observation


class RecordingError(EfhorizonError):
    """Play that cannot be recorded; the message is one line for the user."""


@dataclass(frozen=True)
class PlayedStep:
    """What one step showed and paid."""

    pictures: Sequence[Picture]  # on the screen when each of its frames began
    rewards: Sequence[float]  # of each frame
    ended: bool

    @property
    def reward(self) -> float:
        return float(sum(self.rewards))


def frame_by_frame(entry: Entry) -> Entry:
    """The same Atari game with one frame to a step, as a person plays it; other environments as they are."""
    if entry.suite != ATARI:
        return entry
    horizon = entry.horizon * entry.frameskip
    return replace(entry, name=f"{entry.game}_{horizon}_fs1", horizon=horizon, frameskip=1)


class LiveGame:
    """One environment, deterministic from reset; the horizon ends an episode."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.action_numbers = ale_numbers(entry)  # as recordings have them
        self._suite = registry.suite(entry.suite)
        self._simulator: Any = spec_of(entry)()
        self._frames_of_steps: Any = None
        if entry.suite == ATARI and entry.frameskip > 1:
            self._frames_of_steps = self._suite.simulator(game=entry.game, frameskip=1)
        self._elapsed = 0
        self._stack: list[Observation] = []
        self.reset()

    def reset(self) -> None:
        self._simulator.reset()
        if self._frames_of_steps is not None:
            self._frames_of_steps.reset()
        self._elapsed = 0
        self._stack = [self._suite.observation(self.entry, self._simulator)] * self._suite.frame_stack

    @property
    def observation(self) -> Observation:
        """What the agent sees, earlier frames included."""
        return self._stack[0] if len(self._stack) == 1 else np.concatenate(self._stack, axis=-1)

    @property
    def picture(self) -> Picture:
        """What a person sees."""
        picture: Picture = self._simulator.picture()
        return picture

    def step(self, action: int) -> PlayedStep:
        if self._elapsed >= self.entry.horizon:
            raise SimulatorError("the episode is over: call reset()")
        pictures = [self.picture]
        reward, ended = self._simulator.step(action)
        rewards = [reward] if self._frames_of_steps is None else self._frames(action, reward, pictures)
        self._elapsed += 1
        self._stack = [*self._stack[1:], self._suite.observation(self.entry, self._simulator)]
        return PlayedStep(pictures, rewards, ended or self._elapsed >= self.entry.horizon)

    def close(self) -> None:
        self._simulator.close()

    def _frames(self, action: int, reward: float, pictures: list[Picture]) -> list[float]:
        """Play the step frame by frame and add its pictures; the rewards of its frames, what is left in the last."""
        frames = self._frames_of_steps
        rewards = []
        for _ in range(self.entry.frameskip - 1):
            rewards.append(frames.step(action).reward)
            pictures.append(frames.picture())
        frames.step(action)
        final_noops = self.entry.horizon if "final_noops_after" in self._suite.arguments(self.entry) else None
        if self._elapsed + 1 != final_noops and not np.array_equal(frames.screen(), self._simulator.screen()):
            raise RecordingError(f"{self.entry.name}: played frame by frame, the game goes another way")
        return [*rewards, reward - sum(rewards)]
