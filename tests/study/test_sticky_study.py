"""`efhorizon sticky`: what is made, that nothing is made twice, and in what order."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from efhorizon.commands._main import main
from efhorizon.errors import StoreError
from efhorizon.evaluation.source import study_data
from efhorizon.io.decode import plain
from efhorizon.io.tables import save
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.analysis import analyze
from efhorizon.stochastic.sticky import sticky
from efhorizon.study.sticky_search import SqirlRun, coarse_ladder, fine_ladder, least_m
from efhorizon.study.sticky_tasks import CURVE_POINTS, passes, thinned
from efhorizon.study.stochastic_record import sticky_record
from efhorizon.study.stochastic_results import ANALYSES, RUNS, read_export


def corridor() -> TabularMDP:
    """Five cells; the far end pays."""
    steps = [[max(0, cell - 1), cell + 1 if cell < 4 else -1] for cell in range(5)]
    return TabularMDP(steps, [[0, 0]] * 4 + [[0, 1]], horizon=10, metadata={"id": "corridor"})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return save(corridor(), tmp_path / "corridor.npz")


def done(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    code = main(["sticky", *map(str, arguments), "--json", "--workers", "1"])
    return code, json.loads(capsys.readouterr().out)


def test_a_study_is_made_once_and_can_be_evaluated(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    arguments = (table, "--out", out, "--steps", "20k", "--seeds", 2, "--algos", "sqirl,ppo")
    code, first = done(capsys, *arguments)
    assert code == 0
    assert (first["num_tables"], first["num_rows"], first["is_complete"]) == (1, 2 * 3 + 2 * 2, True)
    code, again = done(capsys, *arguments)
    assert (code, again["num_rows"]) == (0, 0)
    some = next((out / "rows").glob("*sqirl__*k2*seed1*"))
    some.unlink()
    assert done(capsys, *arguments)[1]["num_rows"] == 1
    data = study_data(out)
    (record,) = data.stochastic.analyses.values()
    assert record.id == "corridor-sticky0.25"
    known = analyze(sticky(corridor(), 0.25)).as_json()
    assert all(getattr(record, name) == known[name] for name in ("min_k", "epw", "optimal_return", "effective_horizon"))
    assert [gap.k for gap in record.gaps] == [gap["k"] for gap in known["gaps"]]
    assert {row.algorithm for row in data.stochastic.runs} == {"sqirl", "ppo"}
    assert data.runs == []  # none of them is a run without chance
    for row in data.stochastic.runs:
        assert row.optimal_return == known["optimal_return"]
        assert (row.sample_complexity is None) == (row.solved_by is None)
        if row.solved_by == "greedy policy":
            assert row.final_return is not None
            assert row.final_return >= 0.99 * row.optimal_return
        assert row.algorithm == "ppo" or row.hyperparameters["m"] >= 1
    exported = tmp_path / "exported"
    assert main(["evaluate", str(out), "--export", str(exported), "--json", "--resamples", "20"]) == 0
    capsys.readouterr()
    read = read_export(exported)
    assert read.analyses == data.stochastic.analyses
    assert sorted(map(repr, read.runs)) == sorted(map(repr, data.stochastic.runs))
    assert {path.name for path in exported.iterdir()} == {ANALYSES, RUNS, "checksums.txt"}


def test_time_is_up(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = done(capsys, table, "--out", tmp_path / "study", "--max-minutes", "0.000001s", "--steps", "10k")
    assert code == 3
    assert not found["is_complete"]
    assert found["num_rows"] == 0


def test_a_damaged_analysis_is_refused(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study"
    done(capsys, table, "--out", out, "--algos", "none")
    (file,) = (out / "stochastic").iterdir()
    content = file.read_text()
    file.write_text(content.replace('"epw": ', '"epw": 1'))
    with pytest.raises(StoreError, match="damaged"):
        study_data(out)
    file.unlink()
    assert done(capsys, table, "--out", out, "--algos", "none")[0] == 0
    assert study_data(out).stochastic


@pytest.mark.parametrize("wrong", [("--sticky", "1"), ("--sticky", "0"), ("--algos", "gorp")])
def test_wrong_calls_are_one_line(
    table: Path, tmp_path: Path, wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["sticky", str(table), "--out", str(tmp_path / "study"), *wrong])
    except SystemExit as error:
        code = int(str(error.code))
    assert code not in (0, None)
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert not (tmp_path / "study").exists()


def test_large_tables_are_left_out(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = done(capsys, table, "--out", tmp_path / "study", "--max-states", 9)
    assert (code, found["num_tables"], found["num_rows"]) == (0, 0, 0)


def test_the_record_of_an_analysis() -> None:
    mdp = corridor()
    record = sticky_record(mdp, analyze(sticky(mdp, 0.25)))
    assert (record.made_from, record.suite, record.family, record.unshaped) == ("corridor", "unknown", "corridor", None)
    assert record.provenance.table_fingerprint == mdp.fingerprint()
    assert plain(record)["greedy_returns"] == list(analyze(sticky(mdp, 0.25)).greedy_returns)


def test_one_setting_of_each_algorithm_comes_first() -> None:
    order = [(tasks[0].algorithm, tasks[0].setting) for tasks in passes(("sqirl", "ppo", "sqirl_network"), 2, 100)]
    assert order[:3] == [("sqirl", "k1"), ("ppo", "rollout128"), ("sqirl", "k2")]
    assert [algorithm for algorithm, _ in order[-3:]] == ["sqirl_network"] * 3
    (first,) = (tasks for tasks in passes(("ppo",), 3, 100) if tasks[0].setting == "rollout128")
    assert [task.seeds for task in first] == [(0,), (1,), (2,)]


class Threshold:
    """A run succeeds from some m on, which depends on its seed."""

    def __init__(self, least: dict[int, int]) -> None:
        self.least = least
        self.played: list[tuple[int, int]] = []

    def __call__(self, m: int, seed: int) -> SqirlRun:
        self.played.append((m, seed))
        return SqirlRun(seed, m, 10 * m, 0.0, m >= self.least[seed])


def test_the_search_stops_at_the_first_m_that_does() -> None:
    player = Threshold({0: 5, 1: 9, 2: 100})
    runs = least_m(player, fine_ladder(), (0, 1, 2), max_steps=10**6)
    assert [(run.seed, run.m, run.is_success) for run in runs] == [(0, 12, True), (1, 12, True), (2, 12, False)]
    assert (1, 2) not in player.played  # two failures had decided it
    assert (8, 2) in player.played  # one success and one failure had not


def test_the_search_keeps_to_its_budget() -> None:
    player = Threshold({0: 10**9, 1: 10**9})
    runs = least_m(player, coarse_ladder(), (0, 1), max_steps=700)
    assert {(run.m, run.is_success) for run in runs} == {(64, False)}
    assert max(m for m, _ in player.played) == 64
    assert [run.m for run in least_m(player, fine_ladder(), (0, 1), max_steps=1)] == [1, 1]


def test_curves_are_thinned_evenly() -> None:
    curve = [(step, float(step), None) for step in range(500)]
    shown = thinned(curve)
    assert len(shown) == CURVE_POINTS
    assert (shown[0], shown[-1]) == (curve[0], curve[-1])
    gaps = {after[0] - before[0] for before, after in pairwise(shown)}
    assert gaps <= {20, 21}
    assert thinned(curve[:7]) == curve[:7]
