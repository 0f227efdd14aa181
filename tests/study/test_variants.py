"""Variants: an MDP with a policy to start from is planned, analyzed, run, resumed, exported and taken over."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from efhorizon import StoreError, TabularMDP, UnknownNameError
from efhorizon.agents.deep.networks import network_for
from efhorizon.agents.deep.observations import observed_table
from efhorizon.agents.deep.pretrained import digest, load_parameters
from efhorizon.bounds.analysis import analyze
from efhorizon.build.framestack import framestacked
from efhorizon.build.target import catalogue_target
from efhorizon.commands import main
from efhorizon.evaluation.source import study_data, write_export
from efhorizon.io.tables import load
from efhorizon.planning.policies import InvalidPolicyError
from efhorizon.study import pool, stages, variants
from efhorizon.study.analyses import analysis_record
from efhorizon.study.forecast import forecast
from efhorizon.study.plan import Case, Plan, environment_names
from efhorizon.study.restore import restore
from efhorizon.study.results import Results
from efhorizon.study.tasks import RunPlan
from efhorizon.study.variants import PolicyAbout, PolicyFile, PolicyFolder, UnknownPolicyError, split_name

pytest.importorskip("minigrid")
pytest.importorskip("torch")
NAME, OTHER = "MiniGrid-LavaGapS5-v0", "MiniGrid-Empty-5x5-v0"
RUNS = (RunPlan("gorp", "k1"), RunPlan("ppo", "rollout128", 1, 2_000), RunPlan("dqn", "exploration1", 1, 2_000))
BIAS = np.array([0.5, 0.0, 1.0, 0.0, 0.0, 0.0])  # the network prefers these actions in every state


def shares(bias: NDArray[np.float64]) -> NDArray[np.float64]:
    likely = np.exp(bias)
    return likely / likely.sum()


def parameters(table: TabularMDP, bias: NDArray[np.float64] = BIAS) -> dict[str, NDArray[np.float32]]:
    """A network that sees nothing: all weights are zero."""
    shapes = network_for("actor_critic", observed_table(table)).torch_shapes
    found = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return found | {"action_net.bias": bias.astype(np.float32)}


def blind(mdp: TabularMDP, path: Path) -> tuple[TabularMDP, NDArray[np.float64]]:
    """What that network does in every state."""
    return mdp, np.tile(shares(load_parameters(path)["action_net.bias"].astype(np.float64)), (mdp.num_states, 1))


@pytest.fixture
def tabulating(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Sets what `tabulated(mdp, network)` gives; a network is the path of its file here."""

    def use(function: Any) -> None:
        monkeypatch.setattr(variants, "_tabulated", function)
        variants._explorers.clear()

    use(blind)
    return use


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are run here, not by workers, which would not know the stand-in."""

    def run_tasks(tasks: Sequence[Any], results: Path, *, on_result: Any, **_: Any) -> None:
        for task in tasks:
            assert pool._run(task, results, lambda progress: None)
            on_result(pool.TaskResult(task, None, 0.0))

    monkeypatch.setattr(stages, "run_tasks", run_tasks)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TabularMDP:
    out = tmp_path_factory.mktemp("tables")
    assert main(["build", NAME, "--out", str(out)]) == 0
    return load(out / NAME)


def policies(folder: Path, table: TabularMDP, **biases: NDArray[np.float64]) -> Path:
    """A folder with these labels, each with the network of one MDP."""
    for label, bias in biases.items():
        (folder / label).mkdir(parents=True)
        np.savez(folder / label / f"{NAME}.npz", **parameters(table, bias))
    return folder


def some_file(folder: Path, label: str, stem: str, value: float = 0.0) -> Path:
    path = folder / label / f"{stem}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, weight=np.array([value], np.float32))
    return path


# Names and folders


def test_names_of_variants() -> None:
    assert split_name("pong_10_fs30@human") == ("pong_10_fs30", "human")
    assert split_name("pong_10_fs30") == ("pong_10_fs30", None)
    assert environment_names([f"{NAME}@human", NAME]) == (f"{NAME}@human", NAME)
    with pytest.raises(UnknownNameError, match="'nothing'"):
        environment_names(["nothing@human"])


def test_the_file_of_an_mdp_wins_over_that_of_its_game(tmp_path: Path) -> None:
    own, of_game = some_file(tmp_path, "human", "pong_10_fs30", 1.0), some_file(tmp_path, "human", "pong", 2.0)
    (tmp_path / ".hidden").mkdir()
    folder = PolicyFolder(tmp_path)
    assert folder.labels == ("human",)
    found = [folder.find("human", name, "pong") for name in ("pong_10_fs30", "pong_20_fs30")]
    assert [(each.path, each.network) for each in found if each] == [
        (path, digest({"weight": np.array([value], np.float32)})) for path, value in ((own, 1.0), (of_game, 2.0))
    ]
    assert folder.find("human", "freeway_10_fs30", "freeway") is None
    with pytest.raises(UnknownPolicyError, match=r"no policy for a@human: no a.npz or b.npz in .*labels: human"):
        folder.file("human", "a", "b")
    with pytest.raises(UnknownPolicyError, match="no robot in"):
        folder.file("robot", "a", "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"method": "cloned", "noise": 0.5}', PolicyAbout(method="cloned", facts={"noise": 0.5})),
        ('{"title": "t", "facts": {"steps": 7}}', PolicyAbout(title="t", facts={"steps": 7})),
        ('{"facts": {"a": 1}, "b": "two"}', PolicyAbout(facts={"a": 1, "b": "two"})),
    ],
)
def test_what_is_known_about_policies(tmp_path: Path, text: str, expected: PolicyAbout) -> None:
    some_file(tmp_path, "human", "pong").with_name("about.json").write_text(text)
    found = PolicyFolder(tmp_path).file("human", "pong_10_fs30", "pong")
    assert found.about == expected


def test_bad_folders_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such folder of policies"):
        PolicyFolder(tmp_path / "nothing")
    with pytest.raises(StoreError, match=r"no policies here; it must have folders with files such as LABEL/GAME.npz"):
        PolicyFolder(tmp_path)
    for number, label in enumerate(("uniform", "a@b", "a b", "-x")):
        some_file(tmp_path / str(number), label, "pong")
        with pytest.raises(StoreError, match="cannot be the label of a policy"):
            PolicyFolder(tmp_path / str(number))
    about = some_file(tmp_path / "bad", "human", "pong").with_name("about.json")
    for text, reason in (("[]", "not a description of policies"), ('{"title": 3}', "title must be a text, not 3")):
        about.write_text(text)
        with pytest.raises(StoreError, match=reason):
            PolicyFolder(tmp_path / "bad")
    about.unlink()
    (about.parent / "pong.npz").write_bytes(b"no archive")
    with pytest.raises(StoreError, match=r"pong\.npz"):
        PolicyFolder(tmp_path / "bad").find("human", "pong_10_fs30", "pong")


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    path = some_file(tmp_path, "human", "pong")
    found = PolicyFolder(tmp_path).file("human", "pong_10_fs30", "pong")
    assert list(found.parameters) == ["weight"]
    np.savez(path, weight=np.array([5.0], np.float32))
    with pytest.raises(StoreError, match="it has changed since the study began"):
        _ = found.parameters


# Plans


def test_an_mdp_is_planned_with_each_policy_that_it_has(tmp_path: Path) -> None:
    some_file(tmp_path / "p", "human", "pong")
    some_file(tmp_path / "p", "other", "pong_10_fs30")
    given = Plan(tmp_path, ("pong_10_fs30", "pong_20_fs30", NAME), runs=RUNS, policies=tmp_path / "p")
    assert [case.id for case in given.cases()] == [
        *("pong_10_fs30", "pong_10_fs30@human", "pong_10_fs30@other"),
        *("pong_20_fs30", "pong_20_fs30@human"),
        NAME,
    ]
    assert [target.id for target in given.targets()] == ["pong_10_fs30", "pong_20_fs30", NAME]
    base, variant, *_ = given.cases()
    assert [task.algorithm for task in given.tasks(base)] == ["gorp", "ppo", "dqn"]
    tasks = given.tasks(variant)
    assert [(task.id, task.algorithm, task.setting) for task in tasks] == [
        ("pong_10_fs30@human", "gorp", "k1"),
        ("pong_10_fs30@human", "ppo", "rollout128"),
    ]
    assert {task.table for task in tasks} == {tmp_path / "tables" / "pong_10_fs30"}
    assert given.record().policies == ["human", "other"]
    _, analyze_stage, gorp, ppo, dqn, _ = forecast(given).stages
    assert (analyze_stage.num_left, gorp.num_left, ppo.num_left, dqn.num_left) == (6, 6, 6, 3)


def test_a_variant_can_be_planned_alone(tmp_path: Path) -> None:
    some_file(tmp_path / "p", "human", "pong")
    given = Plan(tmp_path, ("pong_10_fs30@human",), runs=RUNS, policies=tmp_path / "p")
    assert [case.id for case in given.cases()] == ["pong_10_fs30@human"]
    assert [target.id for target in given.targets()] == ["pong_10_fs30"]
    with pytest.raises(UnknownPolicyError, match="pong_10_fs30@human: no folder of policies given"):
        Plan(tmp_path, ("pong_10_fs30@human",)).cases()


@pytest.mark.parametrize("arguments", [[f"{NAME}@robot"], [NAME, f"{NAME}@robot"]])
def test_the_command_refuses_a_policy_that_is_not_there(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some_file(tmp_path / "p", "human", NAME)
    options = ["--policies", str(tmp_path / "p"), "--out", str(tmp_path / "s")]
    assert main(["study", *arguments, *options]) != 0
    error = capsys.readouterr().err
    assert f"no policy for {NAME}@robot" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "s").exists()


# Studies


def plan(folder: Path, *names: str, runs: tuple[RunPlan, ...] = RUNS[:2]) -> Plan:
    return Plan(folder / "s", names or (NAME,), runs=runs, max_k=1, policies=folder / "p")


def statuses(result: stages.StudyResult) -> dict[tuple[str, str], str]:
    return {(outcome.name, outcome.stage): outcome.status for outcome in result.outcomes}


@pytest.mark.usefixtures("tabulating", "in_this_process")
def test_a_study_with_a_policy(tmp_path: Path, table: TabularMDP) -> None:
    folder = policies(tmp_path / "p", table, liked=BIAS)
    (folder / "liked" / "about.json").write_text('{"title": "what we like", "method": "invented", "noise": 0.5}')
    variant = f"{NAME}@liked"
    first = stages.study(plan(tmp_path))
    assert set(statuses(first).values()) == {"made"}
    assert (first.num_complete, len(first.cases)) == (2, 2)

    # theory: the analysis is that of the policy
    analysis = Results(tmp_path / "s").analysis(variant)
    expected = analyze(table, max_k=1, exploration_policy=np.tile(shares(BIAS), (table.num_states, 1)))
    assert analysis.figures.exploration_return == pytest.approx(expected.exploration_return, rel=1e-6)
    assert analysis.figures.optimal_return_probability == pytest.approx(expected.optimal_return_probability, rel=1e-6)
    assert analysis.figures.id == analysis.name == variant
    record = analysis.explorer
    assert isinstance(record, variants.PolicyRecord)
    assert (record.label, record.title, record.method, record.noise) == ("liked", "what we like", "invented", 0.5)
    assert record.network == digest(parameters(table))
    assert (record.num_states, analysis.fingerprint) == (table.num_states, table.fingerprint())
    # the pictures that do not depend on the policy are the MDP's
    base = Results(tmp_path / "s").analysis(NAME)
    assert (analysis.start_picture, analysis.episode) == (base.start_picture, base.episode)

    # practice: the rows say which network they start from
    rows = {(row.id, row.algorithm): row for row in Results(tmp_path / "s").rows()}
    assert {key for key in rows if key[0] == variant} == {(variant, "gorp"), (variant, "ppo")}
    assert rows[variant, "ppo"].hyperparameters["initial"] == record.network
    assert rows[variant, "gorp"].hyperparameters["exploration_network"] == record.network
    assert "initial" not in rows[NAME, "ppo"].hyperparameters
    assert rows[variant, "ppo"].setting == rows[NAME, "ppo"].setting

    # it is done, and stays so without the network being run again
    variants._explorers.clear()
    again = stages.study(plan(tmp_path))
    assert set(statuses(again).values()) == {"kept"}
    assert not variants._explorers
    assert forecast(plan(tmp_path)).is_done
    summaries = {each.name: each for each in study_data(tmp_path / "s").summaries}
    assert set(summaries[variant].sample_complexities) == {"gorp", "ppo"}

    # an export takes it elsewhere
    write_export(tmp_path / "export", study_data(tmp_path / "s"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "p").symlink_to(folder)
    taken = restore(tmp_path / "export", elsewhere / "s")
    assert (taken.num_taken_over, taken.num_analyses) == (4, 2)
    shutil.copytree(tmp_path / "s" / "tables", elsewhere / "s" / "tables")
    assert set(statuses(stages.study(plan(elsewhere))).values()) == {"kept"}

    # another network under the same label is another experiment
    np.savez(folder / "liked" / f"{NAME}.npz", **parameters(table, -BIAS))
    changed = statuses(stages.study(plan(tmp_path)))
    assert {key for key, status in changed.items() if status == "made"} == {(variant, "analyze"), (variant, "run")}
    data = study_data(tmp_path / "s")
    assert "2 rows begun with a network other than the one analyzed: left out" in data.notes
    assert json.loads((tmp_path / "s" / "study.json").read_text())["plan"]["policies"] == ["liked"]


@pytest.mark.usefixtures("in_this_process")
def test_a_policy_that_does_not_fit_stops_nothing_else(
    tmp_path: Path, table: TabularMDP, tabulating: Callable[[Any], None]
) -> None:
    policies(tmp_path / "p", table, good=BIAS, bad=BIAS)

    def picky(mdp: TabularMDP, path: Path) -> tuple[TabularMDP, NDArray[np.float64]]:
        found = blind(mdp, path)[1]
        return mdp, found * (2 if path.parent.name == "bad" else 1)

    tabulating(picky)
    result = stages.study(plan(tmp_path, runs=(RunPlan("gorp", "k1"),)))
    (failed,) = result.with_status("failed")
    assert (failed.name, failed.stage) == (f"{NAME}@bad", "analyze")
    assert "sum to 2, not 1" in failed.text
    assert (result.num_complete, len(result.cases)) == (2, 3)


# Policies that see several frames


def circle() -> TabularMDP:
    """Two states that show the same and one that pays: what was seen before tells which is which."""
    transitions = np.array([[1, 2], [0, 2], [1, -1]])
    rewards = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    screens = np.arange(3, dtype=np.uint8).reshape(3, 1, 1, 1)
    described = {"id": "circle", "suite": "minigrid", "game": "circle"}
    return TabularMDP(transitions, rewards, 4, screens=screens, screen_mapping=[0, 1, 2], metadata=described)


def test_histories_of_screens_are_states_of_the_policy_alone(tmp_path: Path, tabulating: Callable[[Any], None]) -> None:
    """The same policy with and without histories gives the same figures; states and UCB are those of the MDP."""
    mdp, file = circle(), PolicyFolder(some_file(tmp_path, "human", "circle").parents[1]).find("human", "circle", "")
    assert isinstance(file, PolicyFile)
    by_state = np.array([[0.25, 0.75], [0.5, 0.5], [0.9, 0.1]])
    tabulating(lambda given, _: (given, by_state))
    without, _ = analysis_record(mdp, policy=file)

    def with_histories(given: TabularMDP, _: object) -> tuple[TabularMDP, NDArray[np.float64]]:
        stacked = framestacked(given, 2)
        assert stacked.base_states is not None
        return stacked, by_state[stacked.base_states]

    tabulating(with_histories)
    record, _ = analysis_record(mdp, policy=file)
    assert isinstance(record.explorer, variants.PolicyRecord)
    assert record.explorer.num_states == framestacked(mdp, 2).num_states > mdp.num_states
    assert (record.figures.num_states, record.fingerprint) == (mdp.num_states, mdp.fingerprint())
    assert record.figures.sample_complexity["ucb"] == without.figures.sample_complexity["ucb"] == 3 * 2 * 4
    assert record.figures.effective_horizon == without.figures.effective_horizon
    assert record.figures.exploration_return == pytest.approx(without.figures.exploration_return or 0.0)
    assert record.figures.deciding_state is not None
    assert record.figures.deciding_state.state < mdp.num_states


def test_a_case_has_the_name_of_its_policy(tmp_path: Path) -> None:
    some_file(tmp_path, "human", NAME)
    policy = PolicyFolder(tmp_path).file("human", NAME, NAME)
    assert Case(catalogue_target(NAME), policy).id == f"{NAME}@human"
    assert Case(catalogue_target(NAME)).id == NAME


def test_what_a_network_says_is_checked(tmp_path: Path, tabulating: Callable[[Any], None]) -> None:
    file = PolicyFolder(some_file(tmp_path, "human", "circle").parents[1]).file("human", "circle", "")
    tabulating(lambda given, _: (given, np.ones((2, 2)) / 2))
    with pytest.raises(InvalidPolicyError, match=r"circle\.npz: the exploration policy has shape \(2, 2\)"):
        analysis_record(circle(), policy=file)
