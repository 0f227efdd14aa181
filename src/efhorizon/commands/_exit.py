"""How a command ends."""

from __future__ import annotations

from efhorizon.errors import EfhorizonError

DONE, ERROR, USAGE, BUDGET, INTERRUPTED = 0, 1, 2, 3, 130


class UsageError(EfhorizonError):
    """The command was typed wrongly; the message is one line for the user."""
