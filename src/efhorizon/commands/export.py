"""`efhorizon export`: a table in the published layout."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from efhorizon.cli import messages, print_json
from efhorizon.commands.verify import specification
from efhorizon.errors import EfhorizonError
from efhorizon.io.tables import load, save
from efhorizon.mdp import TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.drawing import drawn, is_compact
from efhorizon.suites.simulator import Simulator

_LARGEST_PICTURES = 8 * 2**30  # bytes before compression; beyond that screens stay compact


def run(options: argparse.Namespace) -> int:
    if options.file.suffix != ".npz":
        raise EfhorizonError(f"{options.file}: the file to write must end in .npz")
    mdp = load(options.path)
    with messages.status(f"writing {options.file}"):
        save(exported(mdp, with_screens=not options.no_screens, with_states=not options.no_states), options.file)
    size = options.file.stat().st_size
    if options.json:
        print_json({"id": mdp.metadata.get("id"), "path": str(options.file), "bytes": size})
    else:
        Console(highlight=False).print(f"{mdp.num_states:,} states written to {options.file} ({size / 2**20:.1f} MB)")
    return 0


def exported(mdp: TabularMDP, *, with_screens: bool, with_states: bool) -> TabularMDP:
    """The table as the published files hold it: screens drawn as pictures."""
    screens, metadata = mdp.screens, dict(mdp.metadata)
    if with_screens and is_compact(metadata):
        pictures = _Pictures(mdp)
        size = int(np.prod(pictures.shape, dtype=object))
        if size > _LARGEST_PICTURES:
            messages.print(f"pictures would take {size / 2**30:.0f} GB: screens stay compact")
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
    """The screens of a table drawn as they are asked for.

    Where the suite says so, its simulator draws them, put into a state with that screen: it may know more than the
    screen shows.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, mdp: TabularMDP) -> None:
        assert mdp.screens is not None
        assert mdp.screen_mapping is not None
        self._mdp, self._screens = mdp, mdp.screens
        self._simulator: Simulator | None = None
        if registry.suite(mdp.metadata.get("suite")).draws_states and mdp.states is not None:
            self._simulator = specification(mdp, None)()
            _, self._states = np.unique(mdp.screen_mapping, return_index=True)
        self.shape = (self._screens.shape[0], *self._picture(0).shape)

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        numbers = np.arange(self.shape[0])[index]
        if numbers.ndim == 0:
            return self._picture(int(numbers))
        return np.stack([self._picture(int(number)) for number in numbers])

    def _picture(self, number: int) -> NDArray[np.uint8]:
        if self._simulator is None or self._mdp.states is None:
            return drawn(np.asarray(self._screens[number]), self._mdp.metadata)
        self._simulator.set_state(self._mdp.states[int(self._states[number])])
        return self._simulator.picture()
