"""How a table is found: by its path, or by its name in the folder of tables."""

from __future__ import annotations

from pathlib import Path

from efhorizon.errors import StoreError

TABLES = Path("tables")  # where `build` puts them, unless it is told otherwise


class NoSuchTableError(StoreError):
    """There is no table with this path or name."""


def table_path(given: Path, tables: Path = TABLES) -> Path:
    """The table with this path, or with this name in the folder of tables, which is looked up first."""
    named = tables / given
    if not given.is_absolute() and named.exists():
        return named
    if not given.exists():
        raise NoSuchTableError(f"{given}: no such table, and none of that name in {tables}/")
    return given
