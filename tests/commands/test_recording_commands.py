"""`efhorizon policy record` and `efhorizon policy clone`: good calls, bad ones, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recorded_play import ROWS, write

from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.commands import main
from efhorizon.policies import networks
from efhorizon.policies.recordings import read_recording

NAME = "MiniGrid-Empty-5x5-v0"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("minigrid")
    folder = tmp_path_factory.mktemp("tables")
    build(catalogue_target(NAME), Options(out=folder, num_workers=1, verify_episodes=0))
    return folder


class Forward:
    """A network that walks on, whatever it sees."""

    num_actions = 3

    def __call__(self, observations: np.ndarray, /) -> np.ndarray:
        return np.tile([0.0, 0.0, 1.0], (len(observations), 1))


def test_record(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["policy", "record", NAME, "--optimal", "--tables", str(tables), "--out", str(tmp_path)]
    assert main([*arguments, "--episodes", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    path = tmp_path / f"{NAME}_optimal_0.txt"
    assert found == {
        "environment": NAME,
        "recording": str(path),
        "frames": 10,
        "steps": 10,
        "returns": [1.0, 1.0],
        "optimal_return": 1.0,
        "optimal_episodes": 2,
    }
    assert len(read_recording(path).labels) == 10
    before = path.read_bytes()
    assert main([*arguments, "--noise", "0.5", "--seed", "3"]) == 0
    assert f"written to {tmp_path}/{NAME}_optimal_noise0.5_3.txt" in capsys.readouterr().out
    assert main(arguments) == 1  # nothing is overwritten
    assert "already there" in one_line(capsys)
    assert path.read_bytes() == before


def test_record_a_network(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(networks, "load_network", lambda path: asked.append(path) or Forward(), raising=False)
    arguments = ["policy", "record", NAME, "--network", "f.npz", "--out", str(tmp_path), "--episodes", "1", "--json"]
    assert main([*arguments, "--tables", str(tables), "--greedy"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert asked == [Path("f.npz")]
    assert (found["returns"], found["steps"], found["optimal_episodes"]) == ([0.0], 100, 0)
    assert main([*arguments, "--tables", str(tmp_path), "--stem", "x"]) == 0  # without a table
    found = json.loads(capsys.readouterr().out)
    assert (found["recording"], found["optimal_return"]) == (str(tmp_path / "x.txt"), None)


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["no_such_game", "--optimal"], 2, "no environment is called 'no_such_game'"),
        ([NAME, "--optimal", "--tables", "nowhere"], 1, "build it first"),
        ([NAME, "--keyboard", "--noise", "0.5"], 2, "--noise is for --optimal"),
        ([NAME, "--optimal", "--greedy"], 2, "--greedy is for --network"),
        ([NAME, "--optimal", "--stem", "../x"], 2, "--stem must be"),
    ],
)
def test_record_refuses(
    arguments: list[str], code: int, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "record", *arguments, "--out", str(tmp_path / "r")]) == code
    assert reason in one_line(capsys)
    assert not (tmp_path / "r").exists()


def test_clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ale_py")
    pytest.importorskip("torch")
    labels = write(tmp_path / "r", [*ROWS, "XY_12_5,null,null,50,0,10,null"])
    out = tmp_path / "f.npz"
    arguments = ["policy", "clone", "freeway", str(labels), "--out", str(out), "--batches", "3", "--batch-size", "20"]
    assert main([*arguments, "--frameskip", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["environment"] == "freeway"
    counted = {name: found[name] for name in ("recordings", "frames", "rows", "unlabelled_rows", "episodes", "steps")}
    assert list(counted.values()) == [1, 5, 5, 1, 1, 3]
    assert (found["replaced_actions"], found["frameskip"], found["held_out"]) == ({"UPFIRE": 1}, 2, None)
    assert found["training"]["labels"] == 4
    first = out.read_bytes()
    assert main([*arguments, "--frameskip", "2"]) == 0
    printed = capsys.readouterr().out
    for text in ("1 recording: 5 frames, 5 rows", "1 row without an action", "UPFIRE 1", "held out  nothing"):
        assert text in printed
    assert out.read_bytes() == first
    assert main([*arguments, "--seed", "1"]) == 0
    assert out.read_bytes() != first
    assert "1 step of 30 frames" in capsys.readouterr().out


def test_clone_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ale_py")
    good, out = str(write(tmp_path / "r")), tmp_path / "f.npz"
    out.write_bytes(b"precious")
    empty = tmp_path / "empty"
    empty.mkdir()
    far = write(tmp_path / "far", ["XY_12_1,null,null,50,0,18,null"])
    for arguments, code, reason in [
        (["freeway", good, "--out", "f.zip"], 2, "--out must end in .npz"),
        (["freeway", good, "--out", str(out), "--rate", "0"], 2, "--rate must be above 0"),
        (["no_such_game", good, "--out", str(out)], 2, "no environment is called"),
        (["freeway", str(tmp_path / "x.txt"), "--out", str(out)], 1, f"{tmp_path / 'x.txt'}: cannot be read"),
        (["freeway", str(empty), "--out", str(out)], 1, f"{empty}: no recording"),
        (["freeway", str(far), "--out", str(out)], 1, f"{far}: action 18 of frame 'XY_12_1' is out of range"),
        ([NAME, good, "--out", str(out)], 1, "agents do not see pictures"),
    ]:
        assert main(["policy", "clone", *arguments]) == code
        assert reason in one_line(capsys)
    assert out.read_bytes() == b"precious"


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.strip().splitlines()
    return line
