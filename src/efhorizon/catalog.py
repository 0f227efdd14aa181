"""Everything that has a name: the environments of all suites, and tables.

Pure data: no simulator is imported.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from efhorizon import mdp
from efhorizon.errors import EfhorizonError
from efhorizon.io import tables
from efhorizon.mdp import TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.suite import Suite


class UnknownNameError(EfhorizonError, LookupError):
    """No entry has this name; the message is one line for the user."""

    def __init__(self, name: str) -> None:
        by_lower_case = {known.lower(): known for known in _by_name()}
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
    """The entry with this name, if there is one."""
    return _by_name().get(name)


def load(path: str | Path, *, horizon: int | None = None) -> TabularMDP:
    """Open a table: a BRIDGE `.npz` or a native store. `horizon` overrides what the file says.

    Published files do not say their horizon: it is then taken from the folder's name where that is in the catalogue, or
    from the longest episode where the table has no cycle.
    """
    return mdp.load(path, horizon=horizon, published={entry.name: entry.horizon for entry in entries()})


def load_table(given: Path, folder: Path = tables.TABLES) -> TabularMDP:
    """The table with this path, or with this name in the folder of tables, which is looked up first."""
    return load(table_path(given, folder))


def table_path(given: Path, folder: Path = tables.TABLES) -> Path:
    """Where that table is; if there is none, the error says how to get it."""
    try:
        return tables.table_path(given, folder)
    except tables.NoSuchTableError as error:
        raise tables.NoSuchTableError(f"{error}{_hint(str(given), folder)}") from None


def _hint(name: str, folder: Path) -> str:
    """What may help: names that are alike, or the command that builds the table."""
    known = _by_name()
    if name in known:
        return f"; build it first: efhorizon build {name} --out {folder}"
    built = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    close = get_close_matches(name, known.keys() | built, n=3)
    if not close:
        return ""
    listed = ", ".join(match if match in built else f"{match} (build it first)" for match in close)
    return f"; did you mean {listed}?"


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
