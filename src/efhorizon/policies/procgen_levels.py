"""Many Procgen levels at once, stepped as the tables' simulator steps one: same actions, frames, rewards and ends.

A step repeats its action `frameskip` times or until the episode ends, and sums the rewards. Procgen's environments are
stepped together, and where an episode ends the next one begins in the same frame; the frames that are left of the step
would be played in the new episode, by an action that was not meant for it. So the state in which the new episode begins
is kept, and put back after the step: every episode is seen from its start, as in a table. In a step that ends an
episode, `reward` is that of the finished one.

BRIDGE's levels are those of the catalogue, and the one seed per game of Procgen's exploration levels.

Legend: N environments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.policies.pretraining_settings import PretrainingError, PretrainingSettings
from efhorizon.suites.procgen_library import exploration_seeds, procgen_engine
from efhorizon.suites.simulator import SimulatorError

MAX_LEVEL = 2**31 - 1  # the library's seeds are int32, and a range of levels ends before this


class ProcgenLevels:
    """N environments, each of which plays levels drawn from `settings.levels`, one after the other."""

    def __init__(self, settings: PretrainingSettings, *, seed: int, num_threads: int = 0) -> None:
        check_levels(settings)
        self._frameskip, self._num = settings.frameskip, settings.num_envs
        self._engine = procgen_engine(
            settings.game,
            num=settings.num_envs,
            difficulty=settings.difficulty,
            seed=seed,
            num_threads=num_threads,
            start_level=settings.first_level,
            num_levels=settings.num_levels,
        )
        self._engine.observe()

    @property
    def images(self) -> NDArray[np.uint8]:
        """What is seen now, [N, 64, 64, 3]: the same memory at each call, which the next step overwrites."""
        return self._engine.images

    def step(self, actions: NDArray[np.int32]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Take a step: rewards [N] and whether it ended the episode [N]."""
        total = np.zeros(self._num, np.float32)  # the library's type, and the tables'
        is_over = np.zeros(self._num, np.bool_)
        starts: dict[int, bytes] = {}
        for frame in range(self._frameskip):
            self._engine.act(actions)
            reward, first = self._engine.observe()
            total += np.where(is_over, np.float32(0), reward)
            for which in np.flatnonzero(first & ~is_over).tolist():
                if frame < self._frameskip - 1:
                    starts[which] = self._engine.get_state(which)
            is_over |= first
        for which, state in starts.items():
            self._engine.set_state(which, state)
        if starts:
            self._engine.observe()
        return total, is_over

    def states(self) -> list[bytes]:
        """Everything that is needed to continue from here, by environment."""
        return [self._engine.get_state(which) for which in range(self._num)]

    def restore(self, states: Sequence[bytes]) -> None:
        """Go to states that `states` returned, of environments with the same settings."""
        for which, state in enumerate(states):
            own = self._engine.get_state(which)
            header = 8 + int.from_bytes(own[4:8], "little")  # the library ends the process if it is not as it expects
            if state[:header] != own[:header] or state[-4:] != own[-4:]:
                raise SimulatorError(f"this is not a state of the game ({len(state)} bytes)")
            self._engine.set_state(which, state)
        self._engine.observe()

    def close(self) -> None:
        self._engine.close()


def bridge_levels(game: str) -> frozenset[int]:
    """The levels of a game that have tables in BRIDGE, by the library's seeds, whatever their difficulty."""
    entries = [entry for entry in catalog.entries("procgen") if entry.game == game]
    levels = {entry.level for entry in entries if entry.difficulty != "exploration" and entry.level is not None}
    if any(entry.difficulty == "exploration" for entry in entries):
        levels.add(exploration_seeds()[game])
    return frozenset(levels)


def check_levels(settings: PretrainingSettings) -> None:
    """Refuse levels of BRIDGE, and numbers that are no levels."""
    levels = settings.levels
    if levels.start < 0 or levels.stop > MAX_LEVEL:
        raise PretrainingError(f"levels must be in 0 .. {MAX_LEVEL - 1}, got {levels.start} .. {levels.stop - 1}")
    shared = sorted(level for level in bridge_levels(settings.game) if level in levels)
    if shared:
        raise PretrainingError(
            f"levels {levels.start} .. {levels.stop - 1} contain BRIDGE's level {shared[0]} of {settings.game}: "
            f"a policy would be tested where it was trained"
        )
