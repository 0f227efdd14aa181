"""Small MDPs and simulators whose answers are known."""

from __future__ import annotations

import struct

import numpy as np

from efhorizon import TabularMDP
from efhorizon.suites.simulator import Screen, Transition


def random_mdp(
    rng: np.random.Generator, num_states: int, num_actions: int, horizon: int, *, end_probability: float = 0.1
) -> TabularMDP:
    """Random transitions and a few distinct rewards."""
    transitions = rng.integers(num_states, size=(num_states, num_actions))
    transitions[rng.random(transitions.shape) < end_probability] = -1
    rewards = rng.choice([0.0, 1.0, -0.5, 0.1], size=transitions.shape)
    return TabularMDP(transitions, rewards, horizon)


def shuffled(mdp: TabularMDP, rng: np.random.Generator) -> TabularMDP:
    """The same MDP with its states renumbered; state 0 stays the start."""
    order = np.concatenate([[0], 1 + rng.permutation(mdp.num_states - 1)])
    place = np.append(np.argsort(order), -1)
    return TabularMDP(place[mdp.transitions[order]], mdp.rewards[order], mdp.horizon)


class WalkSimulator:
    """A walk on the numbers 0 .. size - 1: left, stay, right; the right end pays 1 and ends the episode.

    With a clock, the state also counts steps, so no state is met at two times, as in Atari and Procgen.
    """

    num_actions = 3

    def __init__(self, size: int = 7, clock: bool = True) -> None:
        self._size, self._clock = size, clock
        self.reset()

    def reset(self) -> None:
        self._position = self._time = 0

    def step(self, action: int) -> Transition:
        self._time += self._clock
        self._position = max(0, self._position + action - 1)
        done = self._position == self._size - 1
        return Transition(float(done), done)

    def get_state(self) -> bytes:
        return struct.pack("<ii", self._position, self._time)

    def set_state(self, state: bytes) -> None:
        self._position, self._time = struct.unpack("<ii", state)

    def identity(self, state: bytes) -> bytes:
        return state

    def screen(self) -> Screen:
        screen = np.zeros((2, self._size, 3), np.uint8)
        screen[0, self._position] = 255
        return screen

    def picture(self) -> Screen:
        return self.screen()

    def close(self) -> None:
        pass


class LyingWalkSimulator(WalkSimulator):
    """Pays 2 instead of 1 on a path without any restore: what an inexact restore looks like."""

    def __init__(self, size: int = 7) -> None:
        super().__init__(size)
        self._restored = False

    def set_state(self, state: bytes) -> None:
        super().set_state(state)
        self._restored = True

    def step(self, action: int) -> Transition:
        reward, done = super().step(action)
        return Transition(reward if self._restored else 2 * reward, done)


class FailingSimulator(WalkSimulator):
    """Raises when it gets to 2."""

    def step(self, action: int) -> Transition:
        result = super().step(action)
        if self._position == 2:
            raise ZeroDivisionError("two is out of bounds")
        return result
