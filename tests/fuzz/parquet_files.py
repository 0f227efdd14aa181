"""Mutations of Parquet: columns, types and values through pyarrow; the footer; the bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .json_files import HOSTILE_TEXTS, changed_text
from .mutations import ANY_FILE, SPECIAL_FILES, Mutations, NotApplicableError, Target, copy_of_another

REWRITTEN = "written by another program, with checksums of its own: another export, not a damaged one"
_TABLES = Mutations()


def _table_change(change: Callable[[Any, Random], tuple[Any, str]]) -> None:
    """A mutation from a table to another one, which is then written as any program would."""

    def apply(target: Target, rng: Random) -> str:
        table = pq.read_table(target.file, use_threads=False)
        table, what = change(table, rng)
        compression = rng.choice(["zstd", "snappy", "none", "gzip"])
        pq.write_table(table, target.file, compression=compression)
        return what

    apply.__name__ = change.__name__.strip("_")
    _TABLES.add(may_differ=REWRITTEN)(apply)


def _column(table: Any, rng: Random) -> int:
    return rng.randrange(table.num_columns)


@_table_change
def _column_missing(table: Any, rng: Random) -> tuple[Any, str]:
    place = _column(table, rng)
    return table.remove_column(place), f"no column {table.column_names[place]}"


@_table_change
def _column_of_another_type(table: Any, rng: Random) -> tuple[Any, str]:
    place = _column(table, rng)
    name, rows = table.column_names[place], table.num_rows
    column = rng.choice(
        [
            pa.array([None] * rows, pa.null()),
            pa.array([True] * rows),
            pa.array([1.5] * rows),
            pa.array([7] * rows),
            pa.array(["x"] * rows),
            pa.array([b"\xff"] * rows),
            pa.array([[1, 2]] * rows),
            pa.array([{"a": 1}] * rows),
            pa.array(["x"] * rows).dictionary_encode(),
            pa.array([1] * rows, pa.timestamp("s")),
            pa.array([["x"]] * rows),
        ]
    )
    return table.set_column(place, name, column), f"column {name} is {column.type}"


@_table_change
def _column_renamed(table: Any, rng: Random) -> tuple[Any, str]:
    names = list(table.column_names)
    place = _column(table, rng)
    old, names[place] = names[place], rng.choice(["", "x", names[0], "bound_\x1b_log10", "=1+1", "mdp_name"])
    return table.rename_columns(names), f"column {old} is called {names[place]!r}"


@_table_change
def _more_columns(table: Any, rng: Random) -> tuple[Any, str]:
    names = rng.choice([["more"], [f"bound_{number}_log10" for number in range(500)], [table.column_names[0]]])
    for name in names:
        table = table.append_column(name, pa.array([1.0] * table.num_rows))
    return table, f"{len(names)} more columns"


@_table_change
def _value(table: Any, rng: Random) -> tuple[Any, str]:
    place, row = _column(table, rng), rng.randrange(table.num_rows)
    field = table.schema.field(place)
    values = table.column(place).to_pylist()
    values[row] = _other_value(values[row], field.type, rng)
    column = pa.array(values, field.type)
    return table.set_column(place, field, column), f"{field.name} is {str(values[row])[:60]!r}"


def _other_value(value: Any, type_: Any, rng: Random) -> Any:
    if rng.random() < 0.2:
        return None
    if pa.types.is_integer(type_):
        return rng.choice([0, 1, -1, 2**31, 2**62, -(2**63), (value or 0) + 1])
    if pa.types.is_floating(type_):
        return rng.choice([0.0, -1.0, 1e39, 1e308, float("inf"), float("-inf"), float("nan"), (value or 0.0) + 1])
    if pa.types.is_string(type_):
        if value is not None and value.startswith("{") and rng.random() < 0.7:
            return changed_text(value, rng)[0]
        return rng.choice(HOSTILE_TEXTS).encode("utf-8", "replace").decode()
    if pa.types.is_list(type_):
        items = value or []
        more = [2**40, None, 0] if pa.types.is_integer(type_.value_type) else [float("nan"), None, 1e300]
        return rng.choice([[], items[:-1], items + items, more, items[::-1]])
    raise NotApplicableError


@_table_change
def _column_of_nothing(table: Any, rng: Random) -> tuple[Any, str]:
    place = _column(table, rng)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array([None] * table.num_rows, field.type)), f"{field.name} is empty"


@_table_change
def _rows(table: Any, rng: Random) -> tuple[Any, str]:
    kind = rng.choice(["none", "one less", "twice", "200"])
    tables = {"none": [table[:0]], "one less": [table[:-1]], "twice": [table, table]}
    few = [table[:1]] * 200
    return pa.concat_tables(tables.get(kind, few)).combine_chunks(), f"rows: {kind}"


@_table_change
def _metadata_gone(table: Any, rng: Random) -> tuple[Any, str]:
    other = rng.choice([None, {b"x": b"y"}, {b"\xff": b"\xff"}, {b"ARROW:schema": b"nonsense"}])
    return table.replace_schema_metadata(other), f"metadata {other}"


@_table_change
def _metadata_kept(table: Any, rng: Random) -> tuple[Any, str]:
    """The text of metadata belongs to other rows."""
    metadata = table.schema.metadata or {}
    return pa.concat_tables([table, table[:1]]).replace_schema_metadata(metadata), "one row twice, metadata as before"


def _footer(content: bytes) -> tuple[int, int]:
    length = struct.unpack_from("<I", content, len(content) - 8)[0]
    return len(content) - 8 - length, length


_FOOTER = Mutations()


@_FOOTER.add()
def footer_length(target: Target, rng: Random) -> str:
    content = bytearray(target.file.read_bytes())
    length = rng.choice([0, 1, _footer(content)[1] - 1, _footer(content)[1] + 1, 2**31 - 1, 2**32 - 1])
    struct.pack_into("<I", content, len(content) - 8, length)
    target.file.write_bytes(content)
    return f"a footer of {length} bytes, it says"


@_FOOTER.add()
def footer_byte(target: Target, rng: Random) -> str:
    content = bytearray(target.file.read_bytes())
    start, length = _footer(content)
    place = start + rng.randrange(length)
    content[place] = rng.randrange(256)
    target.file.write_bytes(content)
    return f"byte {place - start} of {length} of the footer"


@_FOOTER.add()
def footer_of_another(target: Target, rng: Random) -> str:
    content, other = target.file.read_bytes(), rng.choice([target.file, *target.likewise]).read_bytes()
    target.file.write_bytes(content[: _footer(content)[0]] + other[_footer(other)[0] :])
    return "the footer of another file"


@_FOOTER.add()
def magic(target: Target, rng: Random) -> str:
    content = target.file.read_bytes()
    target.file.write_bytes(rng.choice([content[:-4] + b"PARE", b"PAR2" + content[4:], content[:-4], b"PAR1" * 2]))
    return "another beginning or end"


@_FOOTER.add()
def json_instead(target: Target, rng: Random) -> str:
    target.file.write_text(json.dumps(pq.read_table(target.file, use_threads=False).to_pylist(), default=str))
    return "the rows as JSON"


_FOOTER.add()(copy_of_another)

PARQUET = Mutations(_TABLES, _TABLES, _FOOTER, _FOOTER, ANY_FILE, SPECIAL_FILES)
