"""Tables 1 and 3, the distribution of the least k and the lists, by hand; everything as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from evaluation_data import published_file, solved_or_not, summary

from efhorizon.evaluation.changes import NO_CHANGE, change_table
from efhorizon.evaluation.records import MdpSummary
from efhorizon.evaluation.solvability import min_k_distribution, solvability_table
from efhorizon.evaluation.source import study_data
from efhorizon.evaluation.tables import all_tables, plain

INF = math.inf
RESAMPLES = 200


def test_table_1_by_hand(tmp_path: Path) -> None:
    table = solvability_table(study_data(published_file(tmp_path / "summary.csv")).summaries)
    cells = {(cell.is_1_qvi_solvable, cell.is_solved): cell for cell in table.cells}
    assert {key: cell.count for key, cell in cells.items()} == {
        (True, True): 3,
        (True, False): 1,
        (False, True): 1,
        (False, False): 1,
    }
    assert cells[True, False].names == ("ninja_easy_l0_10_fs8",)
    assert [cell.published for cell in table.cells] == [80, 24, 15, 36]
    assert table.agreement == pytest.approx(4 / 6)
    assert table.published_agreement == pytest.approx(116 / 155)
    assert table.num_left_out == 0


def test_table_1_leaves_out_what_is_not_known() -> None:
    studied = [solved_or_not("a", 10.0, None), solved_or_not("b", 10.0, None, k_min=None), summary("c")]
    table = solvability_table(studied)
    assert (sum(cell.count for cell in table.cells), table.num_left_out) == (1, 2)
    assert solvability_table(studied, "dqn").agreement is None
    assert solvability_table(studied, "dqn").cells[0].published is None


def test_distribution_of_the_least_k_by_hand() -> None:
    studied = [
        solved_or_not("a", 10.0, None, k_min=1),
        solved_or_not("b", INF, None, k_min=1),
        solved_or_not("c", INF, None, k_min=3),
        summary("d", k_min=3),
        summary("e", k_min=None),
    ]
    found = min_k_distribution(studied)
    assert [(row.k, row.num_solved, row.num_unsolved, row.num_not_run) for row in found.rows] == [
        (1, 1, 1, 0),
        (3, 0, 1, 1),
    ]
    assert (found.share_of_1, found.num_unknown) == (0.5, 1)
    assert min_k_distribution([]).share_of_1 is None


def shaped_study() -> list[MdpSummary]:
    """Three originals (10^4 timesteps each, bound 10^5) and their shaped versions."""
    old = {"bounds": {"effective_horizon": 5.0, "ucb": 3.0, "goal": INF}}
    studied = [solved_or_not(name, 1e4, 1e4, family=name, **old) for name in ("a", "b", "c", "d")]
    for name, ppo, bound in (("a", 1e3, 3.0), ("b", 1e4, 4.0), ("c", 1e6, INF), ("d", INF, 6.0)):
        bounds = {"effective_horizon": bound, "ucb": 3.0, "goal": INF if name != "b" else 4.0}
        studied.append(
            solved_or_not(f"{name}-shaped", ppo, None, type="shaped", unshaped=name, family=name, bounds=bounds)
        )
    return [*studied, solved_or_not("orphan", 1e3, None, type="shaped", unshaped="missing")]


def test_table_3a_by_hand() -> None:
    table = change_table(shaped_study(), "shaping", "ppo", {"ucb": "UCB"}, num_resamples=RESAMPLES)
    assert (table.num_pairs, table.num_both_solved) == (4, 3)
    assert (table.num_became_solved, table.num_became_unsolved) == (0, 1)
    rows = {row.name: row for row in table.rows}
    # changes 1/10, 1, 100; predicted 1/100, 1/10, infinite: in order, and off by 10, 10, infinity
    horizon = rows["effective_horizon"]
    assert horizon.metrics["correlation"].value == pytest.approx(1.0)
    assert horizon.metrics["median_ratio_log10"].value == pytest.approx(1.0)
    assert horizon.published == {"correlation": 0.48, "median_ratio_log10": pytest.approx(math.log10(2.4))}
    # UCB does not change: off by 10, 1, 100
    ucb = rows["ucb"]
    assert (ucb.metrics["correlation"].value, ucb.metrics["correlation"].reason) == (None, NO_CHANGE)
    assert ucb.metrics["median_ratio_log10"].value == pytest.approx(1.0)
    assert ucb.published == {"correlation": 0.0, "median_ratio_log10": pytest.approx(math.log10(1.3))}
    # where a bound is infinite before and after it predicts nothing
    assert (rows["goal"].num_pairs, rows["goal"].num_undefined) == (1, 2)
    assert rows["goal"].metrics["median_ratio_log10"].value == INF
    assert change_table(shaped_study(), "shaping", "dqn", {}, num_resamples=RESAMPLES).rows == ()


def test_table_3_takes_the_change_of_other_algorithms_as_predictions() -> None:
    studied = [solved_or_not(name, 1e4, 1e5, family=name) for name in ("a", "b", "c", "d")]
    for name, ppo, dqn in (("a", 1e3, 1e4), ("b", 1e4, 1e3), ("c", 1e6, INF), ("d", 1e4, None)):
        studied.append(solved_or_not(f"{name}-shaped", ppo, dqn, type="shaped", unshaped=name, family=name))
    nothing, row = change_table(studied, "shaping", "ppo", {}, num_resamples=RESAMPLES).rows
    assert (nothing.name, nothing.kind, nothing.num_pairs) == ("no_change", "baseline", 4)
    assert nothing.metrics["correlation"].value is None
    assert nothing.metrics["median_ratio_log10"].value == pytest.approx(math.log10((1 + 10) / 2))  # of 1, 1, 10, 100
    assert (row.name, row.title, row.kind, row.published) == ("other_algorithm", "DQN, empirical", "baseline", None)
    # PPO 1/10, 1, 100; DQN 1/10, 1/100, infinite, not run: off by 1, 100, infinity
    assert (row.num_pairs, row.num_undefined) == (3, 1)
    assert row.metrics["correlation"].value == pytest.approx(0.5)
    assert row.metrics["median_ratio_log10"].value == pytest.approx(2.0)
    _, row = change_table(studied, "shaping", "dqn", {}, num_resamples=RESAMPLES).rows
    assert (row.title, row.num_pairs) == ("PPO, empirical", 2)


def test_table_3b_pairs_a_policy_with_the_uniform_one() -> None:
    studied = [solved_or_not("a", 1e4, None, bounds={"effective_horizon": 5.0, "covering_length": 7.0})]
    bounds = {"effective_horizon": 4.0, "covering_length": 8.0}
    studied.append(solved_or_not("a@human", 1e3, None, type="exploration", bounds=bounds))
    table = change_table(studied, "exploration", "ppo", {}, num_resamples=RESAMPLES)
    rows = {row.name: row for row in table.rows}
    assert table.num_both_solved == 1
    assert rows["effective_horizon"].metrics["median_ratio_log10"].value == pytest.approx(0.0)
    assert rows["effective_horizon"].metrics["correlation"].reason == "fewer than two MDPs were solved"
    assert rows["covering_length"].metrics["median_ratio_log10"].value == pytest.approx(2.0)
    assert rows["covering_length"].published == {
        "correlation": -0.36,
        "median_ratio_log10": pytest.approx(math.log10(2.5e4)),
    }


def test_lists_and_counts(tmp_path: Path) -> None:
    tables = all_tables(study_data(published_file(tmp_path / "summary.csv")), num_resamples=RESAMPLES)
    assert tables.counts.num_mdps == 6
    assert tables.counts.num_solved == {"ppo": 4, "dqn": 3}
    assert tables.counts.num_solved_by_either == 5
    assert [each.name for each in tables.properties][:2] == ["hero_10_fs30", "pong_10_fs30"]  # by suite and name
    pong = tables.properties[1]
    assert (pong.num_states, pong.k_min, pong.effective_horizon, pong.epw) == (100, 1, 1.0, 1)
    assert 10**pong.covering_length_log10 == pytest.approx(math.ceil(math.log(2000) / 0.001))
    assert tables.complexities[1].sample_complexities["dqn"] == 10000
    assert tables.returns[1].of_algorithms == {"ppo": 1.0, "dqn": 1.0, "gorp": 1.0}


def test_all_of_it_is_json(tmp_path: Path) -> None:
    tables = all_tables(study_data(published_file(tmp_path / "summary.csv")), num_resamples=RESAMPLES)
    content = json.loads(json.dumps(plain(tables), allow_nan=False))
    (row,) = (row for row in content["bounds"][0]["rows"] if row["name"] == "other_algorithm")
    assert row["metrics"]["median_ratio_log10"]["value"] == "inf"
    assert content["level"] == 0.95


def test_an_empty_study_gives_empty_tables() -> None:
    from efhorizon.evaluation.source import StudyData

    tables = all_tables(StudyData(Path(), {}, [], [], {}), num_resamples=RESAMPLES)
    assert tables.counts.num_mdps == 0
    assert [table.rows for table in (*tables.bounds, *tables.shaping, *tables.exploration)] == [()] * 6
    assert tables.bounds[0].majority is None
