"""Every environment by its published name: the entries of all suites, in one list. No simulator is imported."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

from efhorizon.errors import EfhorizonError
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.suite import Suite


class UnknownNameError(EfhorizonError, LookupError):
    """No entry has this name, nor does Gymnasium know it; the message is one line for the user."""

    def __init__(self, name: str) -> None:
        registered = getattr(sys.modules.get("gymnasium"), "registry", {})  # where names can also be ids
        by_lower_case = {known.lower(): known for known in (*_by_name(), *registered)}
        closest = [by_lower_case[match] for match in get_close_matches(name.lower(), by_lower_case, n=5, cutoff=0.0)]
        super().__init__(f"no environment is called {name!r}; closest: {', '.join(closest)}")


def suite_names() -> tuple[str, ...]:
    """The suites that have entries."""
    return tuple(dict.fromkeys(entry.suite for entry in _by_name().values()))


def entries(suite: str | None = None) -> tuple[Entry, ...]:
    """All entries, or those of one suite, in the order of the catalogue."""
    return tuple(entry for entry in _by_name().values() if suite in (None, entry.suite))


def entry(name: str) -> Entry:
    """The entry with this name."""
    found = find(name)
    if found is None:
        raise UnknownNameError(name)
    return found


def find(name: str) -> Entry | None:
    """The entry with this name, if there is one; some suites know names that they do not list."""
    listed = _by_name().get(name)
    if listed is not None:
        return listed
    unlisted = (suite.unlisted_entry(name) for suite in registry.suites() if suite.builds_unlisted)
    return next((entry for entry in unlisted if entry is not None), None)


def _by_name() -> Mapping[str, Entry]:
    return _entries_of(registry.suites())


@cache
def _entries_of(suites: tuple[Suite, ...]) -> Mapping[str, Entry]:
    found: dict[str, Entry] = {}
    for suite in suites:
        for entry in suite.entries():
            other = found.setdefault(entry.name, entry)
            if other is not entry:
                text = f"{entry.name!r} of the suite {suite.name!r} is left out: {other.suite!r} has that name too"
                warnings.warn(text, registry.SuiteWarning, stacklevel=2)
    return found
