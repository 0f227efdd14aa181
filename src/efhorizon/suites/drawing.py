"""Pictures for people, from the compact screens that tables hold.

A table of ours says in its metadata how its screens are stored ("screen_format"); a published file holds pictures
already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.simulator import Screen
from efhorizon.suites.suite import PLAIN_FORMATS, Suite


def picture(mdp: TabularMDP, state: int) -> Screen:
    """The screen of one state as an RGB (or grey) image [H, W, 3 or 1]."""
    return drawn(mdp.screen(state), mdp.metadata)


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
