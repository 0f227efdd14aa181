"""The tables that a study has built, analyzed or not, and how each was verified: tables.csv, one line per table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from efhorizon.errors import StoreError
from efhorizon.io.checksums import read_listed
from efhorizon.io.decode import MAX_TEXT, Count, Text, record_of, text_of
from efhorizon.io.names import is_safe_name
from efhorizon.study.csv_text import encoded_csv, text_of_cell

FILE = "tables.csv"
_STORE_FILE = "zarr.json"  # in the folder of a table
_YES, _NO = "yes", "no"
_ADDED = ("pairs", "pairs_replayed")  # columns that files of older versions lack


@dataclass(frozen=True)
class BuiltTable:
    """What is known of a table without opening it."""

    name: str
    horizon: int
    num_states: int
    num_raw_states: int | None
    is_degenerate: bool  # every action sequence earns the same
    is_verified: bool  # replayed in a fresh environment, and nothing differed
    episodes: int | None  # that were replayed
    steps: int | None
    pairs: int | None = None  # of a state and an action; None: verified by an older version, which did not count them
    pairs_replayed: int | None = None

    @property
    def coverage(self) -> float | None:
        """The share of its pairs that were replayed."""
        return self.pairs_replayed / self.pairs if self.pairs and self.pairs_replayed is not None else None


def tables_in(folder: Path) -> tuple[BuiltTable, ...]:
    """The tables in the native store's folder, by name; none if there is no such folder."""
    paths = sorted(file.parent for file in folder.glob(f"[!.]*/{_STORE_FILE}"))
    return tuple(map(_described, paths))


def read_tables(path: Path) -> tuple[BuiltTable, ...]:
    """The lines of a tables.csv; none if there is no such file."""
    if not path.exists():
        return ()
    what = "a tables.csv"
    text = text_of(read_listed(path, what, MAX_TEXT), path, what)
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = [field.name for field in fields(BuiltTable)]
    try:
        if list(reader.fieldnames or ()) not in (names, names[: -len(_ADDED)]):
            raise StoreError(f"{path}: not a tables.csv: the columns must be {', '.join(names)}")
        return tuple(_read(line, f"{path}: line {number}") for number, line in enumerate(reader, 2))
    except csv.Error as error:
        raise StoreError(f"{path}: not a tables.csv: {error}") from None


def encoded_tables(tables: Iterable[BuiltTable]) -> bytes:
    """The content of a tables.csv."""
    lines = ({name: _written(value) for name, value in asdict(table).items()} for table in tables)
    return encoded_csv([field.name for field in fields(BuiltTable)], lines)


class _TableVerification(Struct, frozen=True):
    verified: bool = False
    episodes: Count | None = None
    steps: Count | None = None
    pairs: Count | None = None
    pairs_replayed: Count | None = None


class _TableMetadata(Struct, frozen=True):
    id: Text
    num_states_raw: Count | None = None
    degenerate: bool = False
    verification: _TableVerification | None = None


class _Array(Struct, frozen=True):
    shape: Annotated[list[Count], Meta(min_length=1)]


class _Digests(Struct, frozen=True):
    transitions: _Array


class _TableHeader(Struct, frozen=True):
    """What a table's file says about it, as far as it is needed here."""

    horizon: Count
    metadata: _TableMetadata
    digests: _Digests


def _described(path: Path) -> BuiltTable:
    from efhorizon.io import store  # it needs numba; reading a study does not

    header = record_of(store.header(path), _TableHeader, str(path))
    if not is_safe_name(header.metadata.id):
        raise StoreError(f"{path}: its name {header.metadata.id[:80]!r} cannot be the name of a table here")
    verification = header.metadata.verification or _TableVerification()
    return BuiltTable(
        name=header.metadata.id,
        horizon=header.horizon,
        num_states=header.digests.transitions.shape[0],
        num_raw_states=header.metadata.num_states_raw,
        is_degenerate=header.metadata.degenerate,
        is_verified=verification.verified,
        episodes=verification.episodes,
        steps=verification.steps,
        pairs=verification.pairs,
        pairs_replayed=verification.pairs_replayed if verification.pairs else None,
    )


def _read(line: Mapping[str, str | None], where: str) -> BuiltTable:
    def flag(name: str) -> bool:
        if line[name] not in (_YES, _NO):
            raise StoreError(f"{where}: {name} must be {_YES} or {_NO}, got {line[name]!r}")
        return line[name] == _YES

    def count(name: str) -> int | None:
        text = line.get(name) or ""
        if text and not (text.isascii() and text.isdigit() and len(text) < 19):
            raise StoreError(f"{where}: {name} must be a whole number, got {text!r}")
        return int(text) if text else None

    if None in line:  # DictReader puts what is left over there
        raise StoreError(f"{where}: more fields than the header has")
    name, horizon, num_states = text_of_cell(line["name"] or ""), count("horizon"), count("num_states")
    if not name or horizon is None or num_states is None:
        raise StoreError(f"{where}: name, horizon and num_states must not be empty")
    return BuiltTable(
        name=name,
        horizon=horizon,
        num_states=num_states,
        num_raw_states=count("num_raw_states"),
        is_degenerate=flag("is_degenerate"),
        is_verified=flag("is_verified"),
        episodes=count("episodes"),
        steps=count("steps"),
        pairs=count("pairs"),
        pairs_replayed=count("pairs_replayed"),
    )


def _written(value: str | int | None) -> str | int | None:
    return (_YES if value else _NO) if isinstance(value, bool) else value
