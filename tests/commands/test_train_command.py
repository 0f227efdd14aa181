"""`efhorizon train`: rows, resumption, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon.agents.deep.protocol import RunRecord
from efhorizon.agents.tabular.gorp_search import gorp_sample_complexity, learning_curve
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.commands import main
from efhorizon.io.tables import load, save
from efhorizon.mdp import TabularMDP
from efhorizon.study import run as experiment
from efhorizon.study import sweep
from efhorizon.study import tasks as grid
from efhorizon.study.results import Results

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
    pytest.importorskip("torch")
    arguments = ("--algo", "ppo", "--settings", "rollout128", "--steps", "20k", "--json")
    assert train(tables, tmp_path / "r", *arguments, "--seeds", "1") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["rows"] == 1
    (row,) = Results(tmp_path / "r").rows()
    assert row.sample_complexity == first["environments"][0]["sample_complexity"] == row.steps
    assert row.hyperparameters["rollout_length"] == 128
    assert row.provenance.table_fingerprint
    assert row.optimal_return == row.best_return == 1.0
    assert train(tables, tmp_path / "r", *arguments, "--seeds", "1") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == first
    assert "1 of 1 rows are already there" in captured.err


def test_gorp_leaves_rows_too(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--algo", "gorp", "--settings", "k1", "--json")
    assert train(tables, tmp_path / "r", *arguments) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    (row,) = Results(tmp_path / "r").rows()
    assert row.algorithm == "gorp"
    assert row.setting == "k1"
    assert row.sample_complexity > 0
    assert row.protocol.max_steps == 100_000_000  # its own budget: --steps is about PPO and DQN
    assert row.hyperparameters == {"k": 1}
    assert train(tables, tmp_path / "r", *arguments, "--steps", "7") == 0
    assert "1 of 1 rows are already there" in capsys.readouterr().err


def test_gorp_runs_with_any_k_that_is_named(tables: Path, tmp_path: Path) -> None:
    assert train(tables, tmp_path / "r", "--algo", "gorp", "--settings", "k1, k4") == 0
    rows = list(Results(tmp_path / "r").rows())
    assert sorted((row.setting, row.hyperparameters["k"]) for row in rows) == [("k1", 1), ("k4", 4)]


def test_gorp_s_learning_curve_is_of_all_runs(tables: Path, tmp_path: Path) -> None:
    """Of 101 runs, sorted, the 51st is the median, the 11th and the 91st are the percentiles."""
    mdp = load(tables / NAME)
    (task,) = grid.tasks([mdp], "gorp", settings="k1")
    experiment.run_task(task, Results.made(tmp_path / "r"))
    (row,) = Results(tmp_path / "r").rows()
    search = gorp_sample_complexity(mdp, k=1, rng=np.random.default_rng(0))
    curve = learning_curve(mdp, search.results)
    ordered = np.sort(curve.returns, axis=0)
    expected = np.stack([curve.timesteps, *ordered[[50, 10, 90]]], axis=1)
    assert np.array(row.learning_curve) == pytest.approx(expected)
    first, last = row.learning_curve[0], row.learning_curve[-1]
    values = np.zeros(mdp.num_states + 1)  # of exploring; the last one, which -1 finds, is the end
    for _ in range(mdp.horizon):
        values[:-1] = (mdp.rewards + values[mdp.transitions]).mean(axis=1)
    assert list(first) == [0, *[pytest.approx(values[0])] * 3]  # nothing is chosen yet
    assert list(last[:2]) == [row.sample_complexity, row.optimal_return]
    assert row.wall_seconds > 0


def test_gorp_beyond_its_budget_is_a_row_not_an_error(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "BUDGET", 10_000)  # k = 1 takes 30,000 timesteps with m = 1
    assert train(tables, tmp_path / "r", "--algo", "gorp", "--settings", "k1") == 0
    (row,) = Results(tmp_path / "r").rows()
    assert (row.sample_complexity, row.steps, row.learning_curve) == (None, 0, [])
    assert row.optimal_return == 1.0


def test_a_killed_task_keeps_its_finished_seeds(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from efhorizon.agents.deep import ppo

    trained: list[list[int]] = []

    def interrupted(*given: Any, on_progress: Any, **_: Any) -> list[Any]:
        _, _, protocol, seeds = given
        trained.append(list(seeds))
        runs = [RunRecord(seed, protocol, optimal_units=1, unit=1.0) for seed in seeds]
        runs[0].evaluated(10_000, 1)
        on_progress(runs)
        raise KeyboardInterrupt

    monkeypatch.setattr(ppo, "train", interrupted)
    results = Results.made(tmp_path / "r")
    (task,) = grid.tasks([load(tables / NAME)], "ppo", settings="rollout128", num_seeds=3)
    for expected in ([0, 1, 2], [1, 2], [2]):
        with pytest.raises(KeyboardInterrupt):
            experiment.run_task(task, results)
        assert trained[-1] == expected
    assert experiment.run_task(task, results) == []
    assert len(list(results.rows())) == 3


def test_an_exploration_policy_makes_other_rows(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mdp = load(tables / NAME)
    for name, shares in (("forward", [0.1, 0.1, 0.8]), ("turning", [0.3, 0.5, 0.2]), ("equal", [1 / 3] * 3)):
        np.save(tmp_path / f"{name}.npy", np.tile(shares, (mdp.num_states, 1)))
    arguments = ("--algo", "gorp", "--settings", "k1", "--json")
    assert train(tables, tmp_path / "r", *arguments) == 0
    capsys.readouterr()
    for name, is_new in (("forward", True), ("turning", True), ("equal", False), ("forward", False)):
        assert train(tables, tmp_path / "r", *arguments, "--exploration-policy", str(tmp_path / f"{name}.npy")) == 0
        assert ("1 of 1 rows are already there" in capsys.readouterr().err) != is_new  # equal shares: as without
    rows = {row.setting: row for row in Results(tmp_path / "r").rows()}
    assert len(rows) == len(list(Results(tmp_path / "r").rows())) == 3
    policies = {setting: row.hyperparameters.get("exploration_policy") for setting, row in rows.items()}
    assert policies.pop("k1") is None
    assert all(setting == f"k1-policy-{policy[:8]}" for setting, policy in policies.items() if policy)
    starts = [row.learning_curve[0][1] for row in rows.values()]
    assert len(set(starts)) == 3  # each policy has an expected return of its own


@pytest.mark.parametrize("backend", ["table", "sb3"])
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_what_is_given_reaches_the_learner(
    algorithm: str, backend: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    from efhorizon.agents.deep import dqn, ppo, sb3
    from efhorizon.agents.deep.networks import network_for
    from efhorizon.agents.deep.observations import observed_table

    mdp = load(tables / NAME)
    network = network_for("actor_critic" if algorithm == "ppo" else "q", observed_table(mdp))
    rng = np.random.default_rng(0)
    parameters = {name: rng.normal(size=shape).astype(np.float32) for name, shape in network.torch_shapes.items()}
    np.savez(tmp_path / "f.npz", **parameters, further=np.zeros(1))
    np.save(tmp_path / "f.npy", np.tile([0.1, 0.1, 0.8], (mdp.num_states, 1)))
    calls: list[dict[str, Any]] = []

    def noted(*given: Any, **named: Any) -> list[Any]:
        calls.append(named)
        protocol, seeds = given[-2:]
        return [RunRecord(seed, protocol, optimal_units=1, unit=1.0).result() for seed in seeds]

    monkeypatch.setattr(sb3 if backend == "sb3" else {"ppo": ppo, "dqn": dqn}[algorithm], "train", noted)
    setting = {"ppo": "rollout128", "dqn": "exploration1"}[algorithm]
    arguments = ["--algo", algorithm, "--backend", backend, "--seeds", "1", "--settings", setting]
    assert train(tables, tmp_path / "r", *arguments) == 0
    arguments += ["--initial", str(tmp_path / "f.npz")]
    if algorithm == "dqn":
        arguments += ["--exploration-policy", str(tmp_path / "f.npy")]
    assert train(tables, tmp_path / "r", *arguments) == 0
    own, given = calls
    assert own["initial"] is None
    assert own.get("exploration_policy") is None
    if backend == "sb3":
        assert {name: array.tolist() for name, array in parameters.items()}.items() <= {
            name: array.tolist() for name, array in given["initial"].items()
        }.items()
    else:
        np.testing.assert_array_equal(given["initial"], network.from_torch(parameters))
    if algorithm == "dqn":
        np.testing.assert_allclose(given["exploration_policy"].row(5, 7), [0.1, 0.1, 0.8])
    settings = sorted(row.setting for row in Results(tmp_path / "r").rows())
    assert settings[0] == setting
    assert settings[1].startswith(f"{setting}-policy-" if algorithm == "dqn" else f"{setting}-initial-")


@pytest.mark.parametrize(
    ("algorithm", "option", "file", "message"),
    [
        ("gorp", "--exploration-policy", "shape.npy", f"{NAME}: the exploration policy has shape (2, 3); this table"),
        ("dqn", "--exploration-policy", "sum.npy", "in state 0 sum to 0.9, not 1"),
        ("dqn", "--exploration-policy", "text.npz", "text.npz: not an array that can be read"),
        ("dqn", "--exploration-policy", "names.npz", "names.npz: not an array that can be read"),
        ("dqn", "--exploration-policy", "nowhere.npy", "nowhere.npy: cannot be read (No such file"),
        ("ppo", "--exploration-policy", "sum.npy", "give it initial parameters instead of an exploration policy"),
        ("gorp", "--initial", "names.npz", "GORP has no network"),
        ("ppo", "--initial", "text.npz", "text.npz: not a .npz of arrays"),
        ("ppo", "--initial", "nowhere.npz", "nowhere.npz: cannot be read (No such file"),
        ("ppo", "--initial", "names.npz", "the initial parameters lack mlp_extractor.policy_net.0.weight, "),
        ("dqn", "--initial", "wrong.npz", "q_net.q_net.0.weight have shape (4, 4); this network needs (64, 2"),
    ],
)
def test_bad_starts_are_one_line(
    algorithm: str,
    option: str,
    file: str,
    message: str,
    tables: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torch")
    np.save(tmp_path / "shape.npy", np.ones((2, 3)) / 3)
    np.save(tmp_path / "sum.npy", np.full((load(tables / NAME).num_states, 3), 0.3))
    (tmp_path / "text.npz").write_text("no numbers")
    np.savez(tmp_path / "names.npz", mine=np.zeros(3))
    layers = {f"q_net.q_net.{layer}.{part}": np.zeros((4, 4)) for layer in (0, 2, 4) for part in ("weight", "bias")}
    np.savez(tmp_path / "wrong.npz", **layers)
    assert train(tables, tmp_path / "r", "--algo", algorithm, option, str(tmp_path / file)) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_tensorboard_shows_the_learning_curve(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("torch")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.setattr(sweep, "EVALUATION_INTERVAL", 1000)
    arguments = ("--algo", "ppo", "--settings", "rollout128", "--seeds", "1", "--steps", "3000")
    assert train(tables, tmp_path / "r", *arguments, "--tensorboard", str(tmp_path / "board")) == 0
    (row,) = Results(tmp_path / "r").rows()
    (folder,) = {path.parent for path in (tmp_path / "board").rglob("events.out.tfevents.*")}
    assert folder == tmp_path / "board" / NAME / "ppo-table-rollout128" / "seed0"
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    shown = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert [step for step, _, _ in row.learning_curve] == [1000, 2000, 3000][: len(row.learning_curve)]
    assert shown["return/greedy"] == [(step, greedy) for step, greedy, _ in row.learning_curve]
    trained = [(step, pytest.approx(mean)) for step, _, mean in row.learning_curve if mean is not None]
    assert trained
    assert shown["return/training"] == trained


@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "gorp"])
def test_an_unfinished_table_is_refused(
    algorithm: str, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    mdp = load(tables / NAME)
    unexplored = np.arange(mdp.num_states) == 3
    transitions = np.where(unexplored[:, None], -1, mdp.transitions)
    part = TabularMDP(transitions, mdp.rewards, 100, unexplored=unexplored, metadata=mdp.metadata)
    save(part, tmp_path / "part")
    assert main(["train", str(tmp_path / "part"), "--algo", algorithm, "--results", str(tmp_path / "r")]) == 1
    error = capsys.readouterr().err
    assert error == f"efhorizon: {NAME}: the table is unfinished; training needs a complete one\n"
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--algo", "ppo", "--settings", "rollout64"], 1, "no setting called 'rollout64'"),
        (["--algo", "ppo", "--settings", "k4"], 1, "no setting called 'k4'"),
        (["--algo", "gorp", "--settings", "k0"], 1, "no setting called 'k0'; choose from: paper (all) k1 k2 k3 k4 ..."),
        (["--algo", "gorp", "--settings", "k100"], 1, "no setting called 'k100'"),
        (["--algo", "dqn", "--seeds", "0"], 2, "--seeds: must be at least 1"),
        (["--algo", "dqn", "--steps", "-5"], 2, "--steps: must be at least 1"),
        (["--algo", "dqn", "--steps", "many"], 2, "'many' is not a whole number; write it as 100000, 1e5, 200k or 5M"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str], code: int, message: str, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tables, tmp_path / "r", *arguments) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_unknown_tables_and_directories(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "freeway_10_fs30", "--algo", "gorp", "--tables", str(tables)]) == 1
    assert "build it first" in capsys.readouterr().err
    assert main(["train", "freewy_10_fs30", "--algo", "gorp", "--tables", str(tables)]) == 1
    assert "did you mean freeway_10_fs30 (build it first)" in capsys.readouterr().err
    assert train(tables, tables, "--algo", "gorp") == 1
    assert "not a results directory" in capsys.readouterr().err
