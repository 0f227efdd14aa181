"""Tables on disk: read and written by their path, or found by their name in the folder of tables."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from efhorizon import catalog
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io import bridge_npz, store
from efhorizon.mdp import TabularMDP

NPZ = ".npz"
_PUBLISHED = "consolidated"  # what names of published files begin with


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
    return opened_table(table_path(given, tables), horizon=horizon)


def opened_table(path: Path, *, horizon: int | None = None) -> TabularMDP:
    """A table that has a name: where the file does not say one, the file's own.

    With another horizon than its own it is another MDP, so its name ends with that horizon.
    """
    mdp = load(path, horizon=horizon)
    named = mdp.metadata.get("id")
    name = named or _file_name(path)
    if horizon is not None and _own_horizon(path) not in (None, horizon):
        known = {} if named is None or catalog.find(named) is None else {"catalogue_name": named}
        return mdp.with_metadata(**known, id=f"{name}-T{horizon}")
    return mdp if named else mdp.with_metadata(id=name)


def _file_name(path: Path) -> str:
    """A name for a table from that of its file; published files all have one name, in a folder that is theirs."""
    stem = path.name.removesuffix(NPZ)
    name = path.absolute().parent.name if stem.startswith(_PUBLISHED) else stem
    return re.sub(r"[^A-Za-z0-9_.=-]", "_", name).strip(".-") or "table"


def _own_horizon(path: Path) -> int | None:
    """The horizon that a file says; None where it says none."""
    try:
        return load(path).horizon
    except EfhorizonError:
        return None


def table_path(given: str | Path, tables: Path) -> Path:
    """Where that table is: a store, or an npz whose ending may be left out."""
    for place in _places(given, tables):
        if place.exists():
            return place
    raise StoreError(f"{given}: no such table, and none of that name in {tables}/{_hint(str(given), tables)}")


def is_there(given: str | Path, tables: Path) -> bool:
    """Whether there is something with this name or path."""
    return any(place.exists() for place in _places(given, tables))


def _places(given: str | Path, tables: Path) -> tuple[Path, ...]:
    return tables / given, tables / f"{given}{NPZ}", Path(given)


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
