"""What sampling needs of an environment: begin an episode, mark a place in it, and come back to that place.

Where the environment has chance, each return to the mark meets fresh noise. It is drawn from the generator that the
task brings along. So what a task finds depends on the task alone, whichever process does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Chance = Literal["none", "start", "steps"]  # where chance comes in: nowhere, only at the reset, in steps too
Return = Literal["snapshots", "copies", "replay", "open-loop"]  # how a place is reached again


class Played(NamedTuple):
    """What some actions brought."""

    total: float  # sum of the rewards
    steps: int  # until the episode ended, or all of them
    ended: bool
    first_reward: int  # the step of the first reward that is not 0, from 1 on; 0 if there was none


class Stage(Protocol):
    """One environment in one process."""

    @property
    def num_actions(self) -> int: ...

    @property
    def chance(self) -> Chance: ...

    @property
    def how(self) -> Return: ...

    @property
    def steps_played(self) -> int:
        """All steps of the emulator, also those of replays."""
        ...

    def begin(self, rng: np.random.Generator) -> None:
        """Start an episode, and mark its start."""
        ...

    def restore(self, rng: np.random.Generator) -> None:
        """Go to the mark."""
        ...

    def play(self, actions: Sequence[int]) -> Played:
        """Take actions until they are done or the episode ends."""
        ...

    def advance(self, action: int, rng: np.random.Generator) -> Played:
        """Take an action at the mark, and mark where it leads."""
        ...

    def go_on(self, action: int, rng: np.random.Generator) -> Played:
        """As `advance`, without coming back to the mark first: for those who never left it."""
        ...

    def picture(self) -> NDArray[np.uint8] | None:
        """What is seen now, RGB; None where nothing is drawn."""
        ...

    def close(self) -> None: ...
