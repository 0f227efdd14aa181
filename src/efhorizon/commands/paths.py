"""How commands find a table."""

from __future__ import annotations

from pathlib import Path

from efhorizon.errors import StoreError

TABLES = Path("tables")  # where `build` puts them, unless it is told otherwise


def table_path(given: Path) -> Path:
    """A path, or the name of a table in ./tables, which is looked up first."""
    named = TABLES / given
    if not given.is_absolute() and named.exists():
        return named
    if not given.exists():
        raise StoreError(f"{given}: no such table, and none of that name in {TABLES}/")
    return given
