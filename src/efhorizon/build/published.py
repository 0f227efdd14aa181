"""A table as the published files hold it: screens drawn as pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.target import table_spec
from efhorizon.mdp import TabularMDP
from efhorizon.suites.drawing import drawn, is_compact
from efhorizon.suites.simulator import Simulator

_LARGEST_PICTURES = 8 * 2**30  # bytes before compression; beyond that screens stay compact


def published_table(
    mdp: TabularMDP, *, with_screens: bool, with_states: bool, on_message: Callable[[str], None]
) -> TabularMDP:
    """The same table with pictures for screens, or without screens or raw states."""
    screens, metadata = mdp.screens, dict(mdp.metadata)
    if with_screens and screens is not None and is_compact(metadata):
        pictures = _Pictures(mdp)
        size = int(np.prod(pictures.shape, dtype=object))
        if size > _LARGEST_PICTURES:
            on_message(f"pictures would take {size / 1e9:.0f} GB: screens stay compact")
        else:
            screens, metadata["screen_format"] = pictures, "rgb"
    return TabularMDP(
        mdp.transitions,
        (mdp.reward_codes, mdp.reward_values),
        mdp.horizon,
        screens=screens if with_screens else None,
        screen_mapping=mdp.screen_mapping if with_screens else None,
        base_states=mdp.base_states if with_screens else None,
        states=mdp.states if with_states else None,
        metadata=metadata,
    )


class _Pictures:
    """The screens of a table drawn as they are asked for.

    MiniGrid's are drawn by the gridworld itself, put into a state with that screen: only it knows what the agent
    sees, which the published pictures show in a lighter shade.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, mdp: TabularMDP) -> None:
        assert mdp.screens is not None
        self._mdp, self._screens = mdp, mdp.screens
        self._gridworld: Simulator | None = None
        if mdp.metadata["screen_format"] == "symbols" and mdp.states is not None:
            self._gridworld = table_spec(mdp)()
            _, self._states = np.unique(mdp.shown, return_index=True)
        self.shape = (self._screens.shape[0], *self._picture(0).shape)

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        numbers = np.arange(self.shape[0])[index]
        if numbers.ndim == 0:
            return self._picture(int(numbers))
        return np.stack([self._picture(int(number)) for number in numbers])

    def _picture(self, number: int) -> NDArray[np.uint8]:
        if self._gridworld is None or self._mdp.states is None:
            return drawn(np.asarray(self._screens[number]), self._mdp.metadata)
        self._gridworld.set_state(self._mdp.states[int(self._states[number])])
        return self._gridworld.picture()
