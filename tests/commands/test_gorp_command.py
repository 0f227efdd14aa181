"""`efhorizon gorp`: what it prints for people and programs, and one clear line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon import TabularMDP
from efhorizon.bounds import examples
from efhorizon.commands import main
from efhorizon.io.tables import load, save
from efhorizon.planning.optimal import optimal_plan

KEYS = {"id", "k", "m", "runs", "success_rate", "sample_complexity", "m_low", "m_high", "seed", "learning_curve"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two tables, of which one is unfinished."""
    monkeypatch.chdir(tmp_path)
    save(examples.sparse_rewards(4), tmp_path / "tables" / "sparse")
    part = TabularMDP([[0, 1], [-1, -1]], np.zeros((2, 2)), 3, unexplored=[False, True])
    save(part, tmp_path / "tables" / "part")
    return tmp_path


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main(["gorp", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def failed(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 1) -> str:
    assert main(["gorp", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_search(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    found = run_json(capsys, "sparse")
    assert set(found) >= KEYS
    assert (found["id"], found["k"], found["runs"]) == ("sparse_rewards_T4_A2", 1, 101)
    assert found["m_low"] <= found["m"] <= found["m_high"]
    assert found["sample_complexity"] == 4**2 * 2 * found["m"]
    assert found["success_rate"] >= 0.5
    assert found["learning_curve"]["timesteps"][-1] == found["sample_complexity"]
    assert found["learning_curve"]["mean_return"][-1] == pytest.approx(found["mean_return"])
    assert found["learning_curve"]["median_return"][-1] == found["optimal_return"]
    again = run_json(capsys, folder / "tables" / "sparse", "--seed", 0)
    assert {key: again[key] for key in KEYS} == {key: found[key] for key in KEYS}


def test_an_exploration_policy(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """One that knows the way needs one episode a sequence; one that never takes it learns nothing."""
    mdp = load(folder / "tables" / "sparse")
    uniform = run_json(capsys, "sparse")
    plan = optimal_plan(mdp)
    knowing = np.zeros((mdp.horizon, mdp.num_states, mdp.num_actions))
    for time in range(mdp.horizon):
        knowing[time, range(mdp.num_states), [plan.action(time, state) for state in range(mdp.num_states)]] = 1
    np.save(folder / "knowing.npy", knowing)
    found = run_json(capsys, "sparse", "--exploration-policy", "knowing.npy")
    assert (found["m"], found["success_rate"], found["exploration_policy"]) == (1, 1.0, "knowing.npy")
    assert found["learning_curve"]["percentile_10"] == [found["optimal_return"]] * 5
    assert uniform["m"] > 1
    np.save(folder / "equal.npy", np.full((mdp.num_states, mdp.num_actions), 1 / mdp.num_actions))
    same = run_json(capsys, "sparse", "--exploration-policy", "equal.npy")
    assert {key: same[key] for key in KEYS} == {key: uniform[key] for key in KEYS}
    np.save(folder / "shape.npy", np.ones((2, 3)) / 3)
    assert "has shape (2, 3); this table needs" in failed(capsys, "sparse", "--exploration-policy", "shape.npy")
    np.save(folder / "sum.npy", knowing * 0.9)
    message = failed(capsys, "sparse", "--exploration-policy", "sum.npy")
    assert "in state 0 at time 0 sum to 0.9, not 1" in message
    (folder / "text.npy").write_text("no numbers")
    assert "text.npy: not an array" in failed(capsys, "sparse", "--exploration-policy", "text.npy")
    live = ("MiniGrid-Empty-5x5-v0", "--live", "--m", 1, "--exploration-policy", "equal.npy")
    assert "does not go with --live" in failed(capsys, *live, code=2)


def test_one_m(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "sparse", "--k", 2, "--m", 3, "--runs", 500)
    assert (found["k"], found["m"], found["runs"], found["m_low"], found["m_high"]) == (2, 3, 500, None, None)
    assert found["sample_complexity"] == (4**2 * 2**2 * 3 if found["success_rate"] >= 0.5 else None)
    short = run_json(capsys, "sparse", "--m", 1, "--horizon", 2)
    assert (short["horizon"], short["success_rate"]) == (2, 1.0)  # within two steps nothing is paid


def test_ties_and_the_exact_success_beside(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """A lock of four right actions of two; in `last` the right one is the last."""
    mdp = load(folder / "tables" / "sparse")
    save(TabularMDP(mdp.transitions[:, ::-1], mdp.rewards[:, ::-1], mdp.horizon), folder / "tables" / "last")
    arguments = ("--m", 4, "--runs", 4001, "--ties")
    for name in ("sparse", "last"):
        for ties in ("uniform", "lowest", "adversarial"):
            found = run_json(capsys, name, *arguments, ties)
            assert found["ties"] == ties
            assert found["success_rate"] == pytest.approx(found["exact_success"], abs=0.04)
    asked = (("sparse", "lowest"), ("last", "lowest"), ("last", "adversarial"))
    first, last, worst = (run_json(capsys, name, *arguments, ties)["exact_success"] for name, ties in asked)
    assert first == pytest.approx(1.0)
    assert last == pytest.approx(worst)
    assert worst < 0.9
    assert run_json(capsys, "last", "--m", 4)["exact_success"] is None
    assert run_json(capsys, "last", "--ties", "lowest")["m"] > run_json(capsys, "last")["m"]
    assert main(["gorp", "last", "--m", "4", "--ties", "lowest"]) == 0
    shown = capsys.readouterr().out
    assert "GORP, k = 1, m = 4, lowest ties: " in shown
    assert f"exactly: with probability {last:.4f}" in shown
    message = failed(capsys, "MiniGrid-Empty-5x5-v0", "--live", "--m", 1, "--ties", "adversarial", code=2)
    assert "--ties adversarial needs a table" in message


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gorp", "sparse"]) == 0
    shown = capsys.readouterr().out
    assert "sample complexity" in shown
    assert "95% confidence" in shown
    assert main(["gorp", "sparse", "--m", "1", "--runs", "10"]) == 0
    assert "10 runs return an optimal policy" in capsys.readouterr().out
    assert main(["gorp", "sparse", "--budget", "40"]) == 0
    shown = capsys.readouterr().out
    assert "no m up to 1 succeeds half the time" in shown
    assert "mean return" in shown


def test_live(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    pytest.importorskip("minigrid")
    arguments = ("MiniGrid-Empty-5x5-v0", "--live", "--m", 1, "--horizon", 8, "--runs", 2, "--checkpoints", "saved")
    found = run_json(capsys, *arguments)
    assert set(found) >= KEYS - {"learning_curve"}
    assert (found["id"], found["runs"], found["complete"]) == ("MiniGrid-Empty-5x5-v0-T8", 2, True)
    assert found["timesteps"] == [8**2 * 3] * 2
    assert len(list((folder / "saved").iterdir())) == 2
    assert run_json(capsys, *arguments) == found  # resumed from the end
    assert run_json(capsys, *arguments, "--ties", "lowest")["ties"] == "lowest"
    assert len(list((folder / "saved").iterdir())) == 4
    assert main(["gorp", "MiniGrid-Empty-5x5-v0", "--live", "--m", "1", "--horizon", "8", "--max-steps", "1"]) == 3
    assert "--max-steps ended it" in capsys.readouterr().out


def test_live_with_arguments_and_wrappers(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "costs.py").write_text(
        "import gymnasium\n\n\nclass Cost(gymnasium.RewardWrapper):\n"
        "    def reward(self, reward):\n        return reward - 0.5\n"
    )
    plain = ("FrozenLake-v1", "--live", "--env-arg", "is_slippery=False", "--m", 1, "--horizon", 6)
    costly = (*plain, "--wrapper", "costs.py:Cost")
    found, checkpoints = run_json(capsys, *plain), ("--checkpoints", "saved")
    assert found["id"] == "FrozenLake-v1-is_slippery=False"
    assert found["num_actions"] == 4
    paid = [run_json(capsys, *given, *checkpoints) for given in (plain, costly)]  # two environments, two checkpoints
    assert paid[0] == found
    assert paid[1]["returns"] == [-0.5 * paid[1]["lengths"][0]]  # nothing was reached within 6 steps
    assert "--env-arg goes with --live" in failed(capsys, "sparse", "--env-arg", "size=3", code=2)
    assert "--wrapper goes with --live" in failed(capsys, "sparse", "--wrapper", "costs.py:Cost", code=2)


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--k: must be at least 1, such as 5; got 0" in failed(capsys, "sparse", "--k", 0, code=2)
    assert "k must be at most the horizon 4, got 5" in failed(capsys, "sparse", "--k", 5)
    assert "--m: must be at least 1, such as 5; got -3" in failed(capsys, "sparse", "--m", -3, code=2)
    assert "--runs: must be at least 1, such as 5; got 0" in failed(capsys, "sparse", "--runs", 0, code=2)
    assert "--seed: must be at least 0, such as 4; got -1" in failed(capsys, "sparse", "--seed", -1, code=2)
    assert "more than the budget of 5" in failed(capsys, "sparse", "--budget", 5)
    assert "the table is unfinished" in failed(capsys, "part")
    assert "no such table, and none of that name in tables/" in failed(capsys, "nothing")
    assert "--live needs --m" in failed(capsys, "sparse", "--live", code=2)
    assert "goes with --live" in failed(capsys, "sparse", "--max-steps", 5, code=2)
    assert "neither in the catalogue" in failed(capsys, "sparse", "--live", "--m", 1)
