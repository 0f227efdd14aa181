"""How a table is found: by its path, or by its name in the folder of tables."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from efhorizon import catalog
from efhorizon.errors import StoreError
from efhorizon.mdp import TabularMDP, load

NPZ = ".npz"


def load_table(given: str | Path, tables: Path, *, horizon: int | None = None) -> TabularMDP:
    """The table with this name in the folder of tables, or else with this path; `horizon` overrides the file's."""
    return load(table_path(given, tables), horizon=horizon)


def table_path(given: str | Path, tables: Path) -> Path:
    """Where that table is: a store or an npz, which a name may leave unsaid."""
    for place in (tables / given, tables / f"{given}{NPZ}", Path(given)):
        if place.exists():
            return place
    raise StoreError(f"{given}: no such table, and none of that name in {tables}/{_hint(str(given), tables)}")


def table_names(tables: Path) -> list[str]:
    """The tables in a folder, by name."""
    if not tables.is_dir():
        return []
    return sorted(path.name.removesuffix(NPZ) for path in tables.iterdir() if _is_table(path))


def _is_table(path: Path) -> bool:
    return path.suffix == NPZ or (path / "zarr.json").exists()


def _hint(name: str, tables: Path) -> str:
    """What to do about it: names that are alike, or the command that builds the table."""
    known = {entry.name for entry in catalog.entries()}
    if name in known:
        return f"; build it first: efhorizon build {name} --out {tables}"
    built = set(table_names(tables))
    close = get_close_matches(name, known | built, n=3)
    if not close:
        return ""
    listed = ", ".join(match if match in built else f"{match} (build it first)" for match in close)
    return f"; did you mean {listed}?"
