"""A study as files that other programs read: mdps.parquet, runs.parquet, summary.csv and tables.csv.

    mdps.parquet    one row an MDP: the columns of summary.csv, and the whole analysis as a JSON text
    runs.parquet    one row a run; the learning curve is a list in each of the columns curve_*
    tables.csv      one line a table that was built, where that is known

The same study gives the same bytes. Files are read back with care: schema, number of rows and bytes are checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.evaluation import runs, summary_csv, theory
from efhorizon.evaluation._fields import parsed_object
from efhorizon.evaluation.records import MdpSummary
from efhorizon.io.files import written_aside
from efhorizon.study import built_tables
from efhorizon.suites.simulator import MissingExtraError

if TYPE_CHECKING:
    from efhorizon.evaluation.source import StudyData

MDPS, RUNS = "mdps.parquet", "runs.parquet"
MAX_ROWS, MAX_BYTES = 1_000_000, 1 << 31
_BATCH_ROWS = 16  # looked at one after the other, so that a small file cannot fill the memory
_ANALYSIS = "analysis_json"
_TEXT_COLUMNS = frozenset({"mdp_name", "origin", "type", "base_mdp_name", "game", "effective_horizon_kind"})
_COUNT_COLUMNS = frozenset({"horizon", "num_actions", "num_states_consolidated", "k_min", "epw"})
_JSON_FIELDS = ("hyperparameters", "protocol", "provenance")
_CURVE = ("curve_step", "curve_return", "curve_training_return", "curve_low", "curve_high")


def write_export(folder: Path, data: StudyData) -> list[Path]:
    """Write the files; returns their paths."""
    mdps, run_table, csv_file = folder / MDPS, folder / RUNS, folder / summary_csv.FILE
    _write(mdps, _mdp_rows(data), _mdp_schema(data.summaries))
    _write(run_table, [_run_row(row) for row in sorted(data.runs, key=_run_order)], _run_schema())
    summary_csv.write_summaries(csv_file, data.summaries)
    if not data.tables:
        return [mdps, run_table, csv_file]
    tables = folder / built_tables.FILE
    built_tables.write_tables(tables, data.tables)
    return [mdps, run_table, csv_file, tables]


def read_mdps(path: Path) -> tuple[dict[str, dict[str, Any]], list[MdpSummary]]:
    """Analyses by name, and the summaries as they were written."""
    analyses: dict[str, dict[str, Any]] = {}
    summaries = []
    for number, row in enumerate(_read(path, {"mdp_name": "string", _ANALYSIS: "string"})):
        where = f"{path}: row {number}"
        text = row.pop(_ANALYSIS)
        if text is not None:
            content = parsed_object(text, where, "an analysis")
            analyses[theory.checked_name(content, where)] = content
        if row.get("horizon") is not None:  # an unfinished analysis has no figures
            line = {name: "" if value is None else str(value) for name, value in row.items()}
            summaries.append(summary_csv.summary_of(line, where))
    return analyses, summary_csv.checked_summaries(summaries, str(path))


def read_runs(path: Path) -> list[dict[str, Any]]:
    """Run rows, as they are in a results directory; none where there is no such file."""
    if not path.exists():
        return []
    schema = _run_schema()
    expected = {name: str(schema.field(name).type) for name in schema.names}
    return [_run_of(row, f"{path}: row {number}") for number, row in enumerate(_read(path, expected))]


def _mdp_rows(data: StudyData) -> list[dict[str, Any]]:
    rows = {summary.name: dict(summary_csv.fields_of(summary)) for summary in data.summaries}
    for name, content in data.analyses.items():
        row = rows.setdefault(name, {"mdp_name": name})
        row[_ANALYSIS] = json.dumps(content, sort_keys=True)
    return [rows[name] for name in sorted(rows)]


def _mdp_schema(summaries: Sequence[MdpSummary]) -> Any:
    arrow = _arrow()
    types = {
        name: arrow.string() if name in _TEXT_COLUMNS else arrow.int64() if name in _COUNT_COLUMNS else arrow.float64()
        for name in summary_csv.columns(summaries)
    }
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
            ("other", arrow.string()),  # fields that this version does not know, as a JSON text
        ]
    )


def _run_row(row: Mapping[str, Any]) -> dict[str, Any]:
    known = set(_run_schema().names) | {"learning_curve"}
    flat = {name: value for name, value in row.items() if name in known and name != "learning_curve"}
    # in their own order, so that a row that is taken over from an export is the same to the byte
    flat |= {name: json.dumps(row.get(name)) for name in _JSON_FIELDS}
    other = {name: value for name, value in row.items() if name not in known}
    flat["other"] = json.dumps(other, sort_keys=True) if other else None
    return flat | _curve_columns(row.get("learning_curve"), f"row of {row['id']}")


def _curve_columns(curve: Any, where: str) -> dict[str, list[Any] | None]:
    """Points of three numbers (PPO and DQN) or four (GORP) as one list a number."""
    if not isinstance(curve, list) or not all(isinstance(point, list) and len(point) in (3, 4) for point in curve):
        raise StoreError(f"{where}: learning_curve must be a list of points of three or four numbers")
    names = _CURVE[:3] if not curve or len(curve[0]) == 3 else (*_CURVE[:2], *_CURVE[3:])
    if any(len(point) != len(names) for point in curve):
        raise StoreError(f"{where}: the points of learning_curve are of different lengths")
    columns: dict[str, list[Any] | None] = dict.fromkeys(_CURVE)
    return columns | {name: [point[i] for point in curve] for i, name in enumerate(names)}


def _run_of(flat: dict[str, Any], where: str) -> dict[str, Any]:
    lists = [flat.pop(name) for name in _CURVE]
    other = flat.pop("other")
    for name in _JSON_FIELDS:
        flat[name] = parsed_object(flat[name] or "", f"{where}: {name}", "an object")
    present = [values for values in lists if values is not None]
    if len({len(values) for values in present}) > 1:
        raise StoreError(f"{where}: the columns {', '.join(_CURVE)} are of different lengths")
    row = flat | {"learning_curve": [list(point) for point in zip(*present, strict=True)]}
    row |= parsed_object(other, f"{where}: other", "an object") if other is not None else {}
    runs.check_row(row, where)
    return row


def _run_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("id", "algorithm", "backend", "setting", "seed")
    return (*(row[name] for name in names), json.dumps(row, sort_keys=True))


def _write(path: Path, rows: list[dict[str, Any]], schema: Any) -> None:
    arrow = _arrow()
    try:
        table = arrow.Table.from_pylist(rows, schema=schema)
    except (arrow.ArrowException, OverflowError) as error:
        raise StoreError(f"{path}: cannot be written: {error}") from None
    with written_aside(path) as temporary:
        _parquet().write_table(table, temporary, compression="zstd")


def _read(path: Path, expected: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of a file whose columns include the expected ones, in the expected types."""
    arrow = _arrow()
    try:
        with _parquet().ParquetFile(path) as file:
            types = {field.name: str(field.type) for field in file.schema_arrow}
            if file.metadata.num_rows > MAX_ROWS:
                raise StoreError(f"{path}: {file.metadata.num_rows:,} rows are too many")
            for name, type_ in expected.items():
                if types.get(name) != type_:
                    raise StoreError(f"{path}: column {name} must be {type_}, not {types.get(name, 'missing')}")
            rows: list[dict[str, Any]] = []
            num_bytes = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                num_bytes += batch.nbytes
                if num_bytes > MAX_BYTES:
                    raise StoreError(f"{path}: more than {MAX_BYTES:,} bytes unpacked")
                rows += batch.to_pylist()
            return rows
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"{path}: not a Parquet file that can be read: {str(error).splitlines()[0]}") from None


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
