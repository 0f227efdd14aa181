"""Every byte of a study that is read is covered by a checksum; files without one are those of older versions."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bit_flips import unnoticed
from evaluation_data import analysis, row
from older_files import rewritten

from efhorizon.commands import main
from efhorizon.errors import StoreError
from efhorizon.evaluation.source import StudyData, study_data, write_export
from efhorizon.evaluation.summary_csv import read_summaries
from efhorizon.io import checksums
from efhorizon.io.decode import record_of
from efhorizon.io.png import encoded_png
from efhorizon.study import export
from efhorizon.study.analysis_record import AnyAnalysis, analysis_of
from efhorizon.study.built_tables import BuiltTable, read_tables
from efhorizon.study.records import PlanRecord, Row, RunKey, StageOutcome, StudyRecord
from efhorizon.study.results import Results

NUM_FLIPS = 500
PLAN = PlanRecord(names=["a"], runs=[], max_k=3, max_states=None, max_minutes=1.5, note="a small budget")
OUTCOMES = [StageOutcome("a", "build", "made", "50 states")]
TABLE = BuiltTable("a", 10, 50, 60, is_degenerate=False, is_verified=True, episodes=20, steps=57)


def run(name: str, seed: int) -> Row:
    content = row(name, seed=seed, learning_curve=[[10_000 * n, n / 7, n / 11] for n in range(1, 20)])
    return record_of(content, Row, "row")


def key(of: Row) -> RunKey:
    parts = (of.id, of.algorithm, of.backend, of.setting, of.seed, of.hyperparameters, of.protocol)
    return RunKey(*parts, "f1", "code")


def record(name: str) -> AnyAnalysis:
    return analysis_of(analysis(name, start_picture=f"pictures/{name}-start.png"), name)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    results = Results.made(tmp_path / "results")
    for name in ("a", "b"):
        for seed in range(2):
            results.append(key(run(name, seed)), run(name, seed))
        picture = np.random.default_rng(0).integers(256, size=(8, 8, 3), dtype=np.uint8)
        results.write_analysis(record(name), {f"pictures/{name}-start.png": encoded_png(picture)})
    results.write_study(StudyRecord(efhorizon="1.0", plan=PLAN, outcomes=OUTCOMES))
    results.list_tables((TABLE,))
    return results


@pytest.fixture
def exported(results: Results, tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    write_export(tmp_path / "export", study_data(results.path))
    return tmp_path / "export"


# Flipped bits


def first(folder: Path) -> Path:
    return min(path for path in folder.iterdir() if not path.name.startswith("."))


FILES: dict[str, Callable[[Results], object]] = {
    "rows": lambda results: list(results.rows()),
    "analyses": lambda results: results.analyses(),
    "study.json": lambda results: results.study(),
    "results.json": lambda results: Results.opened(results.path).path,
    "tables.csv": lambda results: results.tables(),
    "checksums.txt": lambda results: results.tables(),
    "pictures": lambda results: [results.picture(f"pictures/{name}-start.png") for name in ("a", "b")],
}


@pytest.mark.parametrize("name", FILES)
def test_flipped_bits_in_a_results_folder(results: Results, name: str) -> None:
    path = results.path / name
    file = first(path) if path.is_dir() else path
    assert unnoticed(file, lambda: FILES[name](results), NUM_FLIPS) == []


EXPORTED: dict[str, Callable[[Path], object]] = {
    export.MDPS: export.read_mdps,
    export.RUNS: export.read_runs,
    "summary.csv": read_summaries,
    "tables.csv": read_tables,
}


@pytest.mark.parametrize("name", EXPORTED)
def test_flipped_bits_in_an_export(exported: Path, name: str) -> None:
    if name.endswith(".parquet"):
        (exported / "checksums.txt").unlink()  # they have their own
    assert unnoticed(exported / name, lambda: EXPORTED[name](exported / name), NUM_FLIPS) == []


def test_flipped_bits_in_the_list_of_checksums(exported: Path) -> None:
    assert unnoticed(exported / "checksums.txt", lambda: same_study(study_data(exported)), 60) == []


def same_study(data: StudyData) -> object:
    return data.analyses, list(data.runs), data.summaries, data.tables


def test_pages_have_checksums_too(exported: Path) -> None:
    """Other programs can compare those, which do not know ours."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = exported / export.RUNS
    column = parquet.read_metadata(file).row_group(0).column(0)
    content = bytearray(file.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises((OSError, pyarrow.ArrowException), match=r"(?i)crc|checksum"):
        parquet.read_table(file, page_checksum_verification=True)


# What is refused, and how


@pytest.mark.parametrize("name", ["rows", "analyses", "study.json", "results.json"])
def test_the_name_of_the_checksum_is_covered_too(results: Results, name: str) -> None:
    """No flip in it makes a file one of an older version."""
    path = results.path / name
    file = first(path) if path.is_dir() else path
    content = file.read_bytes()
    at = content.rindex(b"checksum")
    for place in range(at, at + len("checksum")):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            file.write_bytes(damaged)
            with pytest.raises(StoreError):
                FILES[name](results)


def test_the_name_of_a_parquet_checksum_is_covered_too(exported: Path) -> None:
    (exported / "checksums.txt").unlink()
    file = exported / export.RUNS
    content = file.read_bytes()
    at = content.rindex(b"efhorizon.checksum")
    for place in range(at - 3, at + len("efhorizon.checksum") + 2):  # and the lengths before and after it
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            file.write_bytes(damaged)
            with pytest.raises(StoreError):
                export.read_runs(file)


def test_the_checksum_is_that_of_the_file_with_zeros_in_its_place(results: Results, exported: Path) -> None:
    for file in (first(results.path / "rows"), exported / export.RUNS):
        content = file.read_bytes()
        before, _, after = content.rpartition(checksum_of(file))
        blank = before + b"0" * 64 + after
        assert hashlib.sha256(blank).hexdigest().encode() == checksum_of(file)


def checksum_of(file: Path) -> bytes:
    if file.suffix == ".json":
        return str(json.loads(file.read_text())["checksum"]).encode()
    from pyarrow import parquet

    value: bytes = parquet.read_metadata(file).metadata[b"efhorizon.checksum"]
    return value


def test_files_of_older_versions_still_load(results: Results) -> None:
    before = same_study(study_data(results.path))
    study = results.study()
    for file in results.path.rglob("*.json"):
        rewritten(file)
    (results.path / "checksums.txt").unlink()
    assert same_study(study_data(results.path)) == before
    assert results.study() == study


def test_a_damaged_file_is_one_line_that_says_what_to_do(
    results: Results, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = first(results.path / "rows")
    file.write_bytes(file.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    for verb in (["evaluate", str(results.path)], ["report", str(results.path), "--out", str(tmp_path / "report")]):
        assert main(verb) == 1
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert f"{file}: damaged: its content is not what its checksum says; delete it and it will be made" in error
    (exported / "summary.csv").write_text((exported / "summary.csv").read_text() + "\n")
    assert main(["evaluate", str(exported / "summary.csv")]) == 1
    assert f"summary.csv: damaged or changed: its content is not what {exported / 'checksums.txt'} says" in (
        capsys.readouterr().err
    )


def test_a_damaged_analysis_and_a_damaged_picture_are_made_again(results: Results) -> None:
    from efhorizon.study.analyses import is_whole

    assert is_whole(results, "a")
    picture = results.path / "pictures" / "a-start.png"
    whole = picture.read_bytes()
    for content in (b"", whole[:-1], whole.replace(b"IDAT", b"IDAU")):
        picture.write_bytes(content)
        assert not is_whole(results, "a")
    picture.write_bytes(whole)
    file = results.path / "analyses" / "a.json"
    file.write_bytes(file.read_bytes().replace(b'"num_states": 50', b'"num_states": 51'))
    assert not is_whole(results, "a")


def test_a_full_disk_leaves_the_files_as_they_were(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {path: path.read_bytes() for path in results.path.rglob("*") if path.is_file()}
    monkeypatch.setattr(Path, "write_bytes", full)
    for write in (
        lambda: results.write_pictures({"pictures/a-start.png": b"other", "pictures/new.png": b"new"}),
        lambda: results.write_analysis(record("a")),
        lambda: results.append(key(run("a", 7)), run("a", 7)),
    ):
        with pytest.raises(OSError, match="No space left"):
            write()
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in results.path.rglob("*") if path.is_file()} == before


def test_a_damaged_picture_is_left_out_with_a_line(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    from efhorizon.render.html import write_report

    picture = results.path / "pictures" / "a-start.png"
    for content in (b"", picture.read_bytes()[:-20]):
        picture.write_bytes(content)
        report = write_report(results.path, tmp_path / "report")
        assert [note for note in report.notes if "picture left out" in note and str(picture) in note]
        assert len(list((report.path / "pictures").iterdir())) == 1


# The list of checksums


def test_a_file_that_is_lost_is_noticed(exported: Path) -> None:
    (exported / export.RUNS).unlink()
    with pytest.raises(StoreError, match=r"checksums\.txt: lists runs\.parquet, which is not there"):
        study_data(exported)


def test_files_without_a_list_are_read_unchecked(exported: Path) -> None:
    before = same_study(study_data(exported))
    (exported / "checksums.txt").unlink()
    assert same_study(study_data(exported)) == before
    (exported / "checksums.txt").write_text("")  # lists nothing
    assert same_study(study_data(exported)) == before
    (exported / "checksums.txt").write_text("a4f  summary.csv\n")
    with pytest.raises(StoreError, match=r"not a list of checksums: 'a4f  summary\.csv'; without it the files in"):
        study_data(exported)


@pytest.mark.parametrize("last", range(6))
def test_a_kill_at_any_moment_leaves_files_that_are_read(
    exported: Path, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another study is exported to the same folder, and ends after so many files."""
    data = study_data(exported)
    names = ["mdps.parquet", "runs.parquet", "summary.csv", "tables.csv", "checksums.txt"]
    written: list[Path] = []
    real = checksums.written_aside

    @contextmanager
    def until_killed(path: Path) -> Iterator[Path]:
        if len(written) == last:
            raise KeyboardInterrupt
        written.append(path)
        with real(path) as temporary:
            yield temporary

    other = StudyData(data.path, data.analyses, data.runs[:1], data.summaries, data.titles, (), data.tables)
    monkeypatch.setattr(checksums, "written_aside", until_killed)
    if last < len(names):
        with pytest.raises(KeyboardInterrupt):
            write_export(exported, other)
    else:
        write_export(exported, other)
    assert [path.name for path in written] == names[:last]
    assert len(study_data(exported).runs) == (1 if last >= 2 else 4)


def test_an_export_without_tables_leaves_none_of_an_older_one(exported: Path) -> None:
    data = study_data(exported)
    write_export(exported, StudyData(data.path, data.analyses, data.runs, data.summaries, data.titles))
    assert study_data(exported).tables == ()


# Things that are not files


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "circle"])
@pytest.mark.parametrize(
    "name", ["rows/x.json", "analyses/x.json", "study.json", "results.json", "tables.csv", "checksums.txt"]
)
def test_what_is_not_a_file_is_one_line(
    results: Results, kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(kind, results.path / name)
    code = main(["evaluate", str(results.path), "--resamples", "10"])
    captured = capsys.readouterr()
    if code == 0:  # a circle of links is nothing
        assert kind == "circle"
    else:
        assert captured.err.count("\n") == 1
        assert str(results.path / name) in captured.err


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", [*EXPORTED, "checksums.txt"])
def test_what_is_not_a_file_in_an_export_is_one_line(
    exported: Path, kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "summary.csv":
        (exported / export.MDPS).unlink()
    (exported / "checksums.txt").unlink()
    put(kind, exported / name)
    assert main(["evaluate", str(exported), "--resamples", "10"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(exported / name) in error


def put(kind: str, path: Path) -> None:
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)


def test_a_small_file_that_unpacks_to_much_is_refused(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (exported / "checksums.txt").unlink()
    table = parquet.read_table(exported / export.RUNS).replace_schema_metadata()
    num_rows = len(table)

    def replaced(name: str, values: Any) -> None:
        changed = table.set_column(table.column_names.index(name), table.schema.field(name), [values])
        parquet.write_table(changed, exported / export.RUNS, compression="zstd")
        with pytest.raises(StoreError, match="bytes unpacked"):
            study_data(exported)

    monkeypatch.setattr(export, "MAX_UNPACKED_BYTES", 1 << 20)
    steps = pyarrow.array([list(range(10)) * 100_000] + [[]] * (num_rows - 1), table.schema.field("curve_step").type)
    replaced("curve_step", steps)
    replaced("solved_by", pyarrow.array(["x" * 4_000_000] * num_rows))
    many = pyarrow.concat_tables([table] * 2_000)
    parquet.write_table(many, exported / export.RUNS, compression="zstd")
    with pytest.raises(StoreError, match="bytes unpacked"):
        study_data(exported)


def test_out_of_memory_is_not_damage(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")

    def too_much(*_: object, **__: object) -> None:
        raise pyarrow.ArrowMemoryError("malloc of size 1 failed")

    monkeypatch.setattr(pyarrow, "BufferReader", too_much)
    with pytest.raises(MemoryError):
        export.read_runs(exported / export.RUNS)
