"""The whole analysis: JSON, golden figures, the command line, bad input."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import Exact
from planning.test_sweeps import random_table

from efhorizon import TabularMDP, load, save
from efhorizon.bounds import examples
from efhorizon.bounds.analysis import analyze
from efhorizon.commands import main

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "bridge"
KEYS = {
    "num_states",
    "num_actions",
    "horizon",
    "optimal_return",
    "exploration_return",
    "worst_return",
    "optimal_return_probability",
    "min_k",
    "epw",
    "min_state_action_occupancy",
    "min_sum_state_action_occupancy",
    "covering_length",
    "effective_horizon",
    "sample_complexity",
}
COMPLEXITIES = {"worst_case", "ucb", "covering_length", "epw", "effective_horizon"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two small gridworlds in tables/."""
    path = tmp_path_factory.mktemp("analyze")
    for name in ("MiniGrid-Empty-5x5-v0", "MiniGrid-KeyCorridorS3R1-v0"):
        assert main(["build", name, "--workers", "1", "--episodes", "0", "--out", str(path / "tables")]) == 0
    return path


@pytest.fixture
def run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[str, str]]:
    """Run `efhorizon analyze` in the folder; what it wrote to stdout and stderr."""
    monkeypatch.chdir(folder)

    def analyze_here(*arguments: object, ok: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        code = main(["analyze", *map(str, arguments)])
        captured = capsys.readouterr()
        assert code == ok, captured.err
        return captured.out, captured.err

    return analyze_here


def check_order(content: dict[str, Any]) -> None:
    """exact <= upper <= theorem, wherever they are defined."""
    for entry in content["effective_horizon"]["by_k"].values():
        ascending = [entry[key] for key in ("exact_m", "upper_m", "theorem_m") if entry[key] is not None]
        assert ascending == sorted(ascending)


def test_empty_5x5(folder: Path) -> None:
    result = analyze(load(folder / "tables" / "MiniGrid-Empty-5x5-v0"))
    assert result.goal.p == pytest.approx(1 / 729)
    assert result.goal.effective_horizon == pytest.approx(8.52, abs=0.005)
    content = result.as_json()
    assert set(content) >= KEYS
    assert set(content["sample_complexity"]) >= COMPLEXITIES
    first = content["effective_horizon"]["by_k"]["1"]
    assert first["exact_m"] == 1
    assert 1 + math.log(first["upper_m"], 3) <= 1.64
    assert content["effective_horizon"]["value"] == 1.0
    assert content["effective_horizon"]["kind"] == "exact"
    check_order(content)


def test_key_corridor(folder: Path) -> None:
    content = analyze(load(folder / "tables" / "MiniGrid-KeyCorridorS3R1-v0"), max_k=1).as_json()
    assert (content["min_k"], content["epw"]) == (1, 15)
    assert content["min_state_action_occupancy"] == pytest.approx(3.6251398378024507e-07)
    assert content["min_sum_state_action_occupancy"] == pytest.approx(4.8480201837265155e-6)
    assert content["min_state_occupancy"] == pytest.approx(2.1750839026814706e-6)
    assert content["min_sum_state_occupancy"] == pytest.approx(2.908812110235909e-5)
    assert content["deciding_state"]["gap"] == pytest.approx(1.7014579925843832e-11)
    first = content["effective_horizon"]["by_k"]["1"]
    assert first["exact_m"] == 28
    assert first["upper_m"] <= 1.01 * 244
    check_order(content)


@pytest.mark.parametrize(
    ("name", "exact", "published"),
    [("freeway_10_fs30", (18,), (37, 61)), ("maze_easy_l0_30_fs1", (1,), (2,))],
)
def test_published_tables(name: str, exact: tuple[int, ...], published: tuple[int, ...]) -> None:
    path = REFERENCE / name / "consolidated.npz"
    if not path.exists():
        pytest.skip("the published tables are not here")
    content = analyze(load(path), max_k=2).as_json()
    entries = list(content["effective_horizon"]["by_k"].values())
    for entry, m in zip(entries, exact, strict=False):
        assert entry["exact_m"] == m
    for entry, m in zip(entries, published, strict=False):
        assert entry["upper_m"] <= 1.01 * m
    check_order(content)


@pytest.mark.parametrize("seed", range(40))
def test_random_mdps(seed: int) -> None:
    """The bounds are ordered and agree with what the fractions say."""
    mdp = random_table(seed, nonnegative=seed % 2 == 0)
    content = analyze(mdp, max_k=2).as_json()
    exact = Exact(mdp)
    check_order(content)
    json.dumps(content)
    assert content["optimal_return"] == float(exact.optimal(0, 0))
    least = min(k for k in range(1, mdp.horizon + 1) if exact.solvable(k))
    assert content["min_k"] == least
    if content["effective_horizon"]["m"] is not None:
        found = content["effective_horizon"]
        steps = mdp.horizon**2 * mdp.num_actions ** found["k"] * found["m"]
        assert content["sample_complexity"]["effective_horizon"] == steps


def test_examples_of_the_paper() -> None:
    """Sparse rewards: H of order T. Dense and delayed ones: of order 1. Distracting: H = 1, as the paper says."""
    sparse, dense, delayed = (
        analyze(example(8, 2), max_k=1).effective_horizon
        for example in (examples.sparse_rewards, examples.dense_rewards, examples.delayed_rewards)
    )
    assert sparse.value is not None
    assert dense.value is not None
    assert delayed.value is not None
    assert sparse.value > 6 > delayed.value
    assert dense.value < 3
    distracting = analyze(examples.distracting_reward(8, 2)).effective_horizon
    assert (distracting.value, distracting.kind) == (1.0, "exact")
    family = analyze(examples.lower_bound_family(6, 2, effective_horizon=2)).effective_horizon
    assert family.value is not None
    assert family.value <= 2


def test_one_action_and_no_reward() -> None:
    content = analyze(TabularMDP([[0]], [[0.0]], 5)).as_json()
    assert content["effective_horizon"]["value"] == 1.0
    assert content["optimal_return_probability"] == 1.0


def test_huge_numbers_are_written_or_left_out() -> None:
    content = analyze(examples.dense_rewards(3000, 18), max_k=1, exact=False).as_json()
    assert json.loads(json.dumps(content))["sample_complexity"]["worst_case"] == 3000 * (18**3000 // 2)
    longer = analyze(examples.dense_rewards(5000, 18), max_k=1, exact=False).as_json()
    assert longer["sample_complexity"]["worst_case"] is None


def test_command_line_for_people_and_programs(folder: Path, run: Callable[..., tuple[str, str]]) -> None:
    screen, _ = run("MiniGrid-Empty-5x5-v0", "--max-k", 1)
    assert "Effective horizon = 1.00 of 100" in screen
    assert "(Theorem D.1)" in screen
    assert not list(folder.glob("*.png"))  # only where it is asked for
    assert "picture saved as x.png" in run("MiniGrid-Empty-5x5-v0", "--max-k", 1, "--image", "x.png")[0]
    assert (folder / "x.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads(run("tables/MiniGrid-Empty-5x5-v0", "--json", "--max-k", 2)[0])
    assert set(content) >= KEYS
    assert list(content["effective_horizon"]["by_k"]) == ["1", "2"]
    assert content["image"] is None


def test_several_tables_make_one_table(run: Callable[..., tuple[str, str]]) -> None:
    both = ("MiniGrid-Empty-5x5-v0", "tables/MiniGrid-KeyCorridorS3R1-v0", "--max-k", 1, "--horizon", 12)
    rows = run(*both)[0].splitlines()
    assert len(rows) == 3
    contents = json.loads(run(*both, "--json")[0])
    assert [content["id"] for content in contents] == ["MiniGrid-Empty-5x5-v0-T12", "MiniGrid-KeyCorridorS3R1-v0-T12"]


def test_rules_for_ties(folder: Path, run: Callable[..., tuple[str, str]]) -> None:
    """A lock that opens after four second actions: the lowest index is the worst one."""
    run = partial(run, "--max-k", 1)
    mdp = examples.sparse_rewards(4)
    save(TabularMDP(mdp.transitions[:, ::-1], mdp.rewards[:, ::-1], 4), folder / "tables" / "lock")
    found = json.loads(run("lock", "--ties", "all", "--json")[0])
    by_ties = found["exact_by_ties"]
    assert (found["ties"], by_ties["uniform"]["m"]) == ("uniform", found["effective_horizon"]["m"])
    assert by_ties["uniform"]["value"] < by_ties["lowest"]["value"] == by_ties["adversarial"]["value"]
    lowest = json.loads(run("lock", "--ties", "lowest", "--json")[0])
    assert lowest["ties"] == "lowest"
    assert "exact_by_ties" not in lowest
    assert lowest["effective_horizon"]["m"] == by_ties["lowest"]["m"]
    shown = run("lock", "--ties", "all")[0]
    values = [by_ties[rule]["value"] for rule in ("uniform", "lowest", "adversarial")]
    assert [line.count("H = ") + line.count("H ≤ ") for line in shown.splitlines() if "ties  " in line] == [3]
    assert all(f"{value:.2f} (k = " in shown for value in values)
    assert "drawn at random, for the exact figures (--ties all shows other rules)" in run("lock")[0]
    assert "to the lowest index, for the exact figures" in run("lock", "--ties", "lowest")[0]
    save(TabularMDP([[0, 1], [-1, -1]], np.zeros((2, 2)), 3, unexplored=[False, True]), folder / "tables" / "part")
    assert "other rules for ties need a complete one" in run("part", "--ties", "lowest", ok=1)[1]


def test_a_discount_of_one_half_has_an_exact_horizon(folder: Path, run: Callable[..., tuple[str, str]]) -> None:
    found = json.loads(run("MiniGrid-Empty-5x5-v0", "--horizon", 8, "--gamma", 0.5, "--max-k", 1, "--json")[0])
    assert found["effective_horizon"]["by_k"]["1"]["exact_m"] is not None
    check_order(found)


def test_bad_input_is_one_line(folder: Path, run: Callable[..., tuple[str, str]]) -> None:
    name = "MiniGrid-Empty-5x5-v0"
    np.save(folder / "shape.npy", np.ones((2, 3)) / 3)
    np.save(folder / "sum.npy", np.full((32, 3), 0.3))
    (folder / "text.npy").write_text("not an array")
    for arguments, code, message in [
        ((name, "--exploration-policy", "shape.npy"), 1, "has shape (2, 3); this table needs (32, 3) or (100, 32, 3)"),
        ((name, "--exploration-policy", "sum.npy"), 1, "in state 0 sum to 0.9, not 1"),
        ((name, "--exploration-policy", "text.npy"), 1, "text.npy: not an array that can be read"),
        ((name, "--exploration-policy", "nowhere.npy"), 1, "nowhere.npy"),
        ((name, "--horizon", 0), 2, "--horizon: must be at least 1, such as 5; got 0"),
        ((name, "--gamma", 1.5), 2, "--gamma: must be between 0 and 1, such as 0.99; got 1.5"),
        ((name, "--max-k", 0), 2, "--max-k: must be at least 1, such as 5; got 0"),
        (("nothing",), 1, "nothing: no such table"),
    ]:
        out, err = run(*arguments, ok=code)
        assert message in " ".join(err.split())
        assert out == ""
        assert len(err.strip().splitlines()) == 1


def test_an_exploration_policy_from_a_file(folder: Path, run: Callable[..., tuple[str, str]]) -> None:
    np.save(folder / "forward.npy", np.tile([0.1, 0.1, 0.8], (32, 1)))
    name = "MiniGrid-Empty-5x5-v0"
    content = json.loads(run(name, "--exploration-policy", "forward.npy", "--json", "--max-k", 1, "--horizon", 30)[0])
    uniform = json.loads(run(name, "--json", "--max-k", 1, "--horizon", 30)[0])
    assert content["exploration_return"] != uniform["exploration_return"]
    assert content["optimal_return"] == uniform["optimal_return"]
    assert content["min_k"] == 1
