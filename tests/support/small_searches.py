"""Small searches in one process, without workers, and stopping them at any system call."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from toy_mdps import WalkSimulator

from efhorizon.build.expand import Expander
from efhorizon.build.explore import opened_search
from efhorizon.build.table import table

_CALLS = (
    *((os, name) for name in ("mkdir", "open", "stat", "fstat", "listdir", "unlink", "rename", "fsync", "ftruncate")),
    *((os, name) for name in ("pread", "preadv", "pwrite")),
    (fcntl, "flock"),
)


class LargeWalk(WalkSimulator):
    """States and screens that are large enough to be compressed."""

    def get_state(self) -> bytes:
        return super().get_state() + bytes(range(256)) * 3

    def set_state(self, state: bytes) -> None:
        super().set_state(state[:8])

    def screen(self) -> Any:
        return np.repeat(super().screen(), 40, axis=0)


def worked(folder: Path, horizon: int = 6, simulator: type[WalkSimulator] = LargeWalk) -> dict[str, bytes]:
    """Search in this process up to a horizon, from whatever is there; every array of the table."""
    search = opened_search(folder, simulator(7), {"suite": "walk"})
    try:
        expander = Expander(simulator(7), search.state_codec, search.screen_codec)
        while not search.is_closed and search.complete_horizon < horizon:
            stop = search.batch_stop(search.num_expanded, 3, horizon)
            search.add(expander.expand(search.packed_states(search.num_expanded, stop)))
            search.close_layer()
            search.commit()
        mdp = table(search, horizon, rule="none")
        return {
            "transitions": mdp.transitions.tobytes(),
            "rewards": mdp.rewards.tobytes(),
            "screens": np.stack([mdp.screen(state) for state in range(mdp.num_states)]).tobytes(),
            "states": b"".join(mdp.states[state] for state in range(mdp.num_states)) if mdp.states is not None else b"",
        }
    finally:
        search.close()


@contextmanager
def stepping(before: Callable[[int], None]) -> Iterator[None]:
    """Call `before` with 1, 2, 3 and so on before each call of the system."""
    number, is_inside = 0, False
    originals = [(module, name, getattr(module, name)) for module, name in _CALLS]

    def stepped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal number, is_inside
            if not is_inside:
                is_inside = True
                try:
                    number += 1
                    before(number)
                finally:
                    is_inside = False
            return original(*arguments, **options)

        return call

    for module, name, original in originals:
        setattr(module, name, stepped(original))
    try:
        yield
    finally:
        for module, name, original in originals:
            setattr(module, name, original)
