"""The commands on tables with chance, as a user calls them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon.commands._main import main
from efhorizon.errors import StoreError
from efhorizon.io.tables import load as load_deterministic
from efhorizon.io.tables import save
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.mdp import from_deterministic
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sources.random_start import random_start
from efhorizon.stochastic.sticky import sticky
from efhorizon.stochastic.store import is_stochastic, load
from efhorizon.stochastic.store import save as save_stochastic

FIELDS = (
    *("num_states", "min_k", "epw", "optimal_return", "random_return", "worst_return", "greedy_returns"),
    "effective_horizon",
)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main([str(argument) for argument in arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    steps = [[0, state + 1] for state in range(3)] + [[0, -1]]
    return save(TabularMDP(steps, [[0, 0]] * 3 + [[0, 1]], horizon=8), tmp_path / "lock.npz")


def test_analyze_sticky(lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "analyze", lock, "--horizon", 8, "--sticky", 0.25, "--json")
    assert all(found[name] is not None for name in FIELDS)
    assert found["sticky"] == 0.25
    assert len(found["greedy_returns"]) == 5
    assert main(["analyze", str(lock), "--sticky", "0.25"]) == 0
    assert "Stochastic effective horizon" in capsys.readouterr().out


@pytest.mark.parametrize("chance", ["1.5", "often", "1"])
def test_a_wrong_chance_is_one_line(lock: Path, chance: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["analyze", str(lock), "--sticky", chance])
    except SystemExit as error:
        code = error.code
    assert code != 0
    assert "Traceback" not in capsys.readouterr().err


def test_build_show_export_analyze(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    built = run(capsys, "build", "--env", "FrozenLake-v1", "--horizon", 30, "--json")
    assert built["stochastic"]
    assert built["exact"]
    shown = run(capsys, "show", built["id"], "--json")
    assert shown["probabilities"] == ["1/3", "2/3"]
    run(capsys, "export", built["id"], "lake.npz", "--json")
    assert is_stochastic(Path("lake.npz"))
    from_store = run(capsys, "analyze", built["id"], "--json")
    from_npz = run(capsys, "analyze", "lake.npz", "--json")
    assert {**from_store, "path": ""} == {**from_npz, "path": ""}
    assert main(["analyze", "lake.npz", "--sticky", "0.25"]) != 0
    shorter = run(capsys, "analyze", "lake.npz", "--horizon", 10, "--json")
    assert shorter["horizon"] == 10
    assert shorter["optimal_return"] < from_npz["optimal_return"]


def test_a_random_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Taxi without rain: its start is one of 300; here two seeds, each with a chance of one half."""
    monkeypatch.chdir(tmp_path)
    arguments = ("build", "Taxi-v4", "--horizon", 2, "--workers", 1)
    both = run(capsys, *arguments, "--seed", "0,1", "--random-start", "--json")
    found = run(capsys, "show", both["id"], "--json")
    single = [run(capsys, "analyze", f"Taxi-v4{name}-T2", "--sticky", 0, "--json") for name in ("", "-seed1")]
    for field in ("optimal_return", "random_return", "worst_return"):
        assert found[field] == pytest.approx(np.mean([each[field] for each in single]))
    assert main(["build", "Taxi-v4", "--horizon", "2", "--random-start"]) != 0
    assert "several seeds" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(10))
def test_values_of_a_random_start_are_averages(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [TabularMDP(rng.integers(-1, 4, (4, 2)), rng.integers(0, 2, (4, 2)).astype(float), 4) for _ in range(3)]
    chances = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    plan = Plan(random_start([*tables, tables[0]], [*chances[:2], chances[2] / 2, chances[2] / 2][:4]))
    alone = [Plan(from_deterministic(table)) for table in (*tables, tables[0])]
    weights = [1 / 2, 1 / 3, 1 / 12, 1 / 12]
    assert plan.mdp.num_states <= 12  # the first table's states are there once
    assert plan.optimal.values.at_start == pytest.approx(
        sum(weight * each.optimal.values.at_start for weight, each in zip(weights, alone, strict=True))
    )
    assert plan.exploration().at_start == pytest.approx(
        sum(weight * each.exploration().at_start for weight, each in zip(weights, alone, strict=True))
    )


def test_a_damaged_table_is_refused(lock: Path, tmp_path: Path) -> None:
    """Whatever byte is changed: it is noticed, or what is read is the same (parts of a zip say nothing)."""
    mdp = sticky(load_deterministic(lock, horizon=8))
    for name in ("store", "table.npz"):
        path = save_stochastic(mdp, tmp_path / name)
        assert load(path).fingerprint() == mdp.fingerprint()
        victim = path if path.is_file() else path / "successors" / "c" / "0"
        content, refused = victim.read_bytes(), 0
        places = range(0, len(content), 11)
        for place in places:
            victim.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
            try:
                assert load(path).fingerprint() == mdp.fingerprint()
            except StoreError:
                refused += 1
        assert refused > len(places) / 2


def test_sqirl_and_training(lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "sqirl", lock, "--horizon", 8, "--sticky", 0.25, "--m", 400, "--runs", 5, "--json")
    assert found["success"] == 1.0
    assert found["timesteps"] > 400 * 8
    least = run(capsys, "sqirl", lock, "--horizon", 8, "--runs", 10, "--json")
    assert 1 <= least["m"] <= 400
    arguments = ("train", lock, "--horizon", 8, "--sticky", 0.25, "--steps", "40k", "--seeds", 1)
    trained = run(capsys, *arguments, "--algo", "ppo", "--settings", "rollout128", "--json")
    assert trained["settings"]["rollout128"]["solved"] == 1
    assert trained["sample_complexity"] <= 41_000
    assert main([str(word) for word in (*arguments, "--algo", "gorp")]) != 0
    assert "efhorizon sqirl" in capsys.readouterr().err
