"""Coming back to a state of an environment without replaying all actions from its reset.

An Atari emulator is saved and restored, which takes microseconds where its reset takes a quarter of a second. Other
environments are deep-copied, where that is faster than to replay. Either is used only if it was seen to be exact: some
copies share an engine with what they were copied from, and some come back without having been reset.
"""

from __future__ import annotations

import copy
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from efhorizon.suites.state_identity import TRANSPARENT, layers

_MOST_EMULATOR_STATES = 512


class Copies(Protocol):
    """Saved states of one environment, by the actions that led to them."""

    def nearest(self, path: bytes) -> tuple[bytes, Any, Any] | None:
        """Of a saved state on the way: its actions, an environment that stands in it, and its observation."""
        ...

    def save(self, path: bytes, env: Any, observation: Any, replay_seconds: float) -> None:
        """Save where an environment stands, if that is worth it: replaying takes so many seconds."""
        ...


class NoCopies:
    """For environments that must be replayed."""

    def nearest(self, path: bytes) -> None:
        return None

    def save(self, path: bytes, env: Any, observation: Any, replay_seconds: float) -> None:
        pass


class DeepCopies:
    """The last state that was worth copying: it is restored once for each action."""

    def __init__(self) -> None:
        self.seconds = 0.0  # that a copy takes
        self._saved: tuple[bytes, Any, Any] | None = None

    def nearest(self, path: bytes) -> tuple[bytes, Any, Any] | None:
        if self._saved is None or self._saved[0] != path:
            return None
        return path, *copy.deepcopy(self._saved[1:])  # together: the observation may be an array that steps write into

    def save(self, path: bytes, env: Any, observation: Any, replay_seconds: float) -> None:
        if self.seconds < replay_seconds:
            started = time.perf_counter()
            self._saved = path, *copy.deepcopy((env, observation))
            self.seconds = time.perf_counter() - started


class EmulatorCopies:
    """The states of an Atari emulator that were used last."""

    def __init__(self) -> None:
        self._saved: OrderedDict[bytes, tuple[Any, Any, Any]] = OrderedDict()

    def nearest(self, path: bytes) -> tuple[bytes, Any, Any] | None:
        for end in range(len(path), -1, -2):  # two bytes an action
            found = self._saved.get(path[:end])
            if found is not None:
                self._saved.move_to_end(path[:end])
                state, env, observation = found
                env.unwrapped.ale.restoreState(state)
                return path[:end], env, observation
        return None

    def save(self, path: bytes, env: Any, observation: Any, replay_seconds: float) -> None:
        self._saved[path] = env.unwrapped.ale.cloneState(include_rng=True), env, copy.copy(observation)
        while len(self._saved) > _MOST_EMULATOR_STATES:
            oldest = next((known for known in self._saved if known), b"")  # the start is never forgotten
            del self._saved[oldest]


def exact_copies(env: Any, reset: Callable[[], Any], played: Callable[[Any], Any]) -> Copies:
    """The fastest way back to a state that is exact: `played` plays some actions and says what they showed."""
    reset()
    expected = played(env)
    candidates: list[Copies] = [EmulatorCopies()] if _is_emulator(env) else [DeepCopies()]
    for copies in candidates:
        try:
            observation = reset()
            copies.save(b"", env, observation, float("inf"))
            for _ in range(2):
                saved = copies.nearest(b"")
                if saved is None or played(saved[1]) != expected:
                    raise ValueError("not exact")
            if isinstance(copies, DeepCopies) and played(env) != expected:
                raise ValueError("what was copied has changed")
        except Exception:  # cannot be copied, or not exactly: whatever went wrong, it is replayed
            continue
        return copies
    return NoCopies()


def _is_emulator(env: Any) -> bool:
    """Whether all that changes in an environment is an Atari emulator."""
    *above, innermost = layers(env)
    ale = getattr(innermost, "ale", None)
    return type(ale).__name__ == "ALEInterface" and all(isinstance(layer, TRANSPARENT) for layer in above)
