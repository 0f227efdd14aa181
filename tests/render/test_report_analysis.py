"""Reading analysis files that may be anything."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from synthetic_study import analysis as made

from efhorizon.errors import StoreError
from efhorizon.render.html.analysis import Interval, analysis_of


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
    found = analysis_of("mdp", content)
    assert found.is_complete
    assert found.figures["optimal_return"] == 10.0
    assert found.effective_k == content["analysis"]["effective_horizon"]["k"]
    assert [entry.k for entry in found.by_k] == [1, 2, 3]
    assert found.failures is not None
    assert (found.failures.state, found.failures.time) == (9, 3)
    assert found.layers == tuple(content["table"]["layers"])
    assert found.episode is not None
    assert found.episode.actions == ("UP", "RIGHT") * 4


def test_actions_that_nothing_tells_apart_are_one(content: dict[str, Any]) -> None:
    found = analysis_of("mdp", content)
    assert found.deciding is not None
    names = [action["name"] for action in content["deciding"]["actions"]]
    assert [law.names for law in found.deciding.actions] == [(name,) for name in names[:-2]] + [tuple(names[-2:])]


def test_what_may_be_missing(content: dict[str, Any]) -> None:
    for path in ("deciding", "episode", "start_picture", "unshaped", "table.verification", "analysis.most_failures"):
        content = changed(content, path, None)
    for name in ("seconds", "provenance", "game"):
        del content[name]
    found = analysis_of("mdp", content)
    assert (found.deciding, found.episode, found.verification, found.failures) == (None, None, None, None)


def test_an_unfinished_analysis_has_intervals() -> None:
    content = {
        "suite": "atari",
        "analysis": {
            "complete": False,
            "horizon": 10,
            "num_actions": 3,
            "optimal_return": [1.0, 5.0],
            "num_states": [40, None],
            "effective_horizon": {"value": [1.0, 10.0], "k": None, "m": None, "kind": "interval", "by_k": {}},
            "sample_complexity": {"worst_case": 295250, "ucb": [1200, None], "goal": None},
            "reasons": {"goal": "the table is unfinished"},
        },
    }
    found = analysis_of("mdp", content)
    assert not found.is_complete
    assert found.figures["num_states"] == Interval(40, None)
    assert found.effective_horizon == Interval(1.0, 10.0)
    assert found.sample_complexity == {"worst_case": 295250, "ucb": Interval(1200, None), "goal": None}


def test_numbers_larger_than_any_float(content: dict[str, Any]) -> None:
    found = analysis_of("mdp", changed(content, "analysis.sample_complexity.worst_case", 10**400))
    assert found.sample_complexity["worst_case"] == 10**400


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
    with pytest.raises(StoreError, match="analysis of mdp"):
        analysis_of("mdp", changed(content, path, value))
