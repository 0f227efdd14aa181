"""Rows: appended once, skipped when there, never made twice."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from older_files import rewritten

from efhorizon.errors import StoreError
from efhorizon.study.records import Row, RunKey, RunProtocol, RunProvenance
from efhorizon.study.results import Results

NUM_ROWS = 20


def key(seed: int) -> RunKey:
    return RunKey("walk", "ppo", "table", "rollout128", seed, {"rate": 1e-3}, RunProtocol(10), "abc", "def")


def row(seed: int) -> Row:
    name, curve, protocol = ("walk", "ppo", "table", "rollout128"), [[5, 1.0, None]], RunProtocol(10)
    return Row(*name, seed, 5, None, 5, 1.0, 1.0, 1.0, curve, 0.1, {}, protocol, RunProvenance())


def make_rows(path: Path, made: list[int] | None = None) -> int:
    """Make every row that is missing, one after the other, as a sweep does; returns how many."""
    results, count = Results.made(path), 0
    for seed in range(NUM_ROWS):
        with results.claimed([key(seed)]) as ours:
            for mine in ours:
                time.sleep(0.005)
                results.append(mine, row(mine.seed))
                count += 1
    return count


def test_rows_are_there_once_and_are_read_back(tmp_path: Path) -> None:
    assert make_rows(tmp_path / "results") == NUM_ROWS
    assert make_rows(tmp_path / "results") == 0
    results = Results.made(tmp_path / "results")
    assert sorted(content.seed for content in results.rows()) == list(range(NUM_ROWS))
    with pytest.raises(StoreError, match="already exists"):
        results.append(key(0), row(0))


def test_two_sweeps_share_the_work(tmp_path: Path) -> None:
    path = tmp_path / "results"
    Results.made(path)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        counts = pool.map(make_rows, [path, path])
    assert sum(counts) == NUM_ROWS
    assert len(list(Results.made(path).rows())) == NUM_ROWS


def test_a_claim_ends_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "results"
    Results.made(path)
    context = multiprocessing.get_context("spawn")
    taken = context.Event()
    process = context.Process(target=_hold, args=(path, taken))
    process.start()
    assert taken.wait(60)
    with Results.made(path).claimed([key(0), key(1)]) as ours:
        assert [mine.seed for mine in ours] == [1]
    process.kill()
    process.join()
    with Results.made(path).claimed([key(0), key(1)]) as ours:
        assert [mine.seed for mine in ours] == [0, 1]


def test_a_row_of_other_inputs_is_another_row(tmp_path: Path) -> None:
    results = Results.made(tmp_path / "results")
    results.append(key(0), row(0))
    assert results.has(key(0))
    for changed in (replace(key(0), fingerprint="other"), replace(key(0), code="other"), key(1)):
        assert not results.has(changed)
    assert results.row(key(1)) is None


def test_what_is_no_results_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(StoreError, match="not a results directory"):
        Results.made(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(StoreError, match="not a results directory"):
        Results.made(tmp_path / "mine.txt")
    for content in ("{", json.dumps({"format": "other"}), json.dumps({"format": "efhorizon-results"})):
        marked = tmp_path / "marked"
        marked.mkdir(exist_ok=True)
        (marked / "results.json").write_text(content)
        with pytest.raises(StoreError, match=r"results\.json"):
            Results.made(marked)


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    results = Results.made(tmp_path / "results")
    path = results.append(key(0), row(0))
    path.write_text('{"id": ')
    with pytest.raises(StoreError, match="not a row"):
        list(results.rows())


def _hold(path: Path, taken: multiprocessing.synchronize.Event) -> None:
    with Results.made(path).claimed([key(0)]):
        taken.set()
        time.sleep(60)


def test_what_a_killed_process_left_does_not_make_a_directory_foreign(tmp_path: Path) -> None:
    (tmp_path / ".results.json.123.tmp").write_text("{")
    Results.made(tmp_path)
    assert (tmp_path / "results.json").is_file()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".results.json.tmp.txt").write_text("somebody else's")
    with pytest.raises(StoreError, match="not a results directory"):
        Results.made(tmp_path / "other")


def test_the_names_of_rows_never_change() -> None:
    """Rows of years ago are found by their names."""
    settings = {"rate": 0.001, "layers": [64, 64], "clip": None}
    of = RunKey("walk", "ppo", "table", "rollout=128", 3, settings, RunProtocol(10, 5, None), "abc", "def")
    assert of.name == "walk__ppo__table__rollout=128__seed3__3fb89c24b5"


def test_a_wrong_field_of_a_row_is_named(tmp_path: Path) -> None:
    results = Results.made(tmp_path / "results")
    path = rewritten(results.append(key(0), row(0)), steps="five")
    with pytest.raises(StoreError) as caught:
        results.row(key(0))
    assert str(caught.value) == f"{path}: steps must be a whole number, not 'five'"
