"""The command line as people and programs use it: in a process of its own, through its streams and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon import load

KEY_CORRIDOR = "a1defee7a61868865504e1664121e2fb634537e2e998b01ede11ec4a8877a59d"  # of the published table


def run(*arguments: object, cwd: Path, ok: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "efhorizon", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert result.returncode == ok, result.stderr
    assert "Traceback" not in result.stderr
    return result


def run_json(*arguments: object, cwd: Path, ok: int = 0) -> Any:
    return json.loads(run(*arguments, "--json", cwd=cwd, ok=ok).stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the smallest published gridworld was built."""
    path = tmp_path_factory.mktemp("cli")
    run("build", "MiniGrid-KeyCorridorS3R1-v0", "--workers", 1, cwd=path)
    return path


def test_list(tmp_path: Path) -> None:
    everything = run_json("list", cwd=tmp_path)
    assert {row["suite"] for row in everything} == {"atari", "procgen", "minigrid"}
    gridworlds = run_json("list", "--suite", "minigrid", cwd=tmp_path)
    assert len(gridworlds) < len(everything)
    assert {"id", "suite", "game", "horizon", "frameskip", "num_actions", "reward_factor", "unshaped"} <= set(
        gridworlds[0]
    )
    assert "freeway_T_fs30" in run("list", cwd=tmp_path).stdout


def test_build_reports_every_promised_key(folder: Path) -> None:
    built = run_json("build", "MiniGrid-KeyCorridorS3R1-v0", "--workers", 1, cwd=folder)
    assert built["id"] == "MiniGrid-KeyCorridorS3R1-v0"
    assert (built["num_states_raw"], built["num_states"], built["num_screens"]) == (168, 168, 156)
    assert (built["num_actions"], built["horizon"], built["degenerate"]) == (6, 100, False)
    assert (built["fingerprint"], built["verified"]) == (KEY_CORRIDOR, True)
    assert built["num_pairs_emulated"] == 0  # the fixture had built it
    assert {"pairs_per_second", "seconds", "path"} <= set(built)
    assert load(folder / built["path"]).fingerprint() == KEY_CORRIDOR


def test_build_variants(folder: Path) -> None:
    name = "MiniGrid-KeyCorridorS3R1-v0"
    coarsest = run_json("build", name, "--merge", "coarsest", "--workers", 1, cwd=folder)
    assert (coarsest["num_states"], coarsest["num_pairs_emulated"]) == (156, 0)
    ignored = run_json("build", name, "--ignore-screens", "--workers", 1, cwd=folder)
    assert (ignored["num_states"], ignored["verified"]) == (168, True)
    short = run_json("build", name, "--horizon", 5, "--workers", 1, cwd=folder)
    assert (short["horizon"], short["degenerate"], short["num_pairs_emulated"]) == (5, True, 0)
    assert run_json("verify", short["path"], cwd=folder)["verified"]
    assert len({coarsest["path"], ignored["path"], short["path"]}) == 3


def test_show(folder: Path) -> None:
    path = folder / "tables" / "MiniGrid-KeyCorridorS3R1-v0"
    before = set(folder.iterdir())
    shown = run_json("show", path, cwd=folder)
    assert shown["rewards"] == {"0": 1004, "1": 4}
    assert sum(shown["layer_sizes"]) == 168
    assert (shown["worst_return"], shown["optimal_return"], shown["degenerate"]) == (0, 1, False)
    assert shown["image"] is None
    assert set(folder.iterdir()) == before  # no picture unless it is asked for
    assert run_json("show", path, "--image", "x.png", cwd=folder)["image"] == "x.png"
    assert (folder / "x.png").read_bytes().startswith(b"\x89PNG")
    text = run("show", path.name, "--image", "y.png", cwd=folder).stdout
    assert "verified     exact, all 1,008 pairs of 168 states replayed with screens" in text
    assert "start screen saved as y.png" in text


def test_a_picture_that_fails_does_not_cost_the_result(folder: Path, tmp_path: Path) -> None:
    name = "MiniGrid-KeyCorridorS3R1-v0"
    for verb, said in (("show", "fingerprint"), ("analyze", "Effective horizon")):
        shown = run(verb, name, "--image", "nowhere/x.png", cwd=folder, ok=1)
        assert said in shown.stdout
        assert shown.stderr.splitlines()[-1] == "efhorizon: nowhere/x.png: not written, No such file or directory"
        assert run_json(verb, name, "--image", "nowhere/x.png", cwd=folder, ok=1)["image"] is None
    run("export", name, tmp_path / "blind.npz", "--no-screens", cwd=folder)
    blind = run("show", tmp_path / "blind.npz", "--image", "x.png", cwd=tmp_path, ok=1)
    assert blind.stderr == "efhorizon: x.png: not written, this table has no screens\n"
    assert "168 states" in blind.stdout
    refused = run("analyze", name, name, "--image", "x.png", cwd=folder, ok=2)
    assert refused.stderr == "efhorizon: --image goes with one table\n"


def test_a_folder_that_cannot_be_written_costs_no_result(folder: Path) -> None:
    """/proc takes no file, not even from root."""
    path = folder / "tables" / "MiniGrid-KeyCorridorS3R1-v0"
    for verb in ("show", "analyze", "verify", "gorp"):
        assert run_json(verb, path, cwd=Path("/proc"))["path"] == str(path)
    pictured = run("analyze", path, "--image", "x.png", "--json", cwd=Path("/proc"), ok=1)
    assert json.loads(pictured.stdout)["image"] is None
    kept, failed = pictured.stderr.splitlines()
    assert kept.startswith("not kept in results: ")
    assert failed.startswith("efhorizon: x.png: not written, ")


def test_verify_and_export(folder: Path) -> None:
    path = folder / "tables" / "MiniGrid-KeyCorridorS3R1-v0"
    report = run_json("verify", path, "--episodes", 8, cwd=folder)
    assert (report["verified"], report["episodes"], report["difference"]) == (True, 8, None)
    assert (report["exact"], report["pairs"], report["pairs_replayed"], report["raw_states"]) == (True, 1008, 1008, 168)
    text = run("verify", path, "--pairs", 100, cwd=folder).stdout
    assert "no difference in" in text
    assert "exact" not in text
    assert "if one in a thousand were wrong, the chance to miss them all is 90%" in text
    run("export", path, "key.npz", cwd=folder)
    with np.load(folder / "key.npz", allow_pickle=False) as file:
        assert {name: (file[name].dtype.name, file[name].shape[0]) for name in file.files} == {
            "transitions": ("int64", 168),
            "rewards": ("float32", 168),
            "screens": ("uint8", 156),
            "screen_mapping": ("int64", 168),
            "states": ("uint8", 168),
            "state_lengths": ("uint64", 168),
        }
        assert file["screens"].shape == (156, 96, 224, 3)  # pictures, as published
    assert load(folder / "key.npz").fingerprint() == KEY_CORRIDOR
    pictured = run_json("verify", "key.npz", cwd=folder)
    assert (pictured["screens_compared"], pictured["exact"]) == (True, True)
    run("export", path, "small.npz", "--no-states", "--no-screens", cwd=folder)
    with np.load(folder / "small.npz") as file:
        assert sorted(file.files) == ["rewards", "transitions"]


def test_verify_finds_a_planted_error(folder: Path, tmp_path: Path) -> None:
    run("export", folder / "tables" / "MiniGrid-KeyCorridorS3R1-v0", tmp_path / "x.npz", cwd=folder)
    with np.load(tmp_path / "x.npz") as file:
        content = dict(file)
    content["rewards"][content["rewards"] == 1] = 2
    np.savez_compressed(tmp_path / "wrong.npz", **content)
    run("verify", "wrong.npz", cwd=tmp_path, ok=1)  # it has lost its horizon
    (tmp_path / "MiniGrid-KeyCorridorS3R1-v0").mkdir()
    (tmp_path / "wrong.npz").rename(tmp_path / "MiniGrid-KeyCorridorS3R1-v0" / "wrong.npz")
    report = run_json("verify", "MiniGrid-KeyCorridorS3R1-v0/wrong.npz", cwd=tmp_path, ok=1)
    assert report["verified"] is False
    assert (report["difference"]["what"], report["difference"]["found"]) == ("reward", "1")
    assert len(report["difference"]["actions"]) > 10


def test_gymnasium_environments(tmp_path: Path) -> None:
    lake = run_json("build", "--env", "FrozenLake-v1", "--env-arg", "is_slippery=false", "--workers", 1, cwd=tmp_path)
    assert (lake["num_states"], lake["num_actions"], lake["horizon"], lake["verified"]) == (11, 4, 100, True)
    assert run_json("verify", lake["path"], cwd=tmp_path)["verified"]
    slippery = run("build", "--env", "FrozenLake-v1", cwd=tmp_path).stdout  # its probabilities are known
    assert "126 outcomes, horizon 100" in slippery
    assert "add --fixed-noise" in run("build", "--env", "Blackjack-v1", "--horizon", 5, cwd=tmp_path, ok=1).stderr


def test_budgets_and_partial_tables(tmp_path: Path) -> None:
    name = "MiniGrid-DoorKey-6x6-v0"
    stopped = run_json("build", name, "--max-states", 50, "--workers", 1, cwd=tmp_path, ok=3)
    assert (stopped["complete"], stopped["path"]) == (False, None)
    assert stopped["num_states_raw"] >= 50
    partial = run("build", name, "--max-states", 50, "--keep-partial", "--workers", 1, cwd=tmp_path, ok=3)
    assert "complete up to horizon" in partial.stdout
    unfinished = run_json("build", name, "--max-states", 50, "--keep-unfinished", "--workers", 1, cwd=tmp_path, ok=3)
    table = load(tmp_path / unfinished["path"])
    assert table.unexplored is not None
    assert 0 < table.unexplored.sum() < table.num_states
    assert unfinished["verified"]
    assert unfinished["verification"]["exact"]  # as far as it goes
    assert unfinished["verification"]["states"] == table.num_states - table.unexplored.sum()
    assert run_json("verify", unfinished["path"], cwd=tmp_path)["verified"]
    whole = run_json("build", name, "--workers", 1, cwd=tmp_path)
    assert whole["complete"]
    assert 0 < whole["num_pairs_emulated"] < 6 * whole["num_states_raw"]  # it went on


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["build", "freway_10_fs30"], 2, "closest: freeway_10_fs30"),
        (["build", "nonsense"], 2, "closest:"),
        (["build"], 2, "either a NAME or --env"),
        (["build", "freeway_10_fs30", "--env", "Taxi-v4"], 2, "either a NAME or --env"),
        (["build", "--env", "Nope-v3"], 1, "Nope"),
        (["build", "--env", "Pendulum-v1"], 1, "Discrete"),
        (["build", "--env", "CliffWalking-v1"], 1, "as with --horizon 50"),
        (["build", "--env", "FrozenLake-v1", "--env-arg", "oops"], 2, "KEY=VALUE"),
        (["build", "freeway_10_fs30", "--env-arg", "a=1"], 2, "--env-arg goes with --env"),
        (["build", "freeway_10_fs30", "--horizon", "0"], 2, "at least 1"),
        (["build", "freeway_10_fs30", "--workers", "0"], 2, "at least 1"),
        (["build", "freeway_10_fs30", "--max-minutes", "soon"], 2, "write it as 90 (minutes), 1h30m or 45s"),
        (["build", "freeway_10_fs30", "--max-memory", "lots"], 2, "not a size"),
        (["verify", "nothing"], 1, "no such table"),
        (["verify", "nothing.npz"], 1, "no such table, and none of that name in tables/"),
        (["verify", "nothing", "--episodes", "0"], 2, "--episodes: must be at least 1"),
        (["show", "."], 1, "not an efhorizon table"),
        (["export", "nothing", "x.txt"], 2, "does not end in .npz"),
        (["serve", "nothing", "--port", "70000"], 2, "--port: must be between 0 and 65535, such as 8000; got 70000"),
        (["completion", "cmd"], 2, "invalid choice: 'cmd'"),
        (["nonsense"], 2, "invalid choice: 'nonsense'"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    errors = run(*arguments, cwd=tmp_path, ok=code).stderr
    assert message in errors
    assert errors.startswith("efhorizon: ")
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_device_in_a_search_is_one_line_and_loses_nothing(folder: Path) -> None:
    name, search = "MiniGrid-Empty-5x5-v0", folder / "tables" / "searches"
    run("build", name, "--max-states", 5, "--workers", 1, cwd=folder, ok=3)
    (victim,) = search.glob(f"{name}-*")
    kept = (victim / "transitions").read_bytes()
    (victim / "transitions").rename(victim / "kept")
    (victim / "transitions").symlink_to("/dev/full")
    errors = run("build", name, "--workers", 1, cwd=folder, ok=1).stderr
    assert errors.splitlines()[-1].startswith("efhorizon: tables/searches/")
    assert "transitions: not a regular file; the search is damaged: delete tables/searches/" in errors
    assert "Traceback" not in errors
    (victim / "transitions").unlink()
    (victim / "kept").rename(victim / "transitions")
    assert (victim / "transitions").read_bytes() == kept
    assert run_json("build", name, "--workers", 1, cwd=folder)["verified"]
