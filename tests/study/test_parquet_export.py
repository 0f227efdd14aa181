"""Exports: read back they are the same study, the same study gives the same bytes, bad files are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import analysis, published_file, results_directory, row, unfinished_figures

from efhorizon.errors import StoreError
from efhorizon.evaluation.source import study_data, write_export
from efhorizon.io.decode import plain
from efhorizon.study.records import Row

pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)


def study(path: Path) -> Path:
    unfinished = analysis("u")
    unfinished["analysis"] = unfinished_figures()
    gorp = {"setting": "k1", "learning_curve": [[100, 0.5, 0.25, 0.75], [200, 1.0, 1.0, 1.0]]}
    rows = [
        row("a", seed=1),
        row("a", seed=0, sample_complexity=None, solved_by=None, best_return=None, final_return=None),
        row("a", "gorp", **gorp),
        row("b", learning_curve=[]),
        row("elsewhere"),
    ]
    return results_directory(path, [analysis("a"), analysis("b", horizon_value=None), unfinished], rows)


def test_an_export_is_the_same_study(tmp_path: Path) -> None:
    data = study_data(study(tmp_path / "results"))
    written = write_export(tmp_path / "export", data)
    assert [file.name for file in written] == ["mdps.parquet", "runs.parquet", "summary.csv", "checksums.txt"]
    again = study_data(tmp_path / "export")
    assert again.summaries == data.summaries
    assert again.analyses == data.analyses
    assert again.titles == data.titles
    assert again.notes == data.notes
    assert by_text(again.runs) == by_text(data.runs)
    assert study_data(tmp_path / "export" / "summary.csv").summaries == data.summaries


def by_text(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda each: json.dumps(plain(each), sort_keys=True))


def test_the_same_study_gives_the_same_bytes(tmp_path: Path) -> None:
    data = study_data(study(tmp_path / "results"))
    for folder in ("one", "two"):
        write_export(tmp_path / folder, data)
    for name in ("mdps.parquet", "runs.parquet", "summary.csv", "checksums.txt"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_columns_are_typed_for_other_programs(tmp_path: Path) -> None:
    write_export(tmp_path, study_data(study(tmp_path / "results")))
    mdps = parquet.read_table(tmp_path / "mdps.parquet")
    assert mdps.column("mdp_name").to_pylist() == ["a", "b", "u"]
    assert mdps.column("horizon").to_pylist() == [10, 10, None]
    assert mdps.column("bound_effective_horizon_log10").to_pylist()[1] == float("inf")
    runs = parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    assert [(each["id"], each["algorithm"], each["seed"]) for each in runs][:3] == [
        ("a", "gorp", 0),
        ("a", "ppo", 0),
        ("a", "ppo", 1),
    ]
    assert (runs[0]["curve_step"], runs[0]["curve_low"], runs[0]["curve_training_return"]) == (
        [100, 200],
        [0.25, 1],
        None,
    )
    assert (runs[1]["curve_training_return"], runs[1]["curve_high"]) == ([None, 0.75], None)


def test_the_export_of_a_published_file(tmp_path: Path) -> None:
    data = study_data(published_file(tmp_path / "published.csv"))
    write_export(tmp_path / "export", data)
    again = study_data(tmp_path / "export")
    assert sorted(again.summaries, key=lambda each: each.name) == sorted(data.summaries, key=lambda each: each.name)
    assert again.titles == data.titles


def exported(path: Path) -> Path:
    """An export as older versions wrote it and others may: without checksums."""
    write_export(path / "export", study_data(study(path / "results")))
    (path / "export" / "checksums.txt").unlink()
    return path / "export"


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = exported(tmp_path)
    (path / "mdps.parquet").write_bytes(b"PAR1 and so on")
    with pytest.raises(StoreError, match=r"mdps\.parquet: not a Parquet file that can be read") as caught:
        study_data(path)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = exported(tmp_path)
    file = path / "runs.parquet"
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(StoreError, match=r"runs\.parquet"):
        study_data(path)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    path = exported(tmp_path)
    parquet.write_table(pyarrow.table({"id": [1]}), path / "runs.parquet")
    with pytest.raises(StoreError, match="column id must be string, not int64"):
        study_data(path)
    parquet.write_table(pyarrow.table({"mdp_name": ["a"]}), path / "mdps.parquet")
    with pytest.raises(StoreError, match="column analysis_json must be string, not missing"):
        study_data(path)


def test_other_content_is_refused(tmp_path: Path) -> None:
    path = exported(tmp_path)
    table = parquet.read_table(path / "runs.parquet")

    def replaced(name: str, values: list[Any]) -> None:
        place = table.column_names.index(name)
        other = [pyarrow.array(values, table.schema.field(name).type)]
        changed = table.set_column(place, table.schema.field(name), other).replace_schema_metadata()
        parquet.write_table(changed, path / "runs.parquet")

    replaced("protocol", ["[]"] * len(table))
    with pytest.raises(StoreError, match="row 0: protocol: not an object"):
        study_data(path)
    replaced("curve_return", [[1.0]] * len(table))
    with pytest.raises(StoreError, match="are of different lengths"):
        study_data(path)
    replaced("id", [None] * len(table))
    with pytest.raises(StoreError, match="id must be a text, not None"):
        study_data(path)
