"""What a fresh process does to verify a table: play episodes from reset, and take every action in given states.

States and screens come back as 128-bit digests of their bytes: equal digests count as equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
import zstandard
from numpy.typing import NDArray

from efhorizon.suites.simulator import Simulator, SimulatorError

_ZSTD_LEVEL = 1

Digests = NDArray[np.uint64]  # [n, 2]
ScreenShape = tuple[int, ...] | None  # of the table's screens; None: screens are not looked at


@dataclass(frozen=True)
class Episode:
    """Actions to take from reset.

    `goal` is the raw state that a table says is met after `goal_time` actions. If it is met, the episode stops there.
    """

    actions: tuple[int, ...]
    goal: bytes | None = None
    goal_time: int = 0


@dataclass(frozen=True)
class Played:
    """What an episode of n actions showed: rows 0 .. n of states and screens, without the last if the episode ended."""

    rewards: NDArray[np.float64]  # [n]
    ended: bool  # after the last of these actions
    states: Digests
    screens: Digests  # zeros where they are not looked at
    met_goal: bool


@dataclass(frozen=True)
class Met:
    """Distinct states in the order in which they were first met."""

    states: Digests
    screens: Digests
    snapshots: tuple[bytes, ...]  # packed


@dataclass(frozen=True)
class Expanded:
    """What every action does in each of B states; -1 is the end of the episode."""

    rewards: NDArray[np.float64]  # [B, A]
    successors: NDArray[np.int32]  # [B, A], indices into `met`
    met: Met


class Player:
    """One simulator, fresh, in a process of its own."""

    def __init__(self, make_simulator: Callable[[], Simulator], num_actions: int, screen_shape: ScreenShape) -> None:
        self._simulator, self._screen_shape = make_simulator(), screen_shape
        if self._simulator.num_actions != num_actions:
            found = self._simulator.num_actions
            raise SimulatorError(f"the table has {num_actions} actions but its environment {found}")

    def start(self) -> Met:
        """The start state."""
        self._simulator.reset()
        return self._met({self._state(): (self._screen(), self._packed())})

    def played(self, episodes: Sequence[Episode]) -> list[Played]:
        """Play from reset, without ever restoring a state."""
        return [self._episode(episode) for episode in episodes]

    def expanded(self, snapshots: Sequence[bytes]) -> Expanded:
        """Take every action in each of the states that were met before, here or in another process."""
        simulator, num_actions = self._simulator, self._simulator.num_actions
        rewards = np.zeros((len(snapshots), num_actions))
        successors = np.full((len(snapshots), num_actions), -1, np.int32)
        met: dict[bytes, tuple[bytes, bytes]] = {}
        numbers: dict[bytes, int] = {}
        for row, packed in enumerate(snapshots):
            snapshot = zstandard.decompress(packed)
            for action in range(num_actions):
                simulator.set_state(snapshot)
                rewards[row, action], ended = simulator.step(action)
                if ended:
                    continue
                state = self._state()
                successors[row, action] = numbers.setdefault(state, len(numbers))
                if state not in met:
                    met[state] = self._screen(), self._packed()
        return Expanded(rewards, successors, self._met(met))

    def _episode(self, episode: Episode) -> Played:
        simulator = self._simulator
        simulator.reset()
        rewards: list[float] = []
        states, screens = [self._state()], [self._screen()]
        ended = met_goal = False
        for action in episode.actions:
            reward, ended = simulator.step(action)
            rewards.append(reward)
            if ended:
                break
            states.append(self._state())
            screens.append(self._screen())
            met_goal = episode.goal is not None and len(rewards) == episode.goal_time and self._is_in(episode.goal)
            if met_goal:
                break
        return Played(np.array(rewards, float), ended, _digests(states), _digests(screens), met_goal)

    def _is_in(self, stored: bytes) -> bool:
        simulator = self._simulator
        try:
            return simulator.identity(stored) == simulator.identity(simulator.get_state())
        except SimulatorError:  # a raw state that another program wrote
            return False

    def _state(self) -> bytes:
        return xxhash.xxh3_128_digest(self._simulator.identity(self._simulator.get_state()))

    def _screen(self) -> bytes:
        if self._screen_shape is None:
            return bytes(16)
        screen = self._simulator.screen()
        if screen.shape != self._screen_shape:  # published files hold pictures where ours hold something more compact
            screen = self._simulator.picture()
        return screen_digest(screen)

    def _packed(self) -> bytes:
        return zstandard.compress(self._simulator.get_state(), _ZSTD_LEVEL)

    def _met(self, met: dict[bytes, tuple[bytes, bytes]]) -> Met:
        screens, snapshots = [screen for screen, _ in met.values()], tuple(packed for _, packed in met.values())
        return Met(_digests(list(met)), _digests(screens), snapshots)


def screen_digest(screen: NDArray[np.uint8]) -> bytes:
    return xxhash.xxh3_128_digest(np.ascontiguousarray(screen).tobytes() + str(screen.shape).encode())


def _digests(digests: Sequence[bytes]) -> Digests:
    return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)
