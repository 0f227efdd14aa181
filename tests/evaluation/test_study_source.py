"""Results directories and exports: what is read, what is left out, what is refused, and that exports round-trip."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import analysis, published_file, results_directory, row, unfinished_figures

from efhorizon.bounds.analysis import analyze
from efhorizon.bounds.examples import delayed_rewards, sparse_rewards
from efhorizon.bounds.registry import sample_complexity_bound, unregister
from efhorizon.errors import StoreError
from efhorizon.evaluation.source import study_data
from efhorizon.evaluation.summary_csv import encoded_summaries, read_summaries
from efhorizon.evaluation.tables import all_tables
from efhorizon.study.records import PlanRecord, StudyRecord
from efhorizon.study.results import Results

INF = math.inf


def test_theory_and_practice_come_together(tmp_path: Path) -> None:
    rows = [row("a", seed=seed, sample_complexity=value) for seed, value in enumerate((10, 30, 20))]
    rows += [row("a", "dqn", sample_complexity=None, final_return=0.5)]
    data = study_data(results_directory(tmp_path / "results", [analysis("b"), analysis("a")], rows))
    assert [each.name for each in data.summaries] == ["a", "b"]
    found = data.summaries[0]
    assert (found.origin, found.family, found.type, found.num_states) == ("minigrid", "a game", "original", 50)
    assert (found.reward_min, found.reward_exploration, found.reward_optimal) == (0.0, 0.25, 1.0)
    assert (found.k_min, found.epw, found.effective_horizon, found.effective_horizon_kind) == (1, 3, 2.0, "exact")
    assert found.effective_horizon_simple == pytest.approx(3.0)  # k = 2 with m = 10 beats k = 1 with m = 1000
    assert found.bounds == {
        "worst_case": pytest.approx(math.log10(5e10)),
        "ucb": pytest.approx(math.log10(5000)),
        "effective_horizon": pytest.approx(4.0),
        "goal": INF,  # does not apply, so it promises nothing
        "mine": pytest.approx(math.log10(700)),
        "effective_horizon_simple": pytest.approx(5.0),
    }
    assert found.sample_complexities == {"ppo": 20.0, "dqn": INF}
    assert found.budgets == {"ppo": 5e6, "dqn": 5e6}
    assert found.returns == {"ppo": 1.0, "dqn": 0.5}
    assert data.summaries[1].sample_complexities == {}
    assert data.titles["mine"] == "title of mine"
    assert len(data.runs) == 4
    assert data.notes == ()


def test_an_infinite_horizon_and_a_worst_case_too_long_for_json(tmp_path: Path) -> None:
    content = analysis("a", horizon_value=None)
    content["analysis"]["sample_complexity"]["worst_case"] = None
    content["analysis"]["horizon"] = 100_000
    found = study_data(results_directory(tmp_path / "results", [content], [])).summaries[0]
    assert (found.effective_horizon, found.bounds["effective_horizon"]) == (INF, INF)
    assert found.bounds["worst_case"] == pytest.approx(5 + 100_000 - math.log10(2))


def test_shaped_and_exploring_mdps(tmp_path: Path) -> None:
    contents = [
        analysis("a"),
        analysis("s", unshaped="a", shaping="Distance"),
        analysis("a", exploration="human"),
    ]
    rows = [row("a", seed=0), row("a@human", seed=0, sample_complexity=7)]
    data = study_data(results_directory(tmp_path / "results", contents, rows))
    assert [(each.name, each.type, each.base_name) for each in data.summaries] == [
        ("a", "original", "a"),
        ("a@human", "exploration", "a"),
        ("s", "shaped", "s"),
    ]
    assert data.summaries[1].sample_complexities == {"ppo": 7.0}


def test_unfinished_analyses_are_left_out_and_named(tmp_path: Path) -> None:
    unfinished = analysis("u")
    unfinished["analysis"] = unfinished_figures()
    data = study_data(results_directory(tmp_path / "results", [analysis("a"), unfinished], [row("u"), row("z")]))
    assert [each.name for each in data.summaries] == ["a"]
    assert set(data.analyses) == {"a", "u"}
    assert data.notes == (
        "unfinished tables, whose figures are intervals, are left out: u",
        "2 rows of MDPs (or of starts) without a complete analysis: left out",
    )


def test_mdps_with_nothing_to_learn_are_left_out_and_named(tmp_path: Path) -> None:
    same = analysis("s")
    same["analysis"]["worst_return"] = same["analysis"]["optimal_return"]
    data = study_data(results_directory(tmp_path / "results", [analysis("a"), same], [row("a"), row("s")]))
    assert [each.name for each in data.summaries] == ["a"]
    assert set(data.analyses) == {"a", "s"}
    assert data.notes[0] == (
        "tables in which every action sequence earns the same, so that there is nothing to learn, are left out: s"
    )


def test_reading_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results"
    (path / "analyses").mkdir(parents=True)
    (path / "analyses" / "a.json").write_text(json.dumps(analysis("a")))
    assert len(study_data(path).summaries) == 1
    assert [each.name for each in path.iterdir()] == ["analyses"]


def test_a_real_analysis_with_a_bound_of_ones_own(tmp_path: Path) -> None:
    @sample_complexity_bound("always_12", title="twelve steps")
    def always_12(problem: object) -> int:
        return 12

    try:
        result = analyze(sparse_rewards(3, 2))
    finally:
        unregister("always_12")
    content = analysis("toy", analysis=result.as_json(), titles=dict(result.titles))
    data = study_data(results_directory(tmp_path / "results", [content], [row("toy")]))
    assert data.summaries[0].bounds["always_12"] == pytest.approx(math.log10(12))
    assert data.summaries[0].bounds["worst_case"] == pytest.approx(math.log10(3 * 4))
    (table, _) = all_tables(data, num_resamples=10).bounds
    assert {row.name: row.title for row in table.rows}["always_12"] == "twelve steps"


def test_formulas_agree_with_the_bounds_of_the_package(tmp_path: Path) -> None:
    """What is computed from the columns of a summary.csv is what the analysis of the table says."""
    contents = [
        analysis(name, analysis=analyze(mdp).as_json(), titles={})
        for name, mdp in (("sparse", sparse_rewards(6, 3)), ("delayed", delayed_rewards(5, 2)))
    ]
    summaries = study_data(results_directory(tmp_path / "results", contents, [])).summaries
    (tmp_path / "summary.csv").write_bytes(encoded_summaries([replace(each, bounds={}) for each in summaries]))
    for read, ours in zip(read_summaries(tmp_path / "summary.csv"), summaries, strict=True):
        assert len(read.bounds) == 6
        for name, value in read.bounds.items():
            assert value == pytest.approx(ours.bounds[name]), (read.name, name)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("analyses/x.json", "[", "not an analysis"),
        ("analyses/x.json", "[" * 100_000, "not an analysis"),
        ("analyses/x.json", "{}", "not an analysis"),
        ("analyses/x.json", json.dumps(analysis("a") | {"format_version": 9}), "another version of efhorizon"),
        ("analyses/x.json", json.dumps(analysis("a")), "there is another analysis of a"),
        ("analyses/x.json", json.dumps(analysis("x") | {"id": 5}), "id must be a text, not 5"),
        ("analyses/x.json", json.dumps(analysis("x") | {"titles": {"ucb": 1}}), "ucb must be a text"),
        ("rows/x.json", "null", "not a row"),
        ("rows/x.json", json.dumps(row("a") | {"seed": -1}), "seed must be a whole number"),
        ("results.json", '{"format": "other"}', "not the mark of a results directory"),
    ],
)
def test_bad_results_are_refused(tmp_path: Path, file: str, text: str, message: str) -> None:
    path = results_directory(tmp_path / "results", [analysis("a")], [])
    (path / file).write_text(text)
    with pytest.raises(StoreError, match=message) as caught:
        study_data(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "analysis: horizon must be a whole number of at least 1, not 0"),
        ({"num_states": 2.5}, "analysis: num_states must be a whole number, not 2.5"),
        (
            {"sample_complexity": {"a": 1, "ucb": "many"}},
            "analysis: sample_complexity: ucb must be a number, not 'many'",
        ),
        ({"effective_horizon": None}, "analysis: effective_horizon must be an object, not None"),
        ({"min_k": True}, "analysis: min_k must be a whole number, not True"),
        ({"mood": 1}, "analysis: a field that this version of efhorizon does not know: mood"),
    ],
)
def test_bad_figures_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    content = analysis("a")
    content["analysis"] |= changes
    with pytest.raises(StoreError, match=message):
        study_data(results_directory(tmp_path / "results", [content], []))


def test_places_without_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file or directory"):
        study_data(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="no results here"):
        study_data(tmp_path)


def test_a_folder_with_a_summary_is_read(tmp_path: Path) -> None:
    published_file(tmp_path / "summary.csv")
    data = study_data(tmp_path)
    assert (len(data.summaries), data.path, data.analyses, data.runs) == (6, tmp_path, {}, [])
    assert data.titles["effective_horizon"] == "effective horizon, GORP (Lemma 5.3)"


def test_the_note_of_a_study_is_passed_on(tmp_path: Path) -> None:
    folder = results_directory(tmp_path / "results", [analysis("a")], [])
    assert study_data(folder).notes == ()
    plan = PlanRecord(names=["a"], runs=[], max_k=3, max_states=None, max_minutes=None, note="a small budget")
    Results(folder).write_study(StudyRecord(efhorizon="1.0", plan=plan, outcomes=[]))
    assert study_data(folder).notes == ("a small budget",)
