"""What policies change: pairs, Table 3b by label, and demonstrators by their noise, by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import analysis, clone, graded_study, results_directory, row, summary, variant

from efhorizon.evaluation.bound_table import bound_table
from efhorizon.evaluation.changes import change_points
from efhorizon.evaluation.policies import RANDOM_PLAY, Harm, graded_table, policy_pairs, policy_tables
from efhorizon.evaluation.records import PolicySummary
from efhorizon.evaluation.rules import under
from efhorizon.evaluation.source import StudyData, study_data, write_export
from efhorizon.evaluation.tables import all_tables, plain

INF = math.inf
RESAMPLES = 50


def test_pairs_are_an_mdp_and_its_variants() -> None:
    pairs = policy_pairs(graded_study())
    assert [(pair.old.name, pair.policy.label) for pair in pairs] == [
        ("a", "cloned-0.2"),
        ("a", "cloned-0.9"),
        ("b", "cloned-0.2"),
        ("b", "cloned-0.9"),
        ("b", "other-levels"),
    ]
    assert (pairs[0].old.needed["ppo"], pairs[0].new.needed["ppo"]) == (1e5, 1e3)
    assert policy_pairs([variant("gone", clone(0.5), 1e3, 1.0)]) == ()


def test_table_3b_for_each_label() -> None:
    """cloned-0.9: measured 1/10 twice; predicted 1/10 and 10^-1.5, off by 1 and 10^0.5."""
    tables = {each.policy.label: each.table for each in policy_tables(graded_study(), {}, num_resamples=RESAMPLES)}
    assert list(tables) == ["cloned-0.2", "cloned-0.9", "other-levels"]
    found = tables["cloned-0.9"]
    assert (found.num_pairs, found.num_both_solved) == (2, 2)
    horizon = next(each for each in found.rows if each.name == "effective_horizon")
    assert horizon.metrics["median_ratio_log10"].value == pytest.approx(math.log10((1 + 10**0.5) / 2))
    assert (tables["cloned-0.2"].num_pairs, tables["cloned-0.2"].num_became_unsolved) == (2, 1)
    one_label = [each for each in graded_study() if each.label in ("", "other-levels")]
    assert policy_tables(one_label, {}, num_resamples=RESAMPLES) == ()  # Table 3b says it all


def test_points_of_the_figure() -> None:
    points = change_points(graded_study(), "exploration", "ppo", "effective_horizon")
    assert [(point.name, point.predicted, point.measured) for point in points] == [
        ("a@cloned-0.2", -2.0, pytest.approx(-2.0)),
        ("a@cloned-0.9", -1.0, pytest.approx(-1.0)),
        ("b@cloned-0.9", -1.5, pytest.approx(-1.0)),
        ("b@other-levels", 0.0, 0.0),
    ]
    assert change_points(graded_study(), "exploration", "ppo", "no such bound") == ()


def test_demonstrators_from_random_to_optimal() -> None:
    found = graded_table(graded_study())
    assert found is not None
    assert [(grade.title, grade.noise) for grade in found.grades] == [
        (RANDOM_PLAY, 1.0),
        ("clone of noise 0.9", 0.9),
        ("clone of noise 0.2", 0.2),
    ]
    random, noisy, good = found.grades
    assert (random.effective_horizon, random.horizon_change, random.needed_change_log10) == (3.0, 0.0, 0.0)
    assert (noisy.effective_horizon, noisy.horizon_change, noisy.num_both_solved) == (1.75, -1.25, 2)
    assert noisy.needed_change_log10 == pytest.approx(-1.0)
    assert (good.effective_horizon, good.num_both_solved) == (1.75, 1)
    assert good.needed_change_log10 == pytest.approx(-2.0)
    assert [mdp.name for mdp in found.mdps] == ["a", "b"]  # c has no policy, and other levels have no noise
    assert found.harms == (
        Harm("b", "clone of noise 0.9", "clone of noise 0.2", "effective horizon", 1.5, 2.5),
        Harm("b", "clone of noise 0.9", "clone of noise 0.2", "ppo", 1e5, INF),
    )
    assert graded_table([each for each in graded_study() if each.policy is None]) is None


def test_what_a_policy_solves_by_playing_is_not_learnt() -> None:
    """With noise 0.2 an episode is optimal so often that the rule is passed before anything is learnt."""
    studied = [summary("a", sample_complexities={"ppo": 1e5}, budgets={"ppo": 5e6})]
    studied.append(variant("a", clone(0.2), 1e3, 1.0, random_play=500.0))
    (pair,) = policy_pairs(under("learnt", studied))
    assert pair.new.is_solved_by_play
    assert not pair.old.is_solved_by_play
    assert (pair.old.needed, pair.new.needed) == ({"ppo": 1e5}, {})
    assert policy_pairs(under("paper", studied))[0].new.needed == {"ppo": 1e3}


def test_variants_do_not_count_as_mdps() -> None:
    data = StudyData(Path(), {}, [], graded_study(), {})
    tables = all_tables(data, num_resamples=RESAMPLES)
    assert (tables.counts.num_mdps, tables.counts.num_run["ppo"]) == (3, 3)
    assert [each.name for each in tables.properties] == ["a", "b", "c"]
    assert sum(cell.count for cell in tables.solvability[0].cells) == 3
    assert bound_table(graded_study(), "ppo", {}, num_resamples=RESAMPLES).num_mdps == 3
    assert all(table.num_pairs == 0 for table in tables.shaping)
    assert len(plain(tables)["pairs"]) == 5


def explorer(**changes: Any) -> dict[str, Any]:
    record = {"label": "clone", "network": "n1", "probabilities": "p1", "num_states": 60, "facts": {"noise": 0.5}}
    return record | {"title": "a clone", "method": "cloned"} | changes


def study_with_a_variant(folder: Path, *networks: str) -> Path:
    """An MDP and a variant whose policy is network n1, with a run of PPO from each of these networks."""
    variant = analysis("a@clone", horizon_value=1.0, exploration="clone", explorer=explorer())
    rows = [row("a"), *(row("a@clone", hyperparameters={"initial": each}, seed=0) for each in networks)]
    rows[1:] = [{**each, "sample_complexity": 1_000 * place} for place, each in enumerate(rows[1:], 1)]
    return results_directory(folder, [analysis("a"), variant], rows)


def test_a_variant_counts_the_runs_from_its_own_network(tmp_path: Path) -> None:
    data = study_data(study_with_a_variant(tmp_path / "s", "n0", "n1"))
    base, found = data.summaries
    assert (found.name, found.type, found.base_name, found.label) == ("a@clone", "exploration", "a", "clone")
    assert found.policy == PolicySummary("clone", "a clone", "cloned", 0.5)
    assert (base.sample_complexities, found.sample_complexities) == ({"ppo": 20_000.0}, {"ppo": 2_000.0})
    assert "1 row begun with a network other than the one analyzed: left out" in data.notes


def test_an_export_keeps_variants(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    data = study_data(study_with_a_variant(tmp_path / "s", "n1"))
    write_export(tmp_path / "export", data)
    again = study_data(tmp_path / "export")
    assert again.summaries == data.summaries
    assert again.analyses == data.analyses
    (from_csv,) = [each for each in study_data(tmp_path / "export" / "summary.csv").summaries if each.label]
    assert (from_csv.base_name, from_csv.policy) == ("a", data.summaries[1].policy)
    write_export(tmp_path / "again", again)
    files = ("mdps.parquet", "runs.parquet", "summary.csv")
    assert all((tmp_path / "export" / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in files)
