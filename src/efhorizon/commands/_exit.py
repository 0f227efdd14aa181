"""How a command ends."""

from __future__ import annotations

from pathlib import Path

from efhorizon.errors import EfhorizonError

DONE, ERROR, USAGE, BUDGET, INTERRUPTED = 0, 1, 2, 3, 130
NOTHING_KEPT = "nothing is kept"  # of a command that was interrupted, unless it says otherwise


def kept_in(place: Path, what: str) -> str:
    """What an interrupted command has kept in a folder or file: nothing, as long as that is not there or is empty."""
    is_there = any(place.iterdir()) if place.is_dir() else place.exists()
    return f"{what}; run the same command to continue" if is_there else NOTHING_KEPT


class UsageError(EfhorizonError):
    """The command was typed wrongly; the message is one line for the user."""
