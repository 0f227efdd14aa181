"""`efhorizon train`: rows, resumption, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.cli import main
from efhorizon.experiments import run as experiment
from efhorizon.experiments.records import Results

NAME = "MiniGrid-Empty-5x5-v0"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("minigrid")
    folder = tmp_path_factory.mktemp("tables")
    build(catalogue_target(NAME), Options(out=folder, num_workers=1, verify_episodes=0))
    return folder


def train(tables: Path, results: Path, *more: str) -> int:
    return main(["train", NAME, "--tables", str(tables), "--results", str(results), *more])


def test_rows_are_made_once_and_summed_up(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    arguments = ("--algo", "ppo", "--settings", "rollout128", "--steps", "20000", "--json")
    assert train(tables, tmp_path / "r", *arguments, "--seeds", "1") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["rows"] == 1
    (row,) = Results(tmp_path / "r").rows()
    assert row["sample_complexity"] == first["environments"][0]["sample_complexity"] == row["steps"]
    assert row["hyperparameters"]["rollout_length"] == 128
    assert row["provenance"]["table_fingerprint"]
    assert row["optimal_return"] == row["best_return"] == 1.0
    assert train(tables, tmp_path / "r", *arguments, "--seeds", "1") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == first
    assert "1 of 1 rows are there already" in captured.err


def test_gorp_leaves_rows_too(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tables, tmp_path / "r", "--algo", "gorp", "--settings", "k1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    (row,) = Results(tmp_path / "r").rows()
    assert row["algorithm"] == "gorp"
    assert row["setting"] == "k1"
    assert row["sample_complexity"] > 0


def test_a_killed_task_keeps_its_finished_seeds(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    from efhorizon.agents import ppo
    from efhorizon.agents.protocol import RunRecord
    from efhorizon.mdp import load

    trained: list[list[int]] = []

    def interrupted(table: Any, settings: Any, protocol: Any, seeds: list[int], *, on_progress: Any) -> list[Any]:
        trained.append(list(seeds))
        runs = [RunRecord(seed, protocol, optimal_units=1, unit=1.0) for seed in seeds]
        runs[0].evaluated(10_000, 1)
        on_progress(runs)
        raise KeyboardInterrupt

    monkeypatch.setattr(ppo, "train", interrupted)
    results = Results(tmp_path / "r")
    (task,) = experiment.tasks([load(tables / NAME)], "ppo", settings="rollout128", num_seeds=3)
    for expected in ([0, 1, 2], [1, 2], [2]):
        with pytest.raises(KeyboardInterrupt):
            experiment.run_task(task, results)
        assert trained[-1] == expected
    assert experiment.run_task(task, results) == []
    assert len(list(results.rows())) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo", "ppo", "--settings", "rollout64"], "no setting called 'rollout64'"),
        (["--algo", "dqn", "--seeds", "0"], "--seeds must be at least 1"),
        (["--algo", "dqn", "--steps", "-5"], "--steps must be at least 1"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str], message: str, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tables, tmp_path / "r", *arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_unknown_tables_and_directories(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "freeway_10_fs30", "--algo", "gorp", "--tables", str(tables)]) == 1
    assert "build it first" in capsys.readouterr().err
    assert main(["train", "freewy_10_fs30", "--algo", "gorp", "--tables", str(tables)]) == 2
    assert "freeway_10_fs30" in capsys.readouterr().err
    assert train(tables, tables, "--algo", "gorp") == 1
    assert "not a results directory" in capsys.readouterr().err
