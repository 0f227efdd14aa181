"""Tables for people: pictures of their states, and observations that can be read.

A table of ours says in its metadata how its screens are stored ("screen_format"); a published file holds pictures
already. A table of any Gymnasium environment holds observations, and beside them what the environment drew when the
table was built: pictures, or text. Where it holds none, states are drawn on demand, if the environment is registered
or the user names it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.observation_layout import Layout, picture_of, readable, stored_layout, value_of
from efhorizon.suites.rendering import Drawing
from efhorizon.suites.simulator import Screen
from efhorizon.suites.suite import PLAIN_FORMATS, Suite

PICTURE_FORMAT, RGB, TEXT = "picture_format", "rgb", "text"  # how the pictures beside the screens are stored
PICTURE_NOTE = "picture_note"  # why there are none
_MOST_VALUE_BYTES = 4_096  # of an observation that is given number by number


def picture(mdp: TabularMDP, state: int, make_simulator: Callable[[], Any] | None = None) -> Screen:
    """One state as an RGB (or grey) image [H, W, 3 or 1]; the error says why there is none.

    `make_simulator` makes the table's environment, as the user named it, to draw what the table does not hold.
    """
    stored = _stored_drawing(mdp, state)
    if isinstance(stored, str):
        raise InvalidTableError("the environment draws text, not pictures")
    if stored is not None:
        return stored
    layout = stored_layout(mdp.metadata)
    if layout is None:
        return drawn(mdp.screen(state), mdp.metadata)
    seen = None if mdp.screens is None else picture_of(layout, mdp.screen(state))
    if seen is not None:
        return seen
    live = _live_drawing(mdp, state, make_simulator)
    if isinstance(live, str):
        raise InvalidTableError("the environment draws text, not pictures")
    return live


def text_drawing(mdp: TabularMDP, state: int) -> str | None:
    """One state as the text that its environment drew, if it draws text."""
    stored = _stored_drawing(mdp, state)
    return stored if isinstance(stored, str) else None


def observation_value(mdp: TabularMDP, state: int) -> Any:
    """What is observed in one state, in plain types; None where the table does not say what its screens mean.

    Of a large array, such as an image, only what `observation_text` says of it.
    """
    layout = _layout(mdp)
    if layout is None:
        return None
    screen = mdp.screen(state)
    return value_of(layout, screen) if screen.size <= _MOST_VALUE_BYTES else readable(layout, screen)


def observation_text(mdp: TabularMDP, state: int) -> str | None:
    """What is observed in one state, in one line."""
    layout = _layout(mdp)
    return None if layout is None else readable(layout, mdp.screen(state))


def drawn(screen: Screen, metadata: Mapping[str, Any]) -> Screen:
    """A stored screen of a table with this metadata as an image."""
    stored_as, suite = _format(metadata), registry.suite(metadata.get("suite"))
    if stored_as in PLAIN_FORMATS:
        return Suite.drawn(suite, screen)
    if stored_as != suite.screen_format:
        raise InvalidTableError(
            f"screens stored as {stored_as!r} cannot be drawn: is the package that adds {suite.title} installed?"
        )
    return suite.drawn(screen)


def is_compact(metadata: Mapping[str, Any]) -> bool:
    """Whether screens have to be drawn to be pictures."""
    return _format(metadata) not in PLAIN_FORMATS


def _format(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("screen_format", "rgb"))


def _layout(mdp: TabularMDP) -> Layout | None:
    return None if mdp.screens is None else stored_layout(mdp.metadata)


def _stored_drawing(mdp: TabularMDP, state: int) -> Drawing | None:
    """What the environment drew of a state when the table was built."""
    if mdp.pictures is None or mdp.picture_mapping is None:
        return None
    stored = np.asarray(mdp.pictures[int(mdp.picture_mapping[state])], np.uint8)
    if mdp.metadata.get(PICTURE_FORMAT) == TEXT:
        return stored.tobytes().rstrip(b"\0").decode(errors="replace")
    return Suite.drawn(Suite(), stored)


_live: dict[int, tuple[TabularMDP, Any]] = {}  # the environment of one table at a time


def _live_drawing(mdp: TabularMDP, state: int, make_simulator: Callable[[], Any] | None) -> Drawing:
    """What the environment draws of a state now: the one that the user named, or the file's, if a file may name it."""
    suite, why = registry.suite(mdp.metadata.get("suite")), mdp.metadata.get(PICTURE_NOTE)
    if not suite.draws_when_built or mdp.states is None:
        raise InvalidTableError(f"the table has no pictures{f': {why}' if why else ''}")
    try:
        if make_simulator is not None:
            with contextlib.closing(make_simulator()) as simulator:
                return _drawing_of(simulator, mdp.states[state])
        return _drawing_of(_stored_environment(mdp, suite), mdp.states[state])
    except EfhorizonError as error:
        reasons = dict.fromkeys(str(reason) for reason in (why, error) if reason)
        raise InvalidTableError(f"the table has no pictures: {'; '.join(reasons)}") from None


def _stored_environment(mdp: TabularMDP, suite: Suite) -> Any:
    """The environment that the file names, made once for many pictures."""
    if id(mdp) not in _live:
        trusted = suite.trusted_arguments((mdp.metadata.get("provenance") or {}).get("arguments") or {})
        for _, simulator in _live.values():
            simulator.close()
        _live.clear()
        _live[id(mdp)] = mdp, suite.simulator(**trusted)
    return _live[id(mdp)][1]


def _drawing_of(simulator: Any, state: bytes) -> Drawing:
    simulator.set_state(state)
    if simulator.identity(simulator.get_state()) != simulator.identity(state):
        raise InvalidTableError("the environment has changed since the table was built; build it again")
    drawing: Drawing = simulator.drawing()
    return drawing
