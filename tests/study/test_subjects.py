"""What a study can be about: names, stored tables, environments; and analyses that are kept by `analyze`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from efhorizon import EfhorizonError, TabularMDP, analyze
from efhorizon.build.target import Target
from efhorizon.catalog import UnknownNameError
from efhorizon.commands import main
from efhorizon.evaluation.forecast_rows import record_features
from efhorizon.forecast.features import features
from efhorizon.io.tables import load_table, opened_table, save
from efhorizon.study.analysis_record import is_complete
from efhorizon.study.forecast import forecast
from efhorizon.study.kept_analysis import keep_analysis
from efhorizon.study.plan import Plan, environment_names
from efhorizon.study.results import Results
from efhorizon.study.stages import study
from efhorizon.study.subjects import StoredTable, subject
from efhorizon.study.tasks import RunPlan
from efhorizon.suites.observation_layout import METADATA, layout_as_json, layout_of_space, screen_of
from efhorizon.suites.simulator import SimulatorError

GORP = (RunPlan("gorp", "k1"),)


def corridor(length: int = 4, horizon: int = 6, **metadata: Any) -> TabularMDP:
    """Action 1 goes on, action 0 stays; the step off the end pays 1."""
    transitions = np.stack([np.arange(length), np.arange(1, length + 1)], axis=1)
    transitions[-1, 1] = -1
    rewards = np.zeros((length, 2))
    rewards[-1, 1] = 1.0
    return TabularMDP(transitions, rewards, horizon, metadata=metadata)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(corridor(id="own-T6"), tmp_path / "tables" / "own-T6")
    np.savez(tmp_path / "plain.npz", transitions=corridor().transitions, rewards=corridor().rewards)
    return tmp_path


def test_what_a_name_stands_for(folder: Path) -> None:
    listed, own = subject("freeway_10_fs30"), subject("own-T6")
    assert isinstance(listed, Target)
    assert isinstance(own, StoredTable)
    assert (own.id, own.num_states, own.num_actions, own.horizon) == ("own-T6", 4, 2, 6)
    by_path, plain = subject("tables/own-T6"), subject("plain.npz", horizon=9)
    assert (by_path.id, plain.id, plain.horizon) == ("own-T6", "plain", 9)
    lake = subject("FrozenLake-v1", horizon=5)
    assert isinstance(lake, Target)
    assert lake.horizon == 5
    with pytest.raises(SimulatorError, match="--horizon"):
        subject("CliffWalking-v1")
    with pytest.raises(UnknownNameError, match="closest"):
        subject("freeway_10_fs31")
    with pytest.raises(EfhorizonError, match="nowhere"):
        subject("nowhere:Env-v0")
    with pytest.raises(UnknownNameError, match="closest"):
        subject("freeway_10_fs31", horizon=5)
    assert environment_names(["tables/own-T6", "freeway_10_fs30", "tables/own-T6"]) == (
        "tables/own-T6",
        "freeway_10_fs30",
    )
    with pytest.raises(EfhorizonError, match="both called own-T6"):
        Plan(folder / "s", ("tables/own-T6", "own-T6")).subjects()


def test_tables_have_names(folder: Path) -> None:
    assert load_table("plain.npz", Path("tables"), horizon=3).metadata["id"] == "plain"
    assert load_table("own-T6", Path("tables"), horizon=4).metadata["id"] == "own-T6-T4"  # another MDP
    assert load_table("own-T6", Path("tables"), horizon=6).metadata["id"] == "own-T6"
    inner = folder / "mine"
    inner.mkdir()
    (folder / "plain.npz").rename(inner / "consolidated.npz")
    assert opened_table(inner / "consolidated.npz", horizon=3).metadata["id"] == "mine"


def test_stored_tables_are_studied_as_they_are(folder: Path) -> None:
    plan = Plan(folder / "s", ("own-T6", "plain.npz"), runs=GORP, max_k=1, horizon=6)
    assert plan.targets() == []
    assert {name: (size.low, size.source) for name, size in forecast(plan).sizes.items()} == {
        "own-T6": (4, "table"),
        "plain": (4, "table"),
    }
    result = study(plan)
    assert {(each.name, each.stage): each.status for each in result.outcomes} == {
        (name, stage): "made" for name in ("own-T6", "plain") for stage in ("analyze", "run")
    }
    analyses = Results(folder / "s").analyses()
    assert set(analyses) == {"own-T6", "plain"}
    assert "agents see the number of the state" in str(analyses["plain"].observation_note)
    assert analyses["plain"].picture_note == "this table has no screens"
    again = study(plan)
    assert {each.status for each in again.outcomes} == {"kept"}


def test_an_analysis_is_kept_and_a_study_takes_it_over(folder: Path) -> None:
    mdp = corridor(id="own-T6")
    analysis = analyze(mdp, max_k=1)
    assert keep_analysis(folder / "r", mdp, analysis, max_k=1, is_uniform=True) is None
    kept = Results(folder / "r").analysis("own-T6")
    assert kept.figures.effective_horizon.value == analysis.effective_horizon.value
    assert kept.deciding is not None
    study(Plan(folder / "r", ("own-T6",), runs=(), max_k=1))
    completed = Results(folder / "r").analysis("own-T6")
    assert keep_analysis(folder / "r", mdp, analysis, max_k=1, is_uniform=True) is None
    assert Results(folder / "r").analysis("own-T6") == completed  # which has other rules for ties too


def test_with_one_action_there_is_an_analysis_too(folder: Path) -> None:
    """It is a goal MDP, and H is to the base of 1."""
    mdp = TabularMDP([[1], [-1]], [[0.0], [1.0]], 3, metadata={"id": "single"})
    found = analyze(mdp)
    assert (found.goal.m, found.goal.effective_horizon, found.goal.sample_complexity) == (1, 1.0, 9)
    assert keep_analysis(folder / "results", mdp, found, max_k=3, is_uniform=True) is None
    assert main(["report", str(folder / "results")]) == 0


def test_a_report_forecasts_what_analyze_does(folder: Path) -> None:
    """Whether agents see images is part of a forecast, and only the table tells."""
    for name, space, sees_images in (
        ("flat", gymnasium.spaces.Discrete(4), False),
        ("seen", gymnasium.spaces.Box(0, 255, (40, 40, 3), np.uint8), True),
    ):
        layout = layout_of_space(space)
        screens = np.stack([screen_of(layout, space.sample()) for _ in range(4)])
        told = {"id": name, "suite": "gymnasium", METADATA: layout_as_json(layout)}
        plain = corridor()
        mdp = TabularMDP(
            plain.transitions, plain.rewards, 6, screens=screens, screen_mapping=np.arange(4), metadata=told
        )
        found = analyze(mdp)
        assert features(found).is_image is sees_images
        assert keep_analysis(folder / "results", mdp, found, max_k=3, is_uniform=True) is None
        stored = Results(folder / "results").analysis(name)
        assert is_complete(stored)
        assert record_features(stored) == features(found)


def test_what_is_not_kept_is_said(folder: Path) -> None:
    mdp = corridor(id="own-T6")
    analysis = analyze(mdp, max_k=1)
    (folder / "taken").mkdir()
    (folder / "taken" / "file").write_text("x")
    reason = keep_analysis(folder / "taken", mdp, analysis, max_k=1, is_uniform=True)
    assert "not a results directory" in str(reason)
    assert "random exploration" in str(keep_analysis(folder / "r", mdp, analysis, max_k=1, is_uniform=False))
    discounted = analyze(mdp, max_k=1, gamma=0.9)
    assert "undiscounted" in str(keep_analysis(folder / "r", mdp, discounted, max_k=1, is_uniform=True))
    unnamed = keep_analysis(folder / "r", corridor(id="../x"), analysis, max_k=1, is_uniform=True)
    assert "cannot be the name of a file" in str(unnamed)
    assert not (folder / "r" / "analyses").exists()


def test_analyze_feeds_evaluate_and_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    assert main(["report", "results"]) == 1
    Results.made(folder / "results")
    capsys.readouterr()
    assert main(["report", "results"]) == 1
    assert "efhorizon analyze TABLE --results results" in capsys.readouterr().err
    assert not Path("report").exists()
    assert main(["train", "own-T6", "--algo", "gorp", "--settings", "k1"]) == 0
    capsys.readouterr()
    assert main(["report", "results"]) == 1
    assert "runs on own-T6 but no analysis; run: efhorizon analyze own-T6" in capsys.readouterr().err
    assert (
        main(["analyze", "own-T6", "--max-k", "1", "--image", "x.png", "--json"]) == 1
    )  # no picture, but all the rest
    printed = capsys.readouterr()
    assert json.loads(printed.out)["action_names"] == ["0", "1"]
    assert "x.png: not written, this table has no screens" in printed.err
    assert main(["report", "results"]) == 0
    assert main(["evaluate", "results", "--resamples", "10"]) == 0
    (page,) = Path("report/mdps").iterdir()
    text = page.read_text()
    assert "No pictures of an optimal episode: this table has no screens." in text
    assert "agents see the number of the state" in text
