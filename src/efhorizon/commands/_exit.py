"""How a command ends."""

from __future__ import annotations

from efhorizon.errors import EfhorizonError

DONE, ERROR, USAGE, BUDGET, INTERRUPTED = 0, 1, 2, 3, 130
NOTHING_KEPT = "nothing is kept"  # of a command that was interrupted, unless it says otherwise


class UsageError(EfhorizonError):
    """The command was typed wrongly; the message is one line for the user."""
