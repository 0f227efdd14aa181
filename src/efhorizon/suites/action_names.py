"""What the actions of a table are called, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from efhorizon.suites import registry


def action_names(metadata: Mapping[str, Any], num_actions: int) -> tuple[str, ...]:
    """Names of the actions of a table with this metadata; their numbers if they have no names.

    A table whose actions are not those of its suite says itself what they are called.
    """
    known = metadata.get("action_names") or registry.suite(metadata.get("suite")).action_names(
        str(metadata.get("game"))
    )
    return tuple(known[action] if action < len(known) else str(action) for action in range(num_actions))
