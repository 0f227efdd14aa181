"""What an export holds, taken over: the same files as before, rows counted as done; a bad file changes nothing."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from efhorizon import MissingExtraError
from efhorizon.commands import main
from efhorizon.errors import StoreError
from efhorizon.evaluation.source import study_data, write_export
from efhorizon.study import stages as study
from efhorizon.study.forecast import forecast
from efhorizon.study.plan import Plan
from efhorizon.study.records import Row, RunKey, RunProtocol, RunProvenance
from efhorizon.study.restore import restore
from efhorizon.study.results import Results
from efhorizon.study.tasks import RunPlan

pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

NAME = "MiniGrid-Empty-5x5-v0"
RUNS = (RunPlan("gorp", "k1"), RunPlan("ppo", "rollout128", num_seeds=2, max_steps=12_000))
NUM_MADE_UP = 3


def plan(out: Path, runs: tuple[RunPlan, ...] = RUNS) -> Plan:
    return Plan(out, (NAME,), runs=runs, max_k=1)


def row_files(results: Path) -> dict[str, bytes]:
    return files_in(results / "rows")


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def export_of(results: Path, export: Path) -> Path:
    write_export(export, study_data(results))
    return export


def changed(export: Path, column: str, change: Callable[[list[Any]], list[Any]], name: str = "runs.parquet") -> Path:
    """Put other values into a column of one of the files."""
    file = export / name
    table = parquet.read_table(file)
    field = table.schema.field(column)
    values = pyarrow.array(change(table.column(column).to_pylist()), field.type)
    other = table.set_column(table.column_names.index(column), field, [values]).replace_schema_metadata()
    parquet.write_table(other, file)
    (export / "checksums.txt").unlink(missing_ok=True)
    return export


# Rows of real runs


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study of one gridworld, which is not to be changed."""
    pytest.importorskip("minigrid")
    pytest.importorskip("torch")
    out = tmp_path_factory.mktemp("study") / "made"
    assert study.study(plan(out)).num_complete == 1
    return out


def without_rows(made: Path, out: Path) -> Path:
    """The tables and analyses of a study."""
    shutil.copytree(made, out)
    shutil.rmtree(out / "rows")
    return out


def run_status(result: study.StudyResult) -> str:
    (status,) = (outcome.status for outcome in result.outcomes if outcome.stage == "run")
    return status


def test_rows_come_back_to_the_byte_and_are_kept(made: Path, tmp_path: Path) -> None:
    export = export_of(made, tmp_path / "export")
    out = without_rows(made, tmp_path / "elsewhere")
    restored = restore(export, out)
    assert (restored.num_taken_over, restored.num_there, restored.num_being_made) == (3, 0, 0)
    algorithms = sorted(row.algorithm for row in Results(out).rows())
    assert algorithms == ["gorp", "ppo", "ppo"]
    assert row_files(out) == row_files(made)
    assert run_status(study.study(plan(out))) == "kept"
    assert row_files(out) == row_files(made)


def test_rows_of_other_code_are_run_again_and_count_once(made: Path, tmp_path: Path) -> None:
    def by_other_code(provenances: list[str]) -> list[str]:
        return [json.dumps(json.loads(text) | {"code": "0123"}) for text in provenances]

    export = changed(export_of(made, tmp_path / "export"), "provenance", by_other_code)
    out = without_rows(made, tmp_path / "elsewhere")
    assert restore(export, out).num_taken_over == 3
    assert not set(row_files(out)) & set(row_files(made))
    assert run_status(study.study(plan(out, RUNS[:1]))) == "made"
    assert [row.algorithm for row in Results(out).rows()] == ["gorp", "gorp", "ppo", "ppo"]
    data = study_data(out)
    assert any(note.startswith("1 row of settings run again with other code or budget") for note in data.notes)
    assert [summary.sample_complexities for summary in data.summaries] == [
        summary.sample_complexities for summary in study_data(made).summaries
    ]


def test_an_export_of_what_was_taken_over_is_the_same_to_the_byte(made: Path, tmp_path: Path) -> None:
    export = export_of(made, tmp_path / "export")
    restored = restore(export, tmp_path / "elsewhere")
    assert (restored.num_analyses, restored.num_tables) == (1, 1)
    again = export_of(tmp_path / "elsewhere", tmp_path / "again")
    names = sorted(path.name for path in export.iterdir())
    assert names == ["checksums.txt", "mdps.parquet", "runs.parquet", "summary.csv", "tables.csv"]
    assert {name: (again / name).read_bytes() for name in names} == {
        name: (export / name).read_bytes() for name in names
    }
    twice = restore(export, tmp_path / "elsewhere")
    assert (twice.num_taken_over, twice.num_analyses, twice.num_tables) == (0, 0, 0)


def test_an_analysis_that_is_there_stays(made: Path, tmp_path: Path) -> None:
    def of_others(texts: list[str]) -> list[str]:
        return [json.dumps(json.loads(text) | {"seconds": {"analyze": -1}}) for text in texts]

    export = changed(export_of(made, tmp_path / "export"), "analysis_json", of_others, "mdps.parquet")
    out = without_rows(made, tmp_path / "elsewhere")
    own = (out / "analyses" / f"{NAME}.json").read_bytes()
    assert restore(export, out).num_analyses == 0
    assert (out / "analyses" / f"{NAME}.json").read_bytes() == own


def test_a_table_counts_once_and_as_it_is_here(made: Path, tmp_path: Path) -> None:
    export = export_of(made, tmp_path / "export")
    lines = (export / "tables.csv").read_text()
    (export / "checksums.txt").unlink()
    (export / "tables.csv").write_text(lines.replace(",100,", ",7,") + lines.splitlines()[1].replace(NAME, "other"))
    out = without_rows(made, tmp_path / "elsewhere")
    assert restore(export, out).num_tables == 2
    (here,) = study_data(made).tables
    assert study_data(out).tables == (here, replace(here, name="other"))


def test_a_taken_over_analysis_is_left_to_do_since_its_pictures_are_missing(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere"
    restore(export_of(made, tmp_path / "export"), out)
    left = {stage.stage: stage.num_left for stage in forecast(plan(out)).stages}
    assert left["analyze"] == 1
    assert [stage.num_left for stage in forecast(plan(made)).stages if stage.stage == "analyze"] == [0]


def test_a_taken_over_analysis_only_gets_its_pictures_back(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "elsewhere"
    restore(export_of(made, tmp_path / "export"), out)
    shutil.copytree(made / "tables", out / "tables")

    def not_again(*_: object, **__: object) -> None:
        raise AssertionError("it was computed again")

    monkeypatch.setattr(study, "write_analysis", not_again)
    assert {outcome.status for outcome in study.study(plan(out)).outcomes} == {"kept"}
    for folder in ("pictures", "rows"):
        assert files_in(out / folder) == files_in(made / folder)
    assert Results(out).analyses() == Results(made).analyses()
    assert [stage.num_left for stage in forecast(plan(out)).stages if stage.stage == "analyze"] == [0]


@pytest.mark.parametrize("name", ["../up", ".hidden", "x" * 300, "\u00e9" * 150, "a\0b"])
def test_an_analysis_cannot_be_written_elsewhere(name: str, made: Path, tmp_path: Path) -> None:
    def renamed(texts: list[str]) -> list[str]:
        return [json.dumps(json.loads(text) | {"id": name}) for text in texts]

    export = changed(export_of(made, tmp_path / "export"), "analysis_json", renamed, "mdps.parquet")
    with pytest.raises(StoreError, match="cannot be the name of a file"):
        restore(export, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_picture_that_cannot_be_one_is_missing(made: Path, tmp_path: Path) -> None:
    def with_a_long_name(texts: list[str]) -> list[str]:
        return [json.dumps(json.loads(text) | {"start_picture": "x" * 300}) for text in texts]

    export = changed(export_of(made, tmp_path / "export"), "analysis_json", with_a_long_name, "mdps.parquet")
    restore(export, tmp_path / "out")
    assert [stage.num_left for stage in forecast(plan(tmp_path / "out")).stages if stage.stage == "analyze"] == [1]


def test_the_command_goes_on_from_an_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("minigrid")
    first, export, second = tmp_path / "first", tmp_path / "export", tmp_path / "second"
    arguments = ["study", NAME, "--algos", "gorp", "--max-k", "1", "--json", "--out"]
    assert main([*arguments, str(first)]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] is None
    assert main(["evaluate", str(first), "--export", str(export)]) == 0
    num_rows = len(row_files(first))
    assert num_rows > 0
    capsys.readouterr()
    assert main([*arguments, str(second), "--rows", str(export)]) == 0
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    file = export / "runs.parquet"
    counts = {"taken_over": num_rows, "were_there": 0, "being_made": 0, "analyses": 1, "tables": 1}
    assert content["rows"] == {"file": str(file), **counts}
    assert [outcome["status"] for outcome in content["outcomes"]] == ["made", "kept", "kept"]
    others = "taken over as well: 1 analysis, the description of 1 table"
    assert captured.err.startswith(f"{file}: {num_rows} rows taken over, 0 were already there; {others}\n")
    assert row_files(second) == row_files(first)


# Made-up rows


def key(seed: int) -> RunKey:
    settings, protocol = {"rate": 1e-3, "layers": [64, 64], "clip": None}, RunProtocol(10, 5, None)
    return RunKey("walk", "ppo", "table", "rollout=128", seed, settings, protocol, "abc", "def")


def row(seed: int) -> Row:
    of = key(seed)
    return Row(
        *(of.id, of.algorithm, of.backend, of.setting, of.seed),
        sample_complexity=None,
        solved_by=None,
        steps=10,
        best_return=0.1 + 0.2,  # 0.30000000000000004: all digits must survive
        final_return=-1e-11,
        optimal_return=1.0,
        learning_curve=[[5, 1.0, None], [10, -1e-11, 1 / 3]],
        wall_seconds=0.1,
        hyperparameters=of.hyperparameters,
        protocol=of.protocol,
        provenance=RunProvenance(table_fingerprint=of.fingerprint, efhorizon="1.0.0", code=of.code, machine="x"),
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    directory = Results.made(tmp_path / "results")
    for seed in range(NUM_MADE_UP):
        directory.append(key(seed), row(seed))
    return directory.path


@pytest.fixture
def export(results: Path, tmp_path: Path) -> Path:
    return export_of(results, tmp_path / "export")


def test_made_up_rows_come_back_to_the_byte(results: Path, export: Path, tmp_path: Path) -> None:
    assert restore(export / "runs.parquet", tmp_path / "out").num_taken_over == NUM_MADE_UP
    assert row_files(tmp_path / "out") == row_files(results)
    assert all(Results(tmp_path / "out").has(key(seed)) for seed in range(NUM_MADE_UP))


def test_the_order_of_hyperparameters_does_not_make_another_row(results: Path, export: Path, tmp_path: Path) -> None:
    """Exports were once written with their names sorted."""

    def in_order(texts: list[str]) -> list[str]:
        return [json.dumps(json.loads(text), sort_keys=True) for text in texts]

    restore(changed(export, "hyperparameters", in_order), tmp_path / "out")
    assert row_files(tmp_path / "out").keys() == row_files(results).keys()
    assert list(Results(tmp_path / "out").rows()) == list(Results(results).rows())


def test_what_is_there_stays(results: Path, export: Path, tmp_path: Path) -> None:
    out = Results.made(tmp_path / "out")
    own = out.append(key(1), structs.replace(row(1), wall_seconds=99.0))
    first = restore(export, out.path)
    assert (first.num_taken_over, first.num_there) == (2, 1)
    assert json.loads(own.read_text())["wall_seconds"] == 99.0
    again = restore(export, out.path)
    assert (again.num_taken_over, again.num_there, again.num_being_made) == (0, 3, 0)
    own.unlink()
    assert restore(export, out.path).num_taken_over == 1
    assert row_files(out.path) == row_files(results)


def test_a_run_that_is_in_an_export_twice_is_taken_once(export: Path, tmp_path: Path) -> None:
    twice = restore(changed(export, "seed", lambda seeds: [0, 0, 2]), tmp_path / "out")
    assert (twice.num_taken_over, twice.num_there) == (2, 1)


def test_rows_that_somebody_makes_are_left_to_them(export: Path, tmp_path: Path) -> None:
    out = Results.made(tmp_path / "out")
    with out.claimed([key(0)]):
        restored = restore(export, out.path)
    assert (restored.num_taken_over, restored.num_there, restored.num_being_made) == (2, 0, 1)
    assert not out.has(key(0))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("provenance", '{"table_fingerprint": "abc"}', "row 1: provenance: code is missing"),
        ("provenance", '{"code": "def"}', "row 1: provenance: table_fingerprint is missing"),
        ("provenance", None, "row 1: provenance: not an object"),
        ("hyperparameters", "[]", "row 1: hyperparameters: not an object"),
        ("protocol", "{}", "row 1: protocol: max_steps is missing"),
        ("seed", None, "row 1: seed must be a whole number"),
        ("setting", "", "row 1: setting must be a text"),
        ("id", "x" * 300, "row 1: id, algorithm, backend and setting are too long"),
        ("optimal_return", None, "row 1: optimal_return must be a number, not None"),
        ("wall_seconds", float("nan"), "row 1: wall_seconds must be a finite number, not nan"),
        ("curve_step", None, "row 1: the points of the learning curve must each be a timestep"),
        ("curve_return", None, "row 1: the points of the learning curve must each be a timestep"),
        ("other", '{"learning_curve": [5]}', "row 1: learning_curve[0] must be a list, not 5"),
        ("other", '{"mood": "good"}', "row 1: a field that this version of efhorizon does not know: mood"),
    ],
)
def test_one_bad_row_and_nothing_is_taken_over(
    column: str, value: Any, message: str, export: Path, tmp_path: Path
) -> None:
    changed(export, column, lambda values: [values[0], value, values[2]])
    with pytest.raises(StoreError) as caught:
        restore(export, tmp_path / "out")
    assert str(caught.value).startswith(f"{export / 'runs.parquet'}: {message}")
    assert not (tmp_path / "out").exists()


def test_other_folders_are_not_touched(export: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    with pytest.raises(StoreError, match="not a results directory"):
        restore(export, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["precious"]


def test_without_pyarrow_it_says_what_to_install(export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"'pyarrow' is not installed.*efhorizon\[report\]"):
        restore(export, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bad_exports_are_one_line(export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = export / "runs.parquet"
    file.write_bytes(file.read_bytes()[:-200])
    bad: dict[Path, str] = {
        export: "runs.parquet: damaged or changed",
        export / "summary.csv": "summary.csv: not a Parquet file that can be read",
        tmp_path / "results": "runs.parquet: no such file; `efhorizon evaluate RESULTS --export EXPORT` writes it",
        tmp_path / "nothing": "nothing: no such file",
    }
    for rows, message in bad.items():
        arguments = ["study", NAME, "--algos", "none", "--out", str(tmp_path / "out"), "--rows", str(rows)]
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert main([*arguments, "--forecast"]) == 2
        assert "--forecast writes nothing and --rows writes rows" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
