"""`efhorizon train --live`: rows of environments, continued with more timesteps, and Figure 4 of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from efhorizon.commands import main
from efhorizon.study.live_runs import LiveResults

LOCK = ["FrozenLake-v1", "--live", "--env-arg", "is_slippery=False", "--horizon", "20"]


def test_gorp_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["train", *LOCK, "--algo", "gorp", "--m", "5", "--seeds", "2", "--threads", "1", "--results", str(tmp_path)]
    assert main([*run, "--steps", "100", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["mode"], first["backend"], first["rows"]) == ("live", "live", 2)
    assert first["environments"][0]["id"] == "FrozenLake-v1-is_slippery=False-T20"
    assert main([*run, "--steps", "10M"]) == 0
    assert "2 rows in" in capsys.readouterr().out
    rows = LiveResults(tmp_path).rows()
    assert [row.backend for row in rows] == ["live", "live"]
    assert all(row.is_complete and row.steps > first["environments"][0]["steps"] for row in rows)
    assert main(["evaluate", str(tmp_path), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["live"]
    assert figures[0]["curves"][0]["seeds"] == 2
    assert main(["evaluate", str(tmp_path), "--publish", str(tmp_path / "page")]) == 0
    assert "Figure 4" in (tmp_path / "page" / "full-length.md").read_text()
    assert main([*run, "--steps", "10M"]) == 0  # nothing is left to do


def test_ppo_and_dqn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    for algorithm in ("ppo", "dqn"):
        run = ["train", "CartPole-v1", "--live", "--algo", algorithm, "--seeds", "1", "--results", str(tmp_path)]
        assert main([*run, "--steps", "600", "--evaluate-every", "300", "--threads", "1", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["environments"][0]
        assert found["steps"] >= 600
        assert found["final_return"] >= 8
    left = sorted(path.suffix for path in (tmp_path / "live").iterdir())
    assert left == [".json", ".json", ".lock", ".lock", ".npz"]  # DQN's frames are gone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense", "--live", "--algo", "ppo"], "nonsense: neither in the catalogue nor"),
        (["CartPole-v1", "--live", "--algo", "gorp"], "needs --m"),
        (["CartPole-v1", "--live", "--algo", "ppo", "--settings", "x"], "no live setting called 'x'"),
        (["CartPole-v1", "--live", "--algo", "ppo", "--tensorboard", "x"], "does not go with --live"),
        (["CartPole-v1", "--live", "--algo", "ppo", "--device", "abacus"], "abacus"),
        (["CartPole-v1", "--algo", "ppo", "--m", "3"], "--m goes with --live"),
    ],
)
def test_refusals(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *arguments, "--results", str(tmp_path / "r"), "--steps", "100"]) != 0
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
