"""Tables with chance: predictions, metrics, counts and pages from rows with known numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from efhorizon.errors import StoreError
from efhorizon.evaluation.source import StudyData, study_data, write_export
from efhorizon.evaluation.stochastic import HORIZON, as_json, line_of, predictions, stochastic_tables
from efhorizon.evaluation.tables import plain
from efhorizon.io.checksums import write_listed
from efhorizon.render.html import write_report
from efhorizon.render.markdown.stochastic_page import stochastic_files
from efhorizon.render.stochastic_words import verdict
from efhorizon.study.records import Row, RunProtocol, RunProvenance
from efhorizon.study.stochastic_record import StochasticRecord
from efhorizon.study.stochastic_results import StochasticData, encoded, read_export

T, A = 10, 2


def record(number: int, horizon: float | None, **changes: Any) -> StochasticRecord:
    fields: dict[str, Any] = {
        "id": f"mdp{number}-sticky0.25",
        "made_from": f"mdp{number}",
        "suite": "minigrid",
        "family": f"family{number}",
        "unshaped": None,
        "sticky": 0.25,
        "horizon": T,
        "num_actions": A,
        "num_states": 7,
        "num_table_states": 6,
        "num_reachable_pairs": 20,
        "min_k": 1,
        "strict_min_k": None,
        "epw": 3,
        "optimal_return": 1.0,
        "random_return": 0.5,
        "worst_return": 0.0,
        "greedy_returns": [1.0],
        "effective_horizon": horizon,
        "effective_horizon_k": 1,
        "effective_horizon_is_minimum": True,
        "normalised_effective_horizon": horizon,
        "strict_effective_horizon": None,
        "reached_effective_horizon": horizon,
        "gaps": [],
        "ucb_timesteps": 1e6,
        "covering_length": 100,
        "provenance": RunProvenance(table_fingerprint=f"f{number}"),
    }
    return StochasticRecord(**(fields | changes))


def row(number: int, algorithm: str, seed: int, needed: int | None, **changes: Any) -> Row:
    fields: dict[str, Any] = {
        "id": f"mdp{number}-sticky0.25",
        "algorithm": algorithm,
        "backend": "table",
        "setting": "one",
        "seed": seed,
        "sample_complexity": needed,
        "solved_by": None if needed is None else "greedy policy",
        "steps": needed or 10**6,
        "best_return": 1.0,
        "final_return": 1.0,
        "optimal_return": 1.0,
        "learning_curve": [(10, 0.5, None)],
        "wall_seconds": 1.0,
        "hyperparameters": {},
        "protocol": RunProtocol(10**6),
        "provenance": RunProvenance(table_fingerprint=f"f{number}"),
    }
    return Row(**(fields | changes))


def data() -> StudyData:
    """Six MDPs; H predicts PPO's order perfectly, off by a factor of 10; two are not solved. DQN solves one of two."""
    records = [record(number, 2.0 + number) for number in range(6)]
    rows = []
    for number in range(6):
        predicted = T**3 * A ** (2.0 + number)
        for seed in range(3):
            rows.append(row(number, "ppo", seed, None if number > 3 else round(predicted / 10) + seed - 1))
    rows += [row(0, "dqn", seed, 500 if seed else None) for seed in range(3)]
    rows += [row(1, "dqn", seed, None if seed else 900) for seed in range(3)]
    return StudyData(Path(), {}, [], [], {}, stochastic=StochasticData({each.id: each for each in records}, rows))


def test_metrics_of_known_numbers() -> None:
    tables = stochastic_tables(data(), num_resamples=50)
    assert tables is not None
    ppo, dqn, *others = tables.bounds
    assert (ppo.num_solved, ppo.num_mdps, dqn.num_solved, dqn.num_mdps) == (4, 6, 1, 2)
    assert [table.num_mdps for table in others] == [0, 0]
    metrics = {name: each.value for name, each in next(row for row in ppo.rows if row.name == HORIZON).metrics.items()}
    assert metrics["correlation"] == pytest.approx(1)
    assert metrics["auroc"] == metrics["accuracy"] == metrics["concordance"] == 1
    assert metrics["median_ratio_log10"] == pytest.approx(1, abs=1e-3)
    equal = next(row for row in ppo.rows if row.name == "stochastic_epw").metrics
    assert equal["correlation"].reason == "all predictions are equal"
    assert equal["auroc"].value == 0.5


def test_predictions_are_the_theorems() -> None:
    found = predictions(record(0, 4.0, min_k=2, epw=None, covering_length=None), None)
    assert found[HORIZON] == pytest.approx(math.log10(T**3 * A**4))
    assert found["stochastic_min_k"] == pytest.approx(math.log10(T**2 * A**2))
    assert found["stochastic_epw"] == found["stochastic_covering_length"] == math.inf
    assert found["stochastic_ucb"] == pytest.approx(6)
    assert predictions(record(0, None), None)[HORIZON] == math.inf


def test_counts_beside_the_tables_without_chance() -> None:
    given = data()
    from efhorizon.evaluation.stochastic import _empty_summary

    without = [
        replace(_empty_summary(record(number, 1.0)), name=f"mdp{number}", sample_complexities={"ppo": needed})
        for number, needed in ((0, 200.0), (1, math.inf), (4, 50.0), (5, math.inf))
    ]
    tables = stochastic_tables(replace(given, summaries=without), num_resamples=20)
    assert tables is not None
    sqirl, _, ppo, dqn = tables.counts
    assert (sqirl.num_run, dqn.num_run, dqn.num_solved, dqn.num_both) == (0, 2, 1, 0)
    assert (ppo.num_run, ppo.num_solved, ppo.num_both) == (6, 4, 4)
    assert (ppo.num_solved_both, ppo.num_solved_only_with, ppo.num_solved_only_without) == (1, 1, 1)
    assert ppo.median_factor == pytest.approx(400 / 200)  # T^3 A^2 / 10 timesteps with chance
    (line,) = line_of(tables, "mdp0")
    assert line.without is without[0]
    assert line_of(tables, "mdp9") == ()
    assert line.solved_runs["dqn"] == (2, 3)
    said = json.loads(json.dumps(plain(as_json(tables))))
    assert said["mdps"][1]["without"]["sample_complexities"] == {"ppo": "inf"}
    assert said["mdps"][0]["with_chance"]["sample_complexities"]["ppo"] == 400
    assert "PPO 4 of 6, DQN 1 of 2" in verdict(tables.counts, len(tables.lines))
    (page,) = stochastic_files(tables).values()
    assert "| PPO | 6 | 4 | 4 | 1 | 1 | 1 | 2.00 |" in page
    assert "| mdp1 | 0.25 | 7 |" in page
    assert stochastic_files(None) == {}


def test_rows_of_another_table_do_not_count() -> None:
    given = data()
    rows = [row(0, "ppo", 3, 1, provenance=RunProvenance(table_fingerprint="another")), *given.stochastic.runs]
    found = stochastic_tables(replace(given, stochastic=replace(given.stochastic, runs=rows)), num_resamples=20)
    assert found is not None
    assert found.lines[0].needed["ppo"] == 400
    assert any("on a table other than the one analyzed" in note for note in found.notes)


def test_shaped_tables_and_those_with_nothing_to_learn() -> None:
    shaped, dull = record(0, 2.0, unshaped="mdp1"), record(1, 2.0, worst_return=1.0)
    given = StudyData(Path(), {}, [], [], {}, stochastic=StochasticData({each.id: each for each in (shaped, dull)}))
    tables = stochastic_tables(given, num_resamples=20)
    assert tables is not None
    assert [line.record.id for line in tables.lines] == [shaped.id]
    rows = [row(0, "ppo", seed, 5) for seed in range(3)]
    tables = stochastic_tables(replace(given, stochastic=replace(given.stochastic, runs=rows)), num_resamples=20)
    assert tables is not None
    assert [count.num_run for count in tables.counts] == [0, 0, 0, 0]
    assert tables.bounds[0].num_mdps == 0
    assert tables.lines[0].needed == {"ppo": 5}


def test_files_and_pages(tmp_path: Path) -> None:
    given = data()
    folder = tmp_path / "exported"
    write_export(folder, given)
    read = study_data(folder)
    assert read.stochastic.analyses == given.stochastic.analyses
    assert sorted(map(repr, read.stochastic.runs)) == sorted(map(repr, given.stochastic.runs))
    assert encoded(read.stochastic) == encoded(given.stochastic)
    report = write_report(folder, tmp_path / "report")
    page = report.index.read_text()
    assert "6 tables with chance analyzed. Solved (unshaped MDPs only): PPO 4 of 6, DQN 1 of 2." in page
    line = (folder / "stochastic.jsonl").read_text().splitlines()[0]
    write_listed(folder, {"stochastic.jsonl": f"{line}\n{line}\n".encode()})
    with pytest.raises(StoreError, match="several analyses of one table"):
        read_export(folder)
    (folder / "stochastic.jsonl").write_text("{}")
    with pytest.raises(StoreError, match="damaged or changed"):
        read_export(folder)


def test_results_elsewhere_stand_in(tmp_path: Path) -> None:
    given = data()
    write_export(tmp_path / "exported", given)
    joined = StudyData(tmp_path, {}, [], [], {}).with_stochastic(tmp_path / "exported")
    assert joined.stochastic.analyses == given.stochastic.analyses
    (tmp_path / "rows").mkdir()
    with pytest.raises(StoreError, match="no tables with chance here"):
        StudyData(tmp_path, {}, [], [], {}).with_stochastic(tmp_path)
