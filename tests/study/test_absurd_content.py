"""Rows, analyses and tables with absurd content: refused in one line that names file and field, or shown as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation_data import (
    PUBLISHED_HEADER,
    PUBLISHED_LINES,
    analysis,
    results_directory,
    row,
    row_record,
    unfinished_figures,
)
from synthetic_study import analysis as whole_analysis

from efhorizon.commands import main
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.evaluation.source import study_data, write_export
from efhorizon.evaluation.summary_csv import read_summaries
from efhorizon.study import export
from efhorizon.study.analysis_record import analysis_of
from efhorizon.study.built_tables import FILE, encoded_tables, read_tables
from efhorizon.study.records import RunKey
from efhorizon.study.results import Results

HUGE = 10**400
nested: Any = 1
for _ in range(300):
    nested = [nested]
DEEP = nested


def refused(path: Path, capsys: pytest.CaptureFixture[str], *commands: str) -> str:
    """The one line that every command says about a study."""
    said = set()
    for command in commands or ("evaluate", "report"):
        out = ["--out", str(path.parent / "report")] if command == "report" else ["--resamples", "5"]
        assert main([command, str(path), *out]) == 1
        said.add(capsys.readouterr().err.strip().splitlines()[-1])
    (line,) = said
    return line


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": HUGE}, "steps must be a whole number of at most 9,223,372,036,854,775,807, not 1000"),
        ({"sample_complexity": HUGE}, "sample_complexity must be a whole number of at most 9,223,372,036,854,775,807"),
        ({"seed": HUGE}, "seed must be a whole number of at most"),
        ({"seed": True}, "seed must be a whole number, not True"),
        ({"optimal_return": HUGE}, "optimal_return must be a whole number of at most"),
        ({"final_return": -HUGE}, "final_return must be a whole number of at least"),
        ({"wall_seconds": HUGE}, "wall_seconds must be"),
        ({"learning_curve": [[HUGE, 1.0, None]]}, "learning_curve[0][0] must be"),
        ({"learning_curve": [[1, HUGE, None]]}, "learning_curve[0][1] must be"),
        ({"learning_curve": [[1, True, None]]}, "learning_curve[0][1] must be a number, not True"),
        ({"learning_curve": [[0, 0.0, 0.0]] * 100_001}, "learning_curve must be a list of at most 100,000"),
        ({"learning_curve": DEEP}, "learning_curve"),
        ({"protocol": {"max_steps": HUGE}}, "protocol: max_steps must be"),
        ({"hyperparameters": {"layers": DEEP}}, "hyperparameters: nested too deeply"),
        ({"checksum": "abc"}, "damaged: its content is not what its checksum says"),
        ({"checksum": None}, "damaged: its content is not what its checksum says"),
    ],
)
def test_a_row(changes: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = results_directory(tmp_path / "results", [analysis("a")], [row("a", **changes)])
    (file,) = (path / "rows").iterdir()
    assert f"{file}: {message}" in refused(path, capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"seed": 0', '"seed": 0, "seed": 1'), "not a row: 'seed' comes twice in it"),
        (lambda text: text.replace('"seed": 0', '"seed": NaN'), "not a row: NaN is not a number in JSON"),
        (lambda text: text.replace('"seed": 0', '"seed": 1e400'), "seed must be a whole number, not inf"),
        (lambda text: text.replace('"optimal_return": 1.0', '"optimal_return": 1e400'), "must be a finite number"),
        (lambda text: text.replace('"seed": 0', '"seed": ' + "9" * 5000), "not a row"),
        (lambda text: text.replace('"id": "a"', '"id": "\\ud800"'), "not a row: a text in it is not valid Unicode"),
        (lambda text: text.replace('"id": "a"', '"id": "a\0b"'), "not a row"),
        (lambda text: text + "\0", "not a row"),
        (lambda text: "[" * 100_000, "not a row"),
        (lambda text: "", "not a row"),
        (lambda text: " " * (17 << 20), "17,825,792 bytes are too many for a row"),
    ],
)
def test_the_text_of_a_row(
    change: Callable[[str], str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results_directory(tmp_path / "results", [analysis("a")], [row("a")])
    (file,) = (path / "rows").iterdir()
    before = file.read_text()
    file.write_text(change(before))
    assert file.read_text() != before
    line = refused(path, capsys)
    assert str(file) in line
    assert message in line


def test_a_mark_at_the_beginning_of_a_text_makes_no_difference(tmp_path: Path) -> None:
    path = results_directory(tmp_path / "results", [analysis("a")], [row("a")])
    before = list(Results(path).rows())
    (file,) = (path / "rows").iterdir()
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert list(Results(path).rows()) == before


def leaves(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Ways to the numbers and texts in JSON content, of lists to the first two items."""
    if isinstance(content, dict):
        return [way for key, value in content.items() for way in leaves(value, (*path, key))]
    if isinstance(content, list):
        return [way for number, value in enumerate(content[:2]) for way in leaves(value, (*path, number))]
    return [path]


@pytest.mark.parametrize("value", [HUGE, -HUGE, 1e308, -1e308, True, DEEP, "9" * 5000, "=\x1b[31m</script>", {}])
@pytest.mark.parametrize("is_finished", [True, False])
def test_every_field_of_an_analysis(value: Any, is_finished: bool, tmp_path: Path) -> None:
    """Refused, or everything that is made of it works."""
    pytest.importorskip("jinja2")
    from efhorizon.evaluation.tables import tables_by_rule
    from efhorizon.render.html.entries import study_entries
    from efhorizon.render.html.mdp_page import mdp_page
    from efhorizon.render.markdown import publication

    given = whole_analysis("mdp", "atari", 0, np.random.default_rng(1), with_pictures=False)
    if not is_finished:
        given |= {"analysis": unfinished_figures(), "deciding": None}
    text = json.dumps(given)
    path = results_directory(tmp_path / "results", [given], [])
    (file,) = (path / "analyses").iterdir()
    said: list[str] = []
    for way in leaves(given):
        content = json.loads(text)
        inside = content
        for step in way[:-1]:
            inside = inside[step]
        inside[way[-1]] = value
        file.write_text(json.dumps(content))
        try:
            data = study_data(path)
        except StoreError as error:
            said.append(str(error))
            continue
        publication(data, *tables_by_rule(data, num_resamples=1))
        for entry in study_entries(data):
            mdp_page(entry, data.titles, {})
    assert said
    assert all(line.startswith(f"{file}: ") and "\n" not in line for line in said)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("horizon", "1e400", "horizon must be a whole number of at least 1, not '1e400'"),
        ("horizon", "1e300", "horizon must be a whole number of at most"),
        ("horizon", "9" * 400, "horizon must be a whole number of at least 1, not '9999"),
        ("num_states_consolidated", "-inf", "must be a number, or inf, not '-inf'"),
        ("num_actions", "True", "num_actions must be a number, not 'True'"),
        ("min_state_action_occupancy", "inf", "min_state_action_occupancy must be between 0 and 1, not 'inf'"),
        ("min_state_action_occupancy", "2", "between 0 and 1"),
        ("reward_optimal_probability", "-1", "between 0 and 1"),
        ("reward_optimal", "inf", "reward_optimal must be a finite number"),
        ("effective_horizon", "-1", "effective_horizon must be positive"),
        ("sample_complexity_ppo", "0", "sample_complexity_ppo must be positive"),
        ("mdp_name", "", "mdp_name is empty"),
    ],
)
def test_a_cell_of_a_summary(
    column: str, cell: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = dict(zip(PUBLISHED_HEADER.split(","), PUBLISHED_LINES[0].split(","), strict=True)) | {column: cell}
    file = tmp_path / "summary.csv"
    file.write_text(f"{PUBLISHED_HEADER}\n{','.join(cells.values())}\n")
    line = refused(file, capsys)
    assert f"{file}: line 2: " in line
    assert message in line


def test_numbers_that_no_axis_can_show(tmp_path: Path) -> None:
    """They took for ever."""
    pytest.importorskip("jinja2")
    from efhorizon.render.html import write_report

    file = tmp_path / "summary.csv"
    header = f"{PUBLISHED_HEADER},bound_mine_log10,bound_effective_horizon_log10"
    file.write_text(f"{header}\n{PUBLISHED_LINES[0]},1e300,3\n{PUBLISHED_LINES[1]},-1e300,4\n")
    assert write_report(file, tmp_path / "report").num_mdps == 2


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    file = tmp_path / "summary.csv"
    file.write_text(f"{PUBLISHED_HEADER},horizon\n{PUBLISHED_LINES[0]},7\n")
    with pytest.raises(StoreError, match="the column horizon is there twice"):
        read_summaries(file)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"a,{'9' * 400},2,,no,yes,20,57", "horizon must be a whole number"),
        ("a,1e3,2,,no,yes,20,57", "horizon must be a whole number"),
        ("a,2,2,,no,yes,20,57,,,more", "more fields than the header has"),
        ("a,2,2,,no,yes,20,57,more", "pairs must be a whole number"),
        ("a,2,2,,no,yes", "line 2"),
        (",2,2,,no,yes,20,57", "must not be empty"),
    ],
)
def test_a_line_of_a_list_of_tables(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(encoded_tables([]) + line.encode() + b"\n")
    if message == "line 2":
        assert len(read_tables(file)) == 1  # the number of episodes need not be known
        return
    with pytest.raises(StoreError, match=message):
        read_tables(file)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("best_return", float("nan"), "row 0: best_return must be a finite number, not nan"),
        ("optimal_return", float("inf"), "row 0: optimal_return must be a finite number, not inf"),
        ("steps", -1, "row 0: steps must be a whole number of at least 0, not -1"),
        ("protocol", json.dumps({"max_steps": HUGE}), "row 0: protocol: max_steps must be a whole number of at most"),
        ("hyperparameters", json.dumps({"a": DEEP}), "row 0: hyperparameters: nested too deeply"),
        ("hyperparameters", "[" * 100_000, "row 0: hyperparameters: not an object"),
        ("hyperparameters", "[]," * 6_000_000, "row 0: hyperparameters: not an object: 18,000,000 characters are too"),
        ("provenance", '{"code": "a", "code": "b"}', "row 0: provenance: not an object: 'code' comes twice in it"),
        ("other", '{"checksum": "0"}', "row 0: a field that this version of efhorizon does not know: checksum"),
        ("id", "", "row 0: id must be a text of at least 1 character, not ''"),
    ],
)
def test_a_cell_of_an_export(
    column: str, value: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
    from pyarrow import parquet

    path = tmp_path / "export"
    write_export(path, study_data(results_directory(tmp_path / "results", [analysis("a")], [row("a")])))
    (path / "checksums.txt").unlink()
    table = parquet.read_table(path / export.RUNS)
    field = table.schema.field(column)
    other = [pyarrow.array([value], field.type)]
    changed = table.set_column(table.column_names.index(column), field, other).replace_schema_metadata()
    parquet.write_table(changed, path / export.RUNS)
    assert f"{path / export.RUNS}: {message}" in refused(path, capsys)
    arguments = ["study", "MiniGrid-Empty-5x5-v0", "--algos", "none", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--rows", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../up", "/tmp/up", ".hidden", "a/b", "a\0b", "-x", "x" * 300])
def test_a_name_is_never_a_path(name: str, tmp_path: Path) -> None:
    results = Results.made(tmp_path / "results")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(EfhorizonError, match="cannot be used as the name of a file"):
        results.write_analysis(analysis_of(analysis(name), "x"))
    with pytest.raises(EfhorizonError, match="cannot be used as the name of a file"):
        results.analysis(name)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_row_is_never_hidden(tmp_path: Path) -> None:
    """A file whose name begins with a dot is one that is being written."""
    results = Results.made(tmp_path / "results")
    of = row_record("a")

    def key(name: str) -> RunKey:
        return RunKey(name, of.algorithm, of.backend, of.setting, 0, of.hyperparameters, of.protocol, "f1", "code")

    for name in ("x../up", "/tmp/up", "a\0b"):
        assert results.append(key(name), of).parent == results.path / "rows"
    with pytest.raises(StoreError, match="cannot be the beginning of a file's name"):
        results.append(key(".hidden"), of)
    assert len(list(results.rows())) == 3
