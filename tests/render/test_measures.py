"""A measure of hardness in every face of Table 2 and of an analysis: an order, no factor, an interval if estimated."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_data import published_file
from rich.console import Console

from efhorizon import TabularMDP
from efhorizon.bounds.analysis import Analysis, analyze
from efhorizon.bounds.measures import Measure
from efhorizon.evaluation.records import Measurement
from efhorizon.evaluation.source import StudyData, study_data
from efhorizon.evaluation.tables import Tables, tables_by_rule
from efhorizon.render.numbers import MISSING
from efhorizon.render.terminal.analysis import one_analysis
from efhorizon.render.terminal.evaluation import evaluation


@pytest.fixture
def study(tmp_path: Path) -> tuple[StudyData, Tables, Tables]:
    """Six MDPs. Their diameters are in the order of PPO's four sample complexities; one MDP has none."""
    data = study_data(published_file(tmp_path / "summary.csv"))
    diameters = {"pong": 1.0, "hero": 3.0, "maze": 2.0, "MiniGrid-A": 4.0, "ninja": 5.0}
    summaries = [
        replace(each, measures={"diameter": Measurement(diameters[each.family])} if each.family in diameters else {})
        for each in data.summaries
    ]
    data = replace(data, summaries=summaries, titles=data.titles | {"diameter": "diameter"})
    return data, *tables_by_rule(data, num_resamples=200)


def shown(parts: object) -> str:
    console = Console(file=io.StringIO(), width=240)
    for part in parts:  # type: ignore[attr-defined]
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_in_the_terminal(study: tuple[StudyData, Tables, Tables]) -> None:
    text = shown(evaluation(*study[1:]))
    first = next(line for line in text.splitlines() if line.strip().startswith("diameter"))
    assert first.split()[:3] == ["diameter", "1.00", MISSING]
    assert "no median ratio: a measure of hardness is no number of timesteps, so it is off by no factor" in text


def test_in_markdown(study: tuple[StudyData, Tables, Tables]) -> None:
    publication = pytest.importorskip("efhorizon.render.markdown", exc_type=ImportError)
    text = dict(publication.publication(*study))["tables.md"]
    rows = [line for line in text.splitlines() if line.startswith("| diameter (on 5 of the 6 MDPs)")]
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert cells[1].startswith("1.00 [")
    assert cells[3].startswith(MISSING)
    assert "a measure of hardness is no number of timesteps" in text
    before, after = text.index("| **effective horizon, GORP"), text.index("| DQN, empirical")
    assert before < text.index("| diameter") < after


def test_in_the_report(study: tuple[StudyData, Tables, Tables]) -> None:
    front_page = pytest.importorskip("efhorizon.render.html.front_page", exc_type=ImportError)
    lines = front_page.metric_lines(study[1].bounds)
    titles = [line.title for line in lines]
    assert titles.index("effective horizon, GORP") < titles.index("diameter") < titles.index("GORP, empirical")
    correlation, ratio, *_ = lines[titles.index("diameter")].groups[0]
    assert (correlation.value, ratio.value) == ("1.00", MISSING)
    assert ratio.reason is not None
    assert "no number of timesteps" in ratio.reason


def test_in_an_analysis() -> None:
    found = analyze(TabularMDP([[0, -1]], [[0.0, 1.0]], horizon=2))
    assert isinstance(found, Analysis)
    too_large = Measure(None, reason="too many states", harder="larger")
    changed = replace(found, measures={**found.measures, "diameter": too_large})
    text = shown(one_analysis(Path("small"), changed))
    lines = {line.strip() for line in text.splitlines()}
    assert any(line.startswith("number of states") and line.endswith("1 larger is harder") for line in lines)
    assert any(line.startswith("diameter") and line.endswith(f"{MISSING} too many states") for line in lines)
    guessed = found.measures["weight_guessing"]
    assert guessed.low is not None
    assert guessed.value is not None
    assert guessed.low < guessed.value
    assert any(line.startswith("random weight guessing") and " to " in line for line in lines)
