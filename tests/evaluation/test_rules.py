"""What counts as solved: trained networks, and MDPs that random play does not solve."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_data import analysis, results_directory, row, row_record, solved_or_not

from efhorizon.evaluation.rules import is_trained, solved_by_random_play, trained_rows, under
from efhorizon.evaluation.source import study_data
from efhorizon.evaluation.tables import all_tables, tables_by_rule

PPO = {"rollout_length": 128, "num_envs": 8}


def run(steps: int, setting: str = "rollout128", **changes: object) -> dict[str, object]:
    return {"steps": steps, "sample_complexity": steps, "setting": setting, "hyperparameters": PPO, **changes}


@pytest.mark.parametrize(("steps", "expected"), [(1_024, False), (1_025, True)])
def test_an_older_row_says_by_its_settings_whether_it_was_trained(steps: int, expected: bool) -> None:
    assert is_trained(row_record("a", **run(steps))) is expected


def test_a_row_says_itself_whether_it_was_trained() -> None:
    assert is_trained(row_record("a", **run(10, trained=True)))
    assert not is_trained(row_record("a", **run(10**6, trained=False)))


def test_settings_with_too_few_trained_runs_do_not_count() -> None:
    half = [row_record("a", **run(steps), seed=seed) for seed, steps in enumerate((500, 2_000, 3_000, 900))]
    fewer = [row_record("a", **run(steps, "other"), seed=seed) for seed, steps in enumerate((500, 600, 3_000))]
    assert [each.steps for each in trained_rows([*half, *fewer])] == [2_000, 3_000]


def test_what_random_play_solves_does_not_count() -> None:
    lucky = replace(solved_or_not("lucky", 2_000, 10_000, random_play=1_900.0), budgets={"ppo": 1e5, "dqn": 1_000})
    assert solved_by_random_play(lucky, "ppo")
    assert not solved_by_random_play(lucky, "dqn")  # not within its budget
    (found,) = under("learnt", [lucky])
    assert found.sample_complexities == {"dqn": 10_000}
    assert under("paper", [lucky]) == [lucky]


def test_both_rules_from_rows(tmp_path: Path) -> None:
    analyses = [analysis("easy"), analysis("hard")]
    analyses[0]["analysis"] |= {"optimal_return_probability": 0.9, "exploration_length": 7.0}
    rows = [
        row(name, **run(steps), seed=seed)
        for name in ("easy", "hard")
        for seed, steps in enumerate((900, 5_000, 7_000))
    ]
    data = study_data(results_directory(tmp_path / "results", analyses, rows))
    easy, hard = data.summaries
    assert easy.random_play == pytest.approx(700)
    assert hard.random_play == math.inf
    assert (easy.sample_complexities["ppo"], hard.sample_complexities["ppo"]) == (5_000, 5_000)
    learnt, paper = tables_by_rule(data, num_resamples=1)
    assert (learnt.counts.num_run["ppo"], paper.counts.num_run["ppo"]) == (1, 2)
    (found,) = (each for each in under("learnt", data.summaries) if each.sample_complexities)
    assert (found.name, found.sample_complexities) == (
        "hard",
        {"ppo": 6_000},
    )  # the median of the two that were trained
    assert "PPO: left out because random play solves them: easy" in learnt.notes
    assert all_tables(data, num_resamples=1) == learnt  # the headline


def test_gorp_is_not_about_learning() -> None:
    given = replace(solved_or_not("a", None, None), sample_complexities={"gorp": 10.0}, random_play=1.0)
    assert under("learnt", [given])[0].sample_complexities == {"gorp": 10.0}
