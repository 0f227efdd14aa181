"""How a table is found: by its path, or by its name in the folder of tables."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from efhorizon import catalog
from efhorizon.errors import StoreError
from efhorizon.mdp import TabularMDP, load

TABLES = Path("tables")  # where `build` puts them, unless it is told otherwise


def load_table(given: Path, tables: Path = TABLES) -> TabularMDP:
    """The table with this path, or with this name in the folder of tables, which is looked up first."""
    return load(table_path(given, tables))


def table_path(given: Path, tables: Path = TABLES) -> Path:
    """Where that table is."""
    named = tables / given
    if not given.is_absolute() and named.exists():
        return named
    if not given.exists():
        raise StoreError(f"{given}: no such table, and none of that name in {tables}/{_hint(str(given), tables)}")
    return given


def _hint(name: str, tables: Path) -> str:
    """What may mend it: names that are alike, or the command that builds the table."""
    known = {entry.name for entry in catalog.entries()}
    if name in known:
        return f"; build it first: efhorizon build {name} --out {tables}"
    built = {path.name for path in tables.iterdir()} if tables.is_dir() else set()
    close = get_close_matches(name, known | built, n=3)
    if not close:
        return ""
    listed = ", ".join(match if match in built else f"{match} (build it first)" for match in close)
    return f"; did you mean {listed}?"
