"""`efhorizon export`: a table in the published layout."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from efhorizon.cli import messages, print_json
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import ScreenArray, TabularMDP, load
from efhorizon.pictures import drawn

_LARGEST_PICTURES = 8 * 2**30  # bytes before compression; beyond that screens stay compact


def run(options: argparse.Namespace) -> int:
    if options.file.suffix != ".npz":
        raise EfhorizonError(f"{options.file}: the file to write must end in .npz")
    mdp = load(options.path)
    with messages.status(f"writing {options.file}"):
        exported(mdp, with_screens=not options.no_screens, with_states=not options.no_states).save(options.file)
    size = options.file.stat().st_size
    if options.json:
        print_json({"id": mdp.metadata.get("id"), "path": str(options.file), "bytes": size})
    else:
        Console(highlight=False).print(f"{mdp.num_states:,} states written to {options.file} ({size / 2**20:.1f} MB)")
    return 0


def exported(mdp: TabularMDP, *, with_screens: bool, with_states: bool) -> TabularMDP:
    """The table as the published files hold it: screens drawn as pictures."""
    screens, stored_as = mdp.screens, mdp.metadata.get("screen_format", "rgb")
    metadata = dict(mdp.metadata)
    if screens is not None and with_screens and stored_as in ("palette", "symbols"):
        pictures = _Pictures(screens, stored_as)
        if int(np.prod(pictures.shape, dtype=object)) > _LARGEST_PICTURES:
            messages.print(
                f"pictures would take {np.prod(pictures.shape, dtype=object) / 2**30:.0f} GB: screens stay compact"
            )
        else:
            screens, metadata["screen_format"] = pictures, "rgb"
    return TabularMDP(
        mdp.transitions,
        (mdp.reward_codes, mdp.reward_values),
        mdp.horizon,
        screens=screens if with_screens else None,
        screen_mapping=mdp.screen_mapping if with_screens else None,
        states=mdp.states if with_states else None,
        metadata=metadata,
    )


class _Pictures:
    """Screens drawn as they are asked for."""

    dtype = np.dtype(np.uint8)

    def __init__(self, screens: ScreenArray, stored_as: str) -> None:
        self._screens, self._stored_as = screens, stored_as
        self.shape = (screens.shape[0], *drawn(np.asarray(screens[0]), stored_as).shape)

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        chosen = np.asarray(self._screens[index])
        if chosen.ndim == 3:
            return drawn(chosen, self._stored_as)
        return np.stack([drawn(screen, self._stored_as) for screen in chosen])
