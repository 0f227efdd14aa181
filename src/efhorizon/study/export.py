"""A study as files that other programs read: mdps.parquet and runs.parquet, beside summary.csv and tables.csv.

    mdps.parquet    one row per MDP: the columns of summary.csv, and the whole analysis as JSON
    runs.parquet    one row per run; the learning curve is a list in each of the columns curve_*

The same study gives the same bytes. Each file carries a checksum of itself, and so does each page in it; files of older
versions have none. Files are read back with care: checksum, schema, number of rows and bytes are checked. What
summary.csv says about an MDP is up to the evaluation: its columns are handed in, and handed out unchanged.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.checksums import BLANK, check_sealed, read_listed, sealed
from efhorizon.io.decode import json_object, plain, record_of
from efhorizon.study.analysis_record import AnyAnalysis, decoded_analysis
from efhorizon.study.records import Row
from efhorizon.suites.simulator import MissingExtraError

MDPS, RUNS = "mdps.parquet", "runs.parquet"
MAX_FILE_BYTES = 1 << 30
MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO = 64 << 20, 100  # of any file, and for each byte of it
_ROW_BYTES, _VALUE_BYTES = 1_000, 8  # that a row and a value take at least
_MOST_ROWS = 256  # unpacked at a time, fewer if they are large
_CHECKSUM = b"efhorizon.checksum"  # in the metadata of a file
_KNOWN_METADATA = frozenset({_CHECKSUM, b"ARROW:schema", b"pandas"})
_NAME, _ANALYSIS = "mdp_name", "analysis_json"
_TEXT_COLUMNS = frozenset({_NAME, "origin", "type", "base_mdp_name", "family", "game", "effective_horizon_kind"}) | {
    *("policy_label", "policy_title", "policy_method"),
}
_COUNT_COLUMNS = frozenset({"horizon", "num_actions", "num_states_consolidated", "k_min", "epw"})
_JSON_FIELDS = ("hyperparameters", "protocol", "provenance")
_CURVE = ("curve_step", "curve_return", "curve_training_return", "curve_low", "curve_high")
_OTHER = "other"  # JSON of the fields that only some rows have
_OTHER_FIELDS = ("trained", "random_play_steps")

_Cells = dict[str, Any]  # one row of a Parquet file by column


@dataclass(frozen=True)
class ExportedMdp:
    """One row of mdps.parquet."""

    where: str  # file and row, for messages
    columns: Mapping[str, str]  # of summary.csv; an empty text where there is nothing
    analysis: AnyAnalysis | None  # None where the study was a summary.csv


def encoded_mdps(
    analyses: Mapping[str, AnyAnalysis],
    columns: Sequence[str],
    summaries: Sequence[Mapping[str, str | float | None]],
) -> bytes:
    """The content of mdps.parquet; `summaries` are the lines of summary.csv, and `columns` all of their columns."""
    rows: dict[str, _Cells] = {str(summary[_NAME]): dict(summary) for summary in summaries}
    for name, analysis in analyses.items():
        rows.setdefault(name, {_NAME: name})[_ANALYSIS] = json.dumps(plain(analysis), sort_keys=True)
    return _encoded(MDPS, [rows[name] for name in sorted(rows)], _mdp_schema(columns))


def encoded_runs(rows: Sequence[Row]) -> bytes:
    """The content of runs.parquet."""
    return _encoded(RUNS, [_run_cells(row) for row in sorted(rows, key=_run_order)], _run_schema())


def encoded_list(name: str, rows: list[_Cells], columns: Mapping[str, str]) -> bytes:
    """The content of another Parquet file; `columns` gives the type of each: string, int64, double or bool."""
    arrow = _arrow()
    return _encoded(
        name, rows, arrow.schema([(column, arrow.type_for_alias(type_)) for column, type_ in columns.items()])
    )


def column_type(name: str) -> str:
    """The type of a column of summary.csv."""
    return "string" if name in _TEXT_COLUMNS else "int64" if name in _COUNT_COLUMNS else "double"


def read_mdps(path: Path) -> list[ExportedMdp]:
    """The MDPs of an export, with the columns of summary.csv as they were written."""
    found = []
    for number, row in enumerate(_read(path, {_NAME: "string", _ANALYSIS: "string"})):
        where = f"{path}: row {number}"
        text = row.pop(_ANALYSIS)
        columns = {name: "" if value is None else str(value) for name, value in row.items()}
        found.append(ExportedMdp(where, columns, None if text is None else decoded_analysis(text, where)))
    return found


def read_runs(path: Path) -> list[Row]:
    """Run rows, as they are in a results folder; none if there is no such file."""
    if not path.exists():
        return []
    schema = _run_schema()
    expected = {name: str(schema.field(name).type) for name in schema.names}
    return [_run_of(row, f"{path}: row {number}") for number, row in enumerate(_read(path, expected))]


def _mdp_schema(columns: Sequence[str]) -> Any:
    arrow = _arrow()
    types = {name: arrow.type_for_alias(column_type(name)) for name in columns}
    return arrow.schema([*types.items(), (_ANALYSIS, arrow.string())])


def _run_schema() -> Any:
    arrow = _arrow()
    return arrow.schema(
        [
            *((name, arrow.string()) for name in ("id", "algorithm", "backend", "setting")),
            ("seed", arrow.int64()),
            ("sample_complexity", arrow.int64()),
            ("solved_by", arrow.string()),
            ("steps", arrow.int64()),
            *((name, arrow.float64()) for name in ("best_return", "final_return", "optimal_return", "wall_seconds")),
            *((name, arrow.string()) for name in _JSON_FIELDS),
            (_CURVE[0], arrow.list_(arrow.field("element", arrow.int64()))),  # as Parquet itself calls the items
            *((name, arrow.list_(arrow.field("element", arrow.float64()))) for name in _CURVE[1:]),
            (_OTHER, arrow.string()),
        ]
    )


def _run_cells(row: Row) -> _Cells:
    cells = plain(row)
    curve = cells.pop("learning_curve")
    other = {name: cells.pop(name) for name in _OTHER_FIELDS if name in cells}
    # in their own order, so that a row that is taken over from an export is the same to the byte
    cells |= {name: json.dumps(cells[name]) for name in _JSON_FIELDS} | _curve_cells(curve)
    return cells | {_OTHER: json.dumps(other)} if other else cells


def _curve_cells(curve: Sequence[Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Points of three numbers (PPO and DQN) or four (GORP), as one list per number."""
    names = _CURVE[:3] if not curve or len(curve[0]) == 3 else (*_CURVE[:2], *_CURVE[3:])
    return {name: [point[place] for point in curve] for place, name in enumerate(names)}


def _run_of(cells: _Cells, where: str) -> Row:
    lists = [values for name in _CURVE if (values := cells.pop(name)) is not None]
    if len({len(values) for values in lists}) > 1:
        raise StoreError(f"{where}: the columns {', '.join(_CURVE)} are of different lengths")
    cells["learning_curve"] = list(zip(*lists, strict=True))
    for name in _JSON_FIELDS:
        cells[name] = json_object(cells[name] or "", f"{where}: {name}", "an object")
    other = cells.pop(_OTHER)
    if other is not None:
        cells |= json_object(other, f"{where}: {_OTHER}", "an object")
    return record_of(cells, Row, where)


def _run_order(row: Row) -> tuple[str | int, ...]:
    return (row.id, row.algorithm, row.backend, row.setting, row.seed, json.dumps(plain(row), sort_keys=True))


def _encoded(name: str, rows: list[_Cells], schema: Any) -> bytes:
    arrow = _arrow()
    try:
        table = arrow.Table.from_pylist(rows, schema=schema)
    except MemoryError:  # pyarrow's own is an ArrowException too
        raise
    except (arrow.ArrowException, OverflowError) as error:
        raise StoreError(f"{name}: cannot be written: {error}") from None
    content = io.BytesIO()
    with _parquet().ParquetWriter(content, schema, compression="zstd", write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_CHECKSUM: BLANK})
    return sealed(content.getvalue())


def _read(path: Path, expected: Mapping[str, str]) -> Iterator[_Cells]:
    """The rows of a file whose columns include the expected ones, in the expected types."""
    arrow = _arrow()
    content = read_listed(path, "a Parquet file", MAX_FILE_BYTES)
    try:
        with _parquet().ParquetFile(arrow.BufferReader(content), page_checksum_verification=True) as file:
            _check_file(file.metadata.metadata or {}, content, path)
            _check_types({field.name: str(field.type) for field in file.schema_arrow}, expected, path)
            allowed = MAX_UNPACKED_BYTES + MAX_UNPACKED_RATIO * len(content)
            largest, num_bytes = _unpacked(file.metadata)
            if num_bytes > allowed:
                raise StoreError(f"{path}: more than {allowed:,} bytes unpacked")
            num_bytes = 0
            for batch in file.iter_batches(batch_size=max(1, min(_MOST_ROWS, allowed // max(1, largest)))):
                num_bytes += batch.nbytes
                if num_bytes > allowed:
                    raise StoreError(f"{path}: more than {allowed:,} bytes unpacked")
                yield from batch.to_pylist()
    except MemoryError:  # pyarrow's own is an ArrowException too, and the file may be in order
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoreError(f"{path}: not a Parquet file that can be read: {reason}") from None


def _check_file(metadata: Mapping[bytes, bytes], content: bytes, path: Path) -> None:
    """Compare the checksum. A file that only looks as if it had none is not one of an older version."""
    if _CHECKSUM in metadata:
        check_sealed(content, metadata[_CHECKSUM].decode(errors="replace"), str(path))
    elif _CHECKSUM in content or not metadata.keys() <= _KNOWN_METADATA:
        raise StoreError(f"{path}: damaged, or metadata that this version of efhorizon does not know")


def _check_types(types: Mapping[str, str], expected: Mapping[str, str], path: Path) -> None:
    for name, type_ in expected.items():
        if types.get(name) != type_:
            raise StoreError(f"{path}: column {name} must be {type_}, not {types.get(name, 'missing')}")


def _unpacked(metadata: Any) -> tuple[int, int]:
    """How many bytes the largest column takes at least, and all of them; by what the file says itself."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    sizes = [max(chunk.total_uncompressed_size, _VALUE_BYTES * chunk.num_values) for chunk in chunks]
    return max(sizes, default=0), sum(sizes) + _ROW_BYTES * metadata.num_rows


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise MissingExtraError("report", "pyarrow") from None
    except ImportError as error:  # it is there, and does not go with what else is installed
        hint = "install it with: pip install 'efhorizon[report]'"
        raise EfhorizonError(f"Parquet files need pyarrow ({error}); {hint}") from None
    return pyarrow


def _parquet() -> Any:
    _arrow()
    import pyarrow.parquet

    return pyarrow.parquet
