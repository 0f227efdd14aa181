"""A suite of corridors, in a package of its own: walk to the last cell, which pays 1 and ends the episode.

Agents see one corridor as a vector of its cells, the other as a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from efhorizon.suites.entry import Entry
from efhorizon.suites.simulator import Screen, Simulator, Transition
from efhorizon.suites.suite import Mark, NetworkKind, Observation, Suite, Survey

LENGTHS = {"corridor": 5, "gallery": 4}  # in cells
WALKER, FLOOR = (200, 80, 0), (235, 235, 225)
TILE = 9  # pixels


class Corridor:
    """Simulates one corridor; its state is the walker's cell."""

    num_actions = 3

    def __init__(self, game: str) -> None:
        self._length = LENGTHS[game]
        self._cell = 0

    def reset(self) -> None:
        self._cell = 0

    def step(self, action: int) -> Transition:
        self._cell = max(0, self._cell + action - 1)
        is_there = self._cell == self._length - 1
        return Transition(float(is_there), is_there)

    def get_state(self) -> bytes:
        return bytes([self._cell])

    def set_state(self, state: bytes) -> None:
        (self._cell,) = state

    def identity(self, state: bytes) -> bytes:
        return state

    def screen(self) -> Screen:
        return (np.arange(self._length, dtype=np.uint8) == self._cell).astype(np.uint8).reshape(1, -1, 1)

    def picture(self) -> Screen:
        return TOY.drawn(self.screen())

    def close(self) -> None:
        pass


class Toy(Suite):
    name = "toy"
    title = "Toy corridors"
    packages = ("toy-suite",)
    mark = Mark("M-4-1.5h8v3h-8Z")
    screen_format = "cells"

    def entries(self) -> Iterator[Entry]:
        yield Entry("Corridor-v0", self.name, "corridor", horizon=8, frameskip=1, num_actions=3)
        yield Entry("gallery_6_fs1", self.name, "gallery", horizon=6, frameskip=1, num_actions=3)

    def simulator(self, **arguments: Any) -> Simulator:
        return Corridor(**arguments)

    def survey(self, entry: Entry) -> Survey:
        return Survey(LENGTHS[entry.game] - 1)

    def drawn(self, screen: Screen) -> Screen:
        row = np.where(screen == 1, np.array(WALKER, np.uint8), np.array(FLOOR, np.uint8))  # [1, cells, 3]
        return row.repeat(4 * TILE, axis=0).repeat(TILE, axis=1)

    def action_names(self, game: str) -> Sequence[str]:
        return ("backward", "stay", "onward")

    def network(self, game: str) -> NetworkKind:
        return "image" if game == "gallery" else "dense"

    def observer(self, entry: Entry) -> Callable[[Screen], Observation]:
        return self.drawn if entry.game == "gallery" else np.ravel


TOY = Toy()
