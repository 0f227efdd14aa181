"""What the explorer needs from an environment: step it, take its state out as bytes, put a state back.

A simulator is deterministic: `set_state(s); step(a)` always gives the same reward, end, next state and screen. It knows
nothing of horizons, observations or Gymnasium; `BridgeEnv` adds those. One simulator serves one process.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError

Screen = NDArray[np.uint8]  # [H, W, C]


class Transition(NamedTuple):
    """What one step returned."""

    reward: float
    terminated: bool


@runtime_checkable
class Simulator(Protocol):
    """A deterministic environment whose whole state is a byte string."""

    @property
    def num_actions(self) -> int:
        """Actions are 0 .. num_actions - 1."""
        ...

    def reset(self) -> None:
        """Go to the one start state."""
        ...

    def step(self, action: int) -> Transition:
        """Take one action (frameskip included) in the current state, which must not be terminal."""
        ...

    def get_state(self) -> bytes:
        """Everything that is needed to continue from here, in this process or another."""
        ...

    def set_state(self, state: bytes) -> None:
        """Go to a state that `get_state` returned, here or in another process."""
        ...

    def identity(self, state: bytes) -> bytes:
        """The part of a snapshot that identifies the state: equal identities mean the same state."""
        ...

    def screen(self) -> Screen:
        """What is seen in the current state, as stored in the table (compact where pixels can be drawn from it)."""
        ...

    def picture(self) -> Screen:
        """The current state as an RGB image for people."""
        ...

    def close(self) -> None:
        """Release what the simulator holds."""
        ...


class SimulatorError(EfhorizonError):
    """An environment cannot do what it was asked; the message is one line for the user."""


class StochasticError(SimulatorError):
    """The same action in the same state gave different results: what was found, and what can be done about it."""

    def __init__(self, found: str, advice: str = "") -> None:
        super().__init__(f"{found}; {advice}" if advice else found)
        self.found = found


class MissingExtraError(SimulatorError):
    """An optional part is not installed."""

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(f"{module!r} is not installed; install it with: pip install 'efhorizon[{extra}]'")
