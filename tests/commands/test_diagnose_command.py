"""`efhorizon diagnose` on the command line, and its page in a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from efhorizon.__main__ import main

ENV = "MiniGrid-LavaGapS5-v0"


def diagnose(*arguments: object) -> int:
    return main(["diagnose", *map(str, arguments)])


def test_json_text_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, site = tmp_path / "results", tmp_path / "site"
    arguments = (ENV, "--max-steps", "60k", "--workers", "1", "--results", results)
    assert diagnose(*arguments, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["by_k"]) == {"1", "2", "3"}
    for each in content["by_k"].values():
        assert set(each["m"]) == set(each["effective_horizon"]) == {"low", "estimate", "high"}
    assert {"greedy_return", "best_return", "steps_played", "forecast", "random_play"} <= content.keys()
    assert diagnose(*arguments) == 0  # from its log
    shown = capsys.readouterr().out
    assert "Effective horizon" in shown
    assert "What this assumes" in shown
    assert main(["report", str(results), "--out", str(site), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_mdps"] == 1
    (page,) = (site / "diagnoses").glob("*.html")
    text = page.read_text()
    assert ENV in text
    assert "What to try" in text
    assert "-film.png" in text
    assert (site / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("MiniGrid-Emty-5x5-v0",), "MiniGrid-Empty-5x5-v0"),
        ((), "give either an ENV or --env ID"),
        (("CartPole-v1", "--max-k", "9"), "at most 3"),
        (("Pendulum-v1",), "Discrete"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    try:
        code = diagnose(*arguments, "--results", tmp_path)
    except SystemExit as error:
        code = int(error.code or 0)
    assert code in (1, 2)
    assert message in capsys.readouterr().err


def test_a_damaged_diagnosis_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    diagnose(ENV, "--max-steps", "20k", "--max-k", "1", "--workers", "1", "--results", results)
    (results / "diagnoses" / "other.json").write_text('{"format": "efhorizon-diagnosis", "format_version": 1}')
    capsys.readouterr()
    assert main(["report", str(results), "--out", str(tmp_path / "site")]) == 0
    assert "diagnosis left out" in capsys.readouterr().err
