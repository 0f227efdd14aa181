"""Where a forecast is given: Python, the terminal, JSON, notebooks and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efhorizon as ef
from efhorizon.commands import main
from efhorizon.errors import InvalidTableError
from efhorizon.forecast.features import features, problem_features
from efhorizon.forecast.model import shipped_model
from efhorizon.forecast.prediction import forecasts
from efhorizon.io.tables import save
from efhorizon.planning.problem import problem
from efhorizon.render.forecasts import in_words, notes
from efhorizon.render.terminal.layout import literal

VERSION = shipped_model().version


@pytest.fixture
def mdp() -> ef.TabularMDP:
    return ef.examples.dense_rewards(horizon=6)


def test_python_gives_the_same_three_ways(mdp: ef.TabularMDP) -> None:
    analysis = ef.analyze(mdp)
    assert isinstance(analysis, ef.Analysis)
    assert ef.forecast(mdp) == ef.forecast(analysis) == ef.forecast(features(analysis)) == analysis.forecast
    assert {each.model for each in analysis.forecast.values()} == {VERSION}


def test_features_of_a_problem_are_those_of_its_analysis(mdp: ef.TabularMDP) -> None:
    """With the uniform policy, and with another one, which makes other features."""
    policy = np.tile([0.7, 0.3], (mdp.num_states, 1))
    for given in (None, policy):
        analysis = ef.analyze(mdp, exploration_policy=given)
        assert isinstance(analysis, ef.Analysis)
        found = problem_features(problem(mdp, policy=given))
        assert found == features(analysis)
        assert found.has_policy == (given is not None)
    assert features(analysis).optimal_chance == pytest.approx(0.7**6)


def test_an_unfinished_table_has_no_forecast() -> None:
    transitions = np.array([[1, 1], [-1, -1]], np.int32)
    table = ef.TabularMDP(transitions, np.zeros((2, 2)), 3, unexplored=np.array([False, True]))
    with pytest.raises(InvalidTableError, match="unfinished"):
        ef.forecast(table)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["analyze", "mine", *words]) == 0
    return capsys.readouterr().out


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mdp: ef.TabularMDP) -> None:
    save(mdp, tmp_path / "tables" / "mine")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("table")
def test_the_first_lines_say_whether_ppo_and_dqn_learn_it(
    capsys: pytest.CaptureFixture[str], mdp: ef.TabularMDP
) -> None:
    lines = [line.strip() for line in run(capsys).splitlines() if line.strip()]
    words = [in_words(each) for each in ef.forecast(mdp).values()]
    assert lines[1].startswith(words[0].verdict)
    text = " ".join(lines)
    assert words[1].verdict in text
    assert VERSION in text
    assert "GORP, a very simple algorithm, finds an optimal policy in" in text
    assert "that the paper gave" not in text
    assert text.index(words[1].verdict) < text.index("Effective horizon")


@pytest.mark.usefixtures("table")
def test_json(capsys: pytest.CaptureFixture[str], mdp: ef.TabularMDP) -> None:
    content: dict[str, Any] = json.loads(run(capsys, "--json"))
    assert content["forecast"] == {name: each.as_json() for name, each in ef.forecast(mdp).items()}
    assert content["sample_complexity"]["effective_horizon"] > 0  # the raw bound stays beside it


def test_notebooks_show_it(mdp: ef.TabularMDP) -> None:
    html = ef.analyze(mdp)._repr_html_()
    assert "forecast for PPO" in html
    assert "forecast for DQN" in html


def test_notes_say_whom_they_are_about(mdp: ef.TabularMDP) -> None:
    found = notes(forecasts(features(ef.analyze(mdp))))  # type: ignore[arg-type]
    assert len(found) == len(set(found))
    for note in found:
        of = [name for name, each in ef.forecast(mdp).items() if any(note.endswith(text[1:]) for text in each.notes)]
        assert len(of) == 2 or of[0].upper() in note
    assert all(literal(note) for note in found)
