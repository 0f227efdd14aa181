"""`efhorizon evaluate`: tables for people, JSON for programs, one line for errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from evaluation_data import analysis, published_file, results_directory, row

from efhorizon.commands import main


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["evaluate", *map(str, arguments), "--resamples", "100"])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_tables_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = evaluate(capsys, published_file(tmp_path / "summary.csv"))
    assert (code, err) == (0, "")
    assert "6 MDPs; PPO solved 4 of 6 (paper: 95 of 155), DQN solved 3 of 6 (paper: 117 of 155)" in out
    lines = out.splitlines()
    (line, interval), *_ = (
        (lines[at], lines[at + 1]) for at, text in enumerate(lines) if text.startswith("effective horizon, GORP")
    )
    assert line.split()[-9:] == ["0.80", "(0.81)", "5.5", "(31)", "0.75", "(0.92)", "0.83", "(0.86)", "0.79"]
    assert interval.count(" to ") == 5
    assert "without its 3 infinite" in out
    assert "no correlation: all predictions are equal" in out
    assert "Table 1" in out
    assert "k = 1: 4 (3 solved by PPO), k = 2: 1 (1 solved by PPO), k = 3: 1 (0 solved by PPO)" in out
    assert "MDPs: returns" in out
    assert "Table 3" not in out  # nothing is shaped


def test_json_is_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = evaluate(capsys, published_file(tmp_path / "summary.csv"), "--json", "--seed", 7)
    content = json.loads(out)
    assert code == 0
    assert (content["seed"], content["num_resamples"], content["exported"]) == (7, 100, [])
    assert [table["algorithm"] for table in content["bounds"]] == ["ppo", "dqn"]
    assert {"solvability", "min_k", "shaping", "exploration", "properties", "complexities", "returns"} <= set(content)


def test_a_study_of_one_mdp_and_its_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = row("a[bold]", protocol={"max_steps": 200_000})
    path = results_directory(tmp_path / "results", [analysis("a[bold]")], [short, row("unknown")])
    code, out, _ = evaluate(capsys, path)
    assert code == 0
    assert "a[bold]" in out  # a name is never taken for a style
    assert "no intervals: 1 family is too few to resample" in out
    assert "no correlation: fewer than two MDPs were solved" in out
    assert "PPO: runs had 200,000 timesteps (the paper's: 5,000,000)" in out
    assert "1 row of MDPs (or of starts) without a complete analysis: left out" in out


def test_a_long_list_is_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "m{},atari,base,10,10,100,0,0.5,1,0.01,1.0,1.0,1,0.001,0.01,1.0,2.0,1,1,1,1000,10000,1000,1"
    path = published_file(tmp_path / "summary.csv", tuple(line.format(i) for i in range(61)))
    _, out, _ = evaluate(capsys, path)
    assert "The lists of 61 MDPs (Appendix G) are in --json and in --export's summary.csv." in out


def test_export_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    path = published_file(tmp_path / "published.csv")
    code, out, err = evaluate(capsys, path, "--export", tmp_path / "export", "--json")
    assert code == 0
    files = ["mdps.parquet", "runs.parquet", "summary.csv", "checksums.txt"]
    assert [Path(file).name for file in json.loads(out)["exported"]] == files
    assert err.count("wrote ") == 4
    code, again, _ = evaluate(capsys, tmp_path / "export", "--json")
    assert code == 0
    assert json.loads(again)["bounds"] == json.loads(out)["bounds"]


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = published_file(tmp_path / "summary.csv")
    empty = results_directory(tmp_path / "results", [], [row("a")])
    for arguments, expected, message in (
        ((tmp_path / "nowhere",), 1, "no such file or directory"),
        ((path, "--seed", "-1"), 2, "--seed: must be at least 0, such as 4; got -1"),
        ((empty,), 1, "nothing to evaluate, no complete analysis (efhorizon study makes them); 1 row of MDPs"),
    ):
        code, out, err = evaluate(capsys, *arguments)
        assert (code, out) == (expected, "")
        assert message in err
        assert err.count("\n") == 1
    assert main(["evaluate", str(path), "--resamples", "0"]) == 2
    assert "--resamples: must be at least 1, such as 5; got 0" in capsys.readouterr().err


def test_json_has_both_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = published_file(tmp_path / "summary.csv")
    assert main(["evaluate", str(given), "--resamples", "5", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["rule"], content["by_papers_rule"]["rule"]) == ("learnt", "paper")
    assert content["bounds"][0]["num_families"] == 6
    assert content["bounds"][0]["leaders"]["correlation"]
    assert all("p_value_all" in test for test in content["bounds"][0]["tests"])
