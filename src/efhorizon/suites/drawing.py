"""Pictures for people, from the compact screens that tables hold.

A table of ours says in its metadata how its screens are stored ("screen_format"); a published file holds pictures
already.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP

_SCREEN_FORMATS = {"atari": "palette", "procgen": "rgb", "minigrid": "symbols", "gymnasium": "observation"}


def screen_format(suite: str) -> str:
    """How the tables of a suite store their screens."""
    return _SCREEN_FORMATS[suite]


def picture(mdp: TabularMDP, state: int) -> NDArray[np.uint8]:
    """The screen of one state as an RGB (or grey) image [H, W, 3 or 1]."""
    return drawn(mdp.screen(state), mdp.metadata.get("screen_format", "rgb"))


def drawn(screen: NDArray[np.uint8], stored_as: str) -> NDArray[np.uint8]:
    """A stored screen as an image."""
    if stored_as == "symbols":
        from efhorizon.suites.minigrid import picture_of_screen

        return picture_of_screen(screen)
    if stored_as == "palette":
        from efhorizon.suites.atari import picture_of_screen as colours_of_screen

        return colours_of_screen(screen)
    if screen.shape[2] not in (1, 3) or screen.shape[0] < 2:
        raise InvalidTableError(f"an observation of shape {screen.shape} is no picture")
    return screen
