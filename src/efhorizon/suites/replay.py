"""For simulators that do not restore states exactly: detect that, and do without restoring.

A restore is exact if continuing from a restored state equals continuing without ever having restored. Nothing less will
do: restored runs that merely agree with each other make a consistent table of the wrong game.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from efhorizon.suites.simulator import Screen, Simulator, SimulatorError, Transition

_MAX_PATH_LENGTH = 2**16 - 1


class ReplaySimulator:
    """A simulator whose snapshot is the way to a state: `set_state` plays it again from reset.

    Slow, but exact wherever the inner simulator is deterministic; its `set_state` is never called. A snapshot is the
    number of steps and the actions (uint16, little-endian), then the identity of the inner state, which alone is this
    state's identity: two ways to the same inner state merge, as they do in any simulator.
    """

    def __init__(self, inner: Simulator) -> None:
        if inner.num_actions > _MAX_PATH_LENGTH:
            raise SimulatorError(f"at most {_MAX_PATH_LENGTH} actions can be replayed, got {inner.num_actions}")
        self._inner = inner
        self._path: tuple[int, ...] = ()  # what the inner simulator has played since its last reset
        inner.reset()

    @property
    def num_actions(self) -> int:
        return self._inner.num_actions

    def reset(self) -> None:
        self._inner.reset()
        self._path = ()

    def step(self, action: int) -> Transition:
        if len(self._path) == _MAX_PATH_LENGTH:
            raise SimulatorError(f"at most {_MAX_PATH_LENGTH} steps can be replayed")
        transition = self._inner.step(action)
        self._path += (action,)
        return transition

    def get_state(self) -> bytes:
        path = struct.pack(f"<H{len(self._path)}H", len(self._path), *self._path)
        return path + self._inner.identity(self._inner.get_state())

    def set_state(self, state: bytes) -> None:
        path, identity = _decoded(state)
        if any(action >= self.num_actions for action in path):
            raise SimulatorError(f"this state's path has an action above {self.num_actions - 1}: {max(path)}")
        if path[: len(self._path)] != self._path:
            self.reset()
        for action in path[len(self._path) :]:
            if self.step(action).terminated:
                raise SimulatorError(f"the episode ended while replaying {len(path)} steps, at step {len(self._path)}")
        if self._inner.identity(self._inner.get_state()) != identity:
            raise SimulatorError(f"replaying {len(path)} steps led to another state: not a deterministic environment")

    def identity(self, state: bytes) -> bytes:
        return _decoded(state)[1]

    def screen(self) -> Screen:
        return self._inner.screen()

    def picture(self) -> Screen:
        return self._inner.picture()

    def drawing(self) -> Any:
        """What the environment renders, where the simulator has it; else its picture."""
        inner: Any = self._inner
        return inner.drawing() if hasattr(inner, "drawing") else inner.picture()

    def close(self) -> None:
        self._inner.close()


def _decoded(state: bytes) -> tuple[tuple[int, ...], bytes]:
    """The path and the inner identity of a `ReplaySimulator`'s snapshot."""
    try:
        (length,) = struct.unpack_from("<H", state)
        path = struct.unpack_from(f"<{length}H", state, 2)
    except struct.error:
        raise SimulatorError(f"this is not a replay state: its path is cut off ({len(state)} bytes)") from None
    return path, state[2 + 2 * length :]


@dataclass(frozen=True)
class RestoreReport:
    """Whether restoring was exact in every rollout tried; if not, the first difference found."""

    exact: bool
    actions: tuple[int, ...] = ()  # from reset to the difference
    difference: str = ""  # what differed after the last of these actions
    notices: tuple[str, ...] = ()  # what the user should know about the environment, one line each

    @property
    def step(self) -> int:
        """After how many steps it differed."""
        return len(self.actions)


def restore_is_exact(
    make_simulator: Callable[[], Simulator], num_rollouts: int, num_steps: int, rng: np.random.Generator
) -> RestoreReport:
    """Compare random rollouts of fresh simulators that never restore with the same rollouts restored before each step.

    Two simulators take turns at the restored steps, so every state crosses from one to the other, and the one that
    receives it first takes a random step away, so that anything a snapshot leaves out is certainly different.
    """
    with contextlib.closing(make_simulator()) as one, contextlib.closing(make_simulator()) as other:
        for _ in range(num_rollouts):
            with contextlib.closing(make_simulator()) as plain:
                report = _compared_rollout(plain, one, other, num_steps, rng)
            if not report.exact:
                return report
    return RestoreReport(True)


def _compared_rollout(
    plain: Simulator, giver: Simulator, receiver: Simulator, num_steps: int, rng: np.random.Generator
) -> RestoreReport:
    for simulator in (plain, giver, receiver):
        simulator.reset()
    actions: tuple[int, ...] = ()
    difference = _difference(plain, giver)
    while not difference and len(actions) < num_steps:
        action, detour = (int(a) for a in rng.integers(plain.num_actions, size=2))
        actions += (action,)
        expected = plain.step(action)
        try:
            state = giver.get_state()
            receiver.step(detour)
            receiver.set_state(state)
            difference = _difference(plain, receiver, expected, receiver.step(action))
        except SimulatorError as error:
            difference = str(error)
        if expected.terminated:
            break
        giver, receiver = receiver, giver
    return RestoreReport(not difference, actions if difference else (), difference)


def _difference(
    plain: Simulator, restored: Simulator, expected: Transition | None = None, found: Transition | None = None
) -> str:
    """What tells a restored simulator from the plain one that took the same steps; empty if nothing does."""
    if expected is not None and found is not None:
        if expected.reward != found.reward:
            return f"reward {found.reward} instead of {expected.reward}"
        if expected.terminated != found.terminated:
            return f"terminated {found.terminated} instead of {expected.terminated}"
        if expected.terminated:
            return ""  # the state after the end does not matter
    if plain.identity(plain.get_state()) != restored.identity(restored.get_state()):
        return "state"
    num_pixels = int(np.count_nonzero(plain.screen() != restored.screen()))
    return f"screen ({num_pixels} values)" if num_pixels else ""
