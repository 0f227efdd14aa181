"""What the actions of a table are called, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from efhorizon.suites import registry
from efhorizon.suites.suite import ACTION_NAMES


def action_names(metadata: Mapping[str, Any], num_actions: int) -> tuple[str, ...]:
    """Names of the actions of a table with this metadata; their numbers if they have no names.

    The names that the environment told when the table was built come first, then those that its suite knows.
    """
    told: Sequence[str] | None = metadata.get(ACTION_NAMES)
    known = told or registry.suite(metadata.get("suite")).action_names(str(metadata.get("game")))
    return tuple(known[action] if action < len(known) else str(action) for action in range(num_actions))
