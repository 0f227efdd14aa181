"""A deterministic simulator of a suite as a stage: by its snapshots, or by replaying where a state has none."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from efhorizon.diagnose.stage import Chance, Played, Return
from efhorizon.suites.simulator import Simulator, SimulatorError


class SimulatorStage:
    """Nothing in it is random, so the generators that it gets stay unused."""

    chance: Chance = "none"
    how: Return = "snapshots"

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.steps_played = 0
        self._path: list[int] = []
        self._snapshot: bytes | None = None

    @property
    def num_actions(self) -> int:
        return self._simulator.num_actions

    def begin(self, rng: np.random.Generator) -> None:
        self._simulator.reset()
        self._path, self._snapshot = [], self._simulator.get_state()

    def restore(self, rng: np.random.Generator) -> None:
        if self._snapshot is not None:
            try:
                self._simulator.set_state(self._snapshot)
                return
            except SimulatorError:  # a state that cannot be restored: see suites/atari_simulator.py
                self._snapshot = None
        self._simulator.reset()
        self.play(self._path)

    def play(self, actions: Sequence[int]) -> Played:
        step = self._simulator.step
        total, first, number, ended = 0.0, 0, 0, False
        for action in actions:
            reward, ended = step(action)
            number += 1
            if reward:
                total += reward
                first = first or number
            if ended:
                break
        self.steps_played += number
        return Played(total, number, ended, first)

    def advance(self, action: int, rng: np.random.Generator) -> Played:
        self.restore(rng)
        played = self.play([action])
        self._path.append(action)
        self._snapshot = None if played.ended else self._simulator.get_state()
        return played

    def go_on(self, action: int, rng: np.random.Generator) -> Played:
        return self.play([action])

    def picture(self) -> NDArray[np.uint8] | None:
        with contextlib.suppress(SimulatorError):
            return np.asarray(self._simulator.picture(), np.uint8)
        return None

    def close(self) -> None:
        self._simulator.close()
