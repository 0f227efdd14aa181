"""The screens of a table by number, so that screens seen elsewhere can be compared with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.keys import KeyIndex
from efhorizon.build.player import Digests, ScreenShape, screen_digest
from efhorizon.mdp import TabularMDP

_BLOCK = 64  # screens read at a time


class TableScreens:
    """Numbers for screens: equal numbers mean equal screens. A table's screens are read when they are first needed."""

    def __init__(self, mdp: TabularMDP) -> None:
        ignored = (mdp.metadata.get("inputs") or {}).get("ignore_screens")
        self._screens = None if ignored else mdp.screens
        self._mapping = None if mdp.screens is None else mdp.shown
        self._index = KeyIndex()
        self._numbers = np.full(mdp.num_screens, -1, np.int32)

    @property
    def shape(self) -> ScreenShape:
        """None: the table has no screens that stand for its states."""
        return None if self._screens is None else tuple(self._screens.shape[1:])

    def of_digests(self, digests: Digests) -> NDArray[np.int32]:
        """Numbers of screens [n] that were seen in the environment."""
        return np.zeros(len(digests), np.int32) if self._screens is None else self._index.numbers(digests)

    def of_states(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """Numbers of the screens [n] that the table has for these states."""
        if self._screens is None or self._mapping is None:
            return np.zeros(len(states), np.int32)
        wanted = self._mapping[states]
        for block in np.unique(wanted[self._numbers[wanted] < 0] // _BLOCK).tolist():
            screens = np.asarray(self._screens[block * _BLOCK : (block + 1) * _BLOCK], np.uint8)
            digests = np.frombuffer(b"".join(map(screen_digest, screens)), np.uint64).reshape(-1, 2)
            self._numbers[block * _BLOCK : (block + 1) * _BLOCK] = self._index.numbers(digests)
        numbers: NDArray[np.int32] = self._numbers[wanted]
        return numbers
