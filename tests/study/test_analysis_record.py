"""Analyses that may come from anywhere: what is in them, what may be missing, and that a wrong field is named."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation_data import unfinished_figures
from synthetic_study import analysis as made

from efhorizon.bounds.analysis import analyze
from efhorizon.bounds.interval import Interval
from efhorizon.errors import StoreError
from efhorizon.evaluation.summary_csv import FILE, read_summaries
from efhorizon.io.decode import plain
from efhorizon.mdp import TabularMDP
from efhorizon.study import export
from efhorizon.study.analysis_record import AnyAnalysis, CompleteFigures, UnfinishedFigures, decoded_analysis

STUDY = Path(__file__).parents[2] / "data" / "study"


def read(content: dict[str, Any]) -> AnyAnalysis:
    return decoded_analysis(json.dumps(content), "a.json")


@pytest.fixture
def content() -> dict[str, Any]:
    return made("mdp", "atari", 0, np.random.default_rng(1))


def changed(content: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy in which one field is another; None as the last key's value stays a value."""
    other = copy.deepcopy(content)
    *outer, last = path.split(".")
    inner: Any = other
    for key in outer:
        inner = inner[int(key) if isinstance(inner, list) else key]
    inner[int(last) if isinstance(inner, list) else last] = value
    return other


def test_a_whole_analysis(content: dict[str, Any]) -> None:
    found = read(content)
    assert isinstance(found.figures, CompleteFigures)
    assert found.figures.optimal_return == 10.0
    assert found.figures.effective_horizon.k == content["analysis"]["effective_horizon"]["k"]
    assert list(found.figures.effective_horizon.by_k) == [1, 2, 3]
    assert found.figures.most_failures is not None
    assert (found.figures.most_failures.state, found.figures.most_failures.time) == (9, 3)
    assert found.table is not None
    assert found.table.layers == content["table"]["layers"]
    assert found.episode is not None
    assert found.episode.actions == ["UP", "RIGHT"] * 4


def test_a_name_says_with_what_policy_it_was_explored(content: dict[str, Any]) -> None:
    assert read(content).name == "mdp"
    assert read(content | {"exploration": "human"}).name == "mdp@human"
    assert read(content | {"id": "mdp@human", "exploration": "human"}).name == "mdp@human"


def test_what_may_be_missing(content: dict[str, Any]) -> None:
    for path in ("deciding", "episode", "start_picture", "unshaped", "table.verification", "analysis.most_failures"):
        content = changed(content, path, None)
    for name in ("seconds", "provenance", "game"):
        del content[name]
    found = read(content)
    assert (found.deciding, found.episode, found.pictures, found.seconds) == (None, None, {}, None)


def test_an_unfinished_analysis_has_intervals() -> None:
    content = {"format": "efhorizon-analysis", "format_version": 1, "id": "mdp", "suite": "atari", "titles": {}}
    figures = read(content | {"analysis": unfinished_figures()}).figures
    assert isinstance(figures, UnfinishedFigures)
    assert figures.num_states == Interval(40, None)
    assert figures.effective_horizon.value == Interval(1.0, 10.0)
    assert figures.sample_complexity == {"worst_case": 295250, "ucb": Interval(1200, None), "goal": None}


def test_the_analysis_of_a_real_unfinished_table_is_one() -> None:
    mdp = TabularMDP([[0, 1], [-1, -1]], [[0, 1], [0, 0]], 3, unexplored=[False, True])
    content = {"format": "efhorizon-analysis", "format_version": 1, "id": "mdp", "suite": "atari", "titles": {}}
    written = analyze(mdp).as_json()
    again = json.loads(json.dumps(plain(read(content | {"analysis": written}))))["analysis"]
    assert {name: again[name] for name in written} == json.loads(json.dumps(written))


def test_numbers_larger_than_any_float(content: dict[str, Any]) -> None:
    found = read(changed(content, "analysis.sample_complexity.worst_case", 10**400))
    assert found.figures.sample_complexity["worst_case"] == 10**400
    assert json.loads(json.dumps(plain(found)))["analysis"]["sample_complexity"]["worst_case"] == 10**400


def test_the_published_analyses_and_runs_come_back_as_they_were() -> None:
    """Nothing of them is lost, and nothing is added: fields that older versions did not write stay away."""
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    texts = parquet.read_table(STUDY / export.MDPS).column("analysis_json").to_pylist()
    analyses = [mdp.analysis for mdp in export.read_mdps(STUDY / export.MDPS)]
    assert len(analyses) == len(read_summaries(STUDY / FILE)) > 0
    for text, analysis in zip(texts, analyses, strict=True):
        assert json.dumps(plain(analysis), sort_keys=True) == text
    cells = parquet.read_table(STUDY / export.RUNS, columns=["protocol", "provenance", "hyperparameters"]).to_pylist()
    rows = export.read_runs(STUDY / export.RUNS)
    assert rows
    for row, written in zip(rows, cells, strict=True):
        content = plain(row)
        assert {name: json.dumps(content[name]) for name in written} == written


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("suite", 3),
        ("analysis", []),
        ("analysis.horizon", 0),
        ("analysis.num_actions", "3"),
        ("analysis.optimal_return", [1]),
        ("analysis.optimal_return", float("nan")),
        ("analysis.effective_horizon", 4.0),
        ("analysis.effective_horizon.by_k", {"one": {}}),
        ("analysis.effective_horizon.by_k", {"1": 18}),
        ("analysis.effective_horizon.by_k.1", {"exact_m": -1}),
        ("analysis.sample_complexity", [1, 2]),
        ("analysis.sample_complexity.ucb", "many"),
        ("analysis.reasons", {"ucb": 1}),
        ("analysis.most_failures", {"time": 1}),
        ("titles", {"ucb": None}),
        ("table", "table"),
        ("table.layers", {"0": 1}),
        ("table.layers", [1, None]),
        ("table.num_raw_states", -5),
        ("deciding.actions", "UP"),
        ("deciding.actions.0.q", None),
        ("deciding.actions.0.name", ["UP"]),
        ("deciding.actions.0.histogram.probabilities", [0.5]),
        ("deciding.actions.0.histogram.probabilities.0", 1.5),
        ("deciding.time", 1.5),
        ("episode.frames", 0),
        ("episode.actions", [1, 2]),
        ("episode.rewards", ["a"]),
        ("episode.picture", None),
        ("seconds", {"build": "long"}),
        ("provenance", "me"),
    ],
)
def test_a_wrong_field_is_named(content: dict[str, Any], path: str, value: object) -> None:
    with pytest.raises(StoreError) as caught:
        read(changed(content, path, value))
    message = str(caught.value)
    assert message.startswith("a.json: ")
    assert "\n" not in message
    if not isinstance(value, float):  # NaN is no JSON at all
        named = [step for step in path.split(".") if not step.isdecimal()]
        assert all(step in message for step in named), message


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("analysis.horizon", 0, "analysis: horizon must be a whole number of at least 1, not 0"),
        ("analysis.optimal_return", [1], "analysis: optimal_return must be a number, not [1]"),
        (
            "analysis.effective_horizon.by_k",
            {"one": {}},
            "the names in analysis: effective_horizon: by_k must each be a whole number",
        ),
        (
            "analysis.effective_horizon.by_k",
            {"1": {}, "2": {"exact_m": -1}},
            "analysis: effective_horizon: by_k: 2: exact_m must be a whole number of at least 1, not -1",
        ),
        ("deciding.actions.0.q", None, "deciding: actions[0]: q must be a number, not None"),
        ("table.layers", [1, None], "table: layers[1] must be a whole number, not None"),
        ("table.layers", [0] * 100_001, "table: layers must be a list of at most 100,000, not [0, 0,"),
        ("episode.picture", "", "episode: picture must be a text of at least 1 character, not ''"),
        ("deciding.mood", 1, "deciding: a field that this version of efhorizon does not know: mood"),
    ],
)
def test_the_message_says_what_is_wrong(content: dict[str, Any], path: str, value: object, message: str) -> None:
    with pytest.raises(StoreError) as caught:
        read(changed(content, path, value))
    assert str(caught.value).startswith(f"a.json: {message}")


def test_infinity_by_another_name_is_refused(content: dict[str, Any]) -> None:
    text = json.dumps(content).replace('"gamma": 1.0', '"gamma": 1e999')
    with pytest.raises(StoreError, match="analysis: gamma must be a finite number, not inf"):
        decoded_analysis(text, "a.json")
