"""Tables on disk: read and written by their path, or found by their name in the folder of tables."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from efhorizon import catalog
from efhorizon.errors import StoreError
from efhorizon.io import bridge_npz, store
from efhorizon.mdp import TabularMDP

NPZ = ".npz"


def load(path: str | Path, *, horizon: int | None = None) -> TabularMDP:
    """Open a table: a BRIDGE `.npz` or a native store. `horizon` overrides what the file says.

    Published files do not say their horizon: it is then taken from the folder's name where that is in the catalogue, or
    from the longest episode where the table has no cycle.
    """
    path = Path(path)
    if path.suffix == ".npz" or path.is_file():
        return bridge_npz.read(
            path, horizon=horizon, published={entry.name: entry.horizon for entry in catalog.entries()}
        )
    return store.read(path, horizon=horizon)


def save(mdp: TabularMDP, path: str | Path) -> Path:
    """Write a table: `.npz` in the published BRIDGE layout, anything else as a native store."""
    path = Path(path)
    return bridge_npz.write(mdp, path) if path.suffix == ".npz" else store.write(mdp, path)


def load_table(given: str | Path, tables: Path, *, horizon: int | None = None) -> TabularMDP:
    """The table with this name in the folder of tables, or else with this path; `horizon` overrides the file's."""
    return load(table_path(given, tables), horizon=horizon)


def table_path(given: str | Path, tables: Path) -> Path:
    """Where that table is: a store, or an npz whose ending may be left out."""
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
    return not path.name.startswith(".") and (path.suffix == NPZ or (path / "zarr.json").exists())


def _hint(name: str, tables: Path) -> str:
    """What to do about it: similar names, or the command that builds the table."""
    known = {entry.name for entry in catalog.entries()}
    if name in known:
        return f"; build it first: efhorizon build {name} --out {tables}"
    built = set(table_names(tables))
    close = get_close_matches(name, known | built, n=3)
    if not close:
        return ""
    listed = ", ".join(match if match in built else f"{match} (build it first)" for match in close)
    return f"; did you mean {listed}?"
