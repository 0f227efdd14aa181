"""`efhorizon policy pretrain`: a good call, its JSON, curves, and bad calls in one line each."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from efhorizon.__main__ import main

pytest.importorskip("torch")
pytest.importorskip("procgen")

SMALL = ["--num-envs", "2", "--steps", "600", "--threads", "1"]  # two rollouts of 512 timesteps


def test_a_run_and_the_same_command_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["policy", "pretrain", "leaper", "--out", str(tmp_path), *SMALL]
    assert main([*command, "--json", "--tensorboard", str(tmp_path / "curves")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == str(tmp_path / "leaper.npz")
    assert Path(found["path"]).exists()
    assert Path(found["checkpoint"]).exists()
    assert (found["game"], found["levels"], found["steps"], found["steps_made"]) == ("leaper", [3, 502], 1024, 1024)
    assert (found["precision"], found["device"]) == ("float32", "cpu")
    assert (found["settings"]["frameskip"], found["settings"]["num_actions"]) == (6, 9)
    assert 0 < found["entropy"] <= math.log(9) + 1e-4
    assert list((tmp_path / "curves" / "leaper").glob("events.*"))
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "1,024 timesteps on easy levels 3 to 502, frameskip 6, float32" in printed
    assert "per second" not in printed  # nothing was done


def test_several_games_are_one_run_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--num-envs", "2", "--steps", "1", "--threads", "1"]
    assert main(["policy", "pretrain", "maze", "leaper", "--out", str(tmp_path), *small, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(run["game"], run["path"]) for run in runs] == [
        ("maze", str(tmp_path / "maze.npz")),
        ("leaper", str(tmp_path / "leaper.npz")),
    ]
    assert all(Path(run["checkpoint"]).exists() for run in runs)


def test_settings_are_taken_from_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.npz"
    command = ["policy", "pretrain", "maze", "--out", str(out), *SMALL, "--steps", "1", "--json"]
    more = "--levels 7 --first-level 40 --difficulty hard --frameskip 3 --entropy 0.02 --seed 9 --device cpu"
    assert main([*command, *more.split()]) == 0
    found = json.loads(capsys.readouterr().out)
    settings = found["settings"]
    assert (found["path"], found["levels"], settings["difficulty"]) == (str(out), [40, 46], "hard")
    assert (settings["frameskip"], settings["entropy_weight"], settings["seed"]) == (3, 0.02, 9)
    assert main([*command, *more.split(), "--seed", "10"]) == 1
    assert "a checkpoint of another run (seed 9, not 10)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["pong"], 2, "no game called 'pong'; their games: bigfish"),
        (["MiniGrid-Empty-5x5-v0"], 2, "no game called 'MiniGrid-Empty-5x5-v0'"),
        (["maze", "--steps", "0"], 2, "must be at least 1"),
        (["maze", "--first-level", "2"], 1, "contain BRIDGE's level 2 of maze"),
        (["maze", "leaper"], 2, "--out is a folder where there are several games"),
        (["maze", "--engine", "ray", "--tensorboard", "t"], 2, "--tensorboard does not go with --engine ray"),
        (["maze", "--address", "auto"], 2, "--address and --owners go with --engine ray"),
        (["maze", "--entropy", "-0.1"], 1, "entropy -0.1"),
        (["maze", "--device", "toaster"], 1, "cannot use the device 'toaster'"),
        (["maze", "--out", "/dev/null/x"], 1, "cannot be written"),
    ],
)
def test_bad_calls(
    arguments: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(["policy", "pretrain", "--out", str(tmp_path / "a.npz"), *arguments])
    except SystemExit as exit_:
        found = int(exit_.code or 0)
    error = capsys.readouterr().err
    assert (found, len(error.splitlines())) == (code, 1)
    assert message in error
    assert not list(tmp_path.iterdir())
