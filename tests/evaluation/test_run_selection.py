"""Which rows count, and what they come to."""

from __future__ import annotations

import math
from typing import Any

import pytest
from evaluation_data import row as made_row
from evaluation_data import row_record as row

from efhorizon.errors import StoreError
from efhorizon.evaluation.runs import mdp_of, practice, selected_rows
from efhorizon.io.decode import plain, record_of
from efhorizon.study.records import Row

INF = math.inf


def selected(rows: list[Row], **fingerprints: str | None) -> tuple[list[Row], tuple[str, ...]]:
    selection = selected_rows(rows, fingerprints or {"a": "f1"})
    return [each for group in selection.rows.values() for each in group], selection.notes


def test_median_over_seeds_and_least_over_settings() -> None:
    slow = [row("a", seed=seed, sample_complexity=value) for seed, value in enumerate((100, 900, 500))]
    fast = [row("a", setting="other", seed=seed, sample_complexity=value) for seed, value in enumerate((50, 400, None))]
    assert practice(slow).sample_complexity == 500
    assert practice([*slow, *fast]).sample_complexity == 400
    assert practice(fast[1:]).sample_complexity == INF  # half of the seeds failed: the median is not reached


def test_an_even_number_of_seeds() -> None:
    """The median lies between the two in the middle: one more than half of the runs must have been solved."""

    def needed(*complexities: int | None) -> float:
        return practice([row("a", seed=n, sample_complexity=c) for n, c in enumerate(complexities)]).sample_complexity

    assert needed(100, 200, 400, 900) == 300
    assert needed(100, 200, None, None) == INF  # exactly half of them
    assert needed(100, 200, 400, None) == 300
    assert needed(100, 300) == 200


def test_final_return_is_that_of_the_best_setting() -> None:
    unsolved: dict[str, Any] = {"sample_complexity": None, "solved_by": None}
    low = [row("a", seed=seed, final_return=value, **unsolved) for seed, value in enumerate((0.0, 0.25, 0.5))]
    high = [row("a", setting="other", seed=seed, final_return=value, **unsolved) for seed, value in enumerate((0.5, 1))]
    assert practice([*low, *high]).final_return == 0.75
    solved = row("a", setting="third", final_return=0.125)
    assert practice([*low, *high, solved]).final_return == 0.125
    assert practice([row("a", final_return=None, **unsolved)]).final_return is None


def test_budget_is_what_is_known_of_every_setting() -> None:
    short = row("a", setting="other", sample_complexity=None, protocol={"max_steps": 1000})
    assert practice([row("a", sample_complexity=None), short]).budget == 1000


def test_gorp_is_the_least_over_k() -> None:
    rows = [row("a", "gorp", setting=f"k{k}", sample_complexity=value) for k, value in ((1, None), (2, 700), (3, 9000))]
    assert practice(rows).sample_complexity == 700


def test_repeated_runs_count_once_whatever_their_order() -> None:
    old = row("a", sample_complexity=100, provenance={"table_fingerprint": "f1", "efhorizon": "0.9.0", "code": "1"})
    new = row("a", sample_complexity=200, provenance={"table_fingerprint": "f1", "efhorizon": "0.10.0", "code": "2"})
    longer = row("a", sample_complexity=300, protocol={"max_steps": 6_000_000})
    for rows in ([old, new], [new, old]):
        assert selected(rows) == (
            [new],
            ("1 row of settings run again with other code or budget: left out",),
        )
    assert selected([old, longer, new])[0] == [longer]
    same = [row("a", sample_complexity=value, steps=10) for value in (5, 6)]
    assert selected(same)[0] == selected(same[::-1])[0]
    other_seed = row("a", seed=1, provenance=plain(old.provenance))
    assert selected([old, other_seed]) == ([old, other_seed], ())


def test_versions_of_a_setting_are_never_mixed() -> None:
    def version(made: str, *complexities: int) -> list[Row]:
        provenance = {"table_fingerprint": "f1", "efhorizon": "1.0", "code": made, "made": made}
        return [
            row("a", seed=seed, sample_complexity=value, steps=value, provenance=provenance)
            for seed, value in enumerate(complexities)
        ]

    old, new = version("2026-01-01", 100, 900, 500), version("2026-02-01", 700, 200, 300)
    assert selected([*old, *new])[0] == new
    assert selected([*old, *new[:2]])[0] == old  # a version that is still being run does not count yet


def test_a_setting_that_is_still_being_run_does_not_count() -> None:
    whole = [row("a", setting=setting, seed=seed) for setting in ("first", "second") for seed in range(3)]
    begun = [row("a", setting="third", sample_complexity=1)]
    found, notes = selected([*whole, *begun])
    assert found == whole
    assert notes == ("1 row of settings with fewer seeds than others, so unfinished: left out",)
    more = [row("a", setting="fourth", seed=seed) for seed in range(5)]
    assert selected([*whole, *more])[0] == sorted([*whole, *more], key=lambda each: each.setting)


def test_what_had_another_budget_may_have_fewer_seeds() -> None:
    gridworld = [row("a", setting=setting, seed=seed) for setting in ("first", "second") for seed in range(3)]
    images = [row("b", setting="first", protocol={"max_steps": 10})]
    assert selected([*gridworld, *images], a="f1", b="f1") == ([*gridworld, *images], ())


def test_rows_of_another_table_or_of_no_analysis_are_left_out() -> None:
    stale = row("a", provenance={"table_fingerprint": "f0"})
    assert selected([stale]) == ([], ("1 row made on a table other than the one analyzed: left out",))
    assert selected([stale], a=None)[0] == [stale]  # the analysis does not say
    found, (note,) = selected([row("b"), row("b", seed=1)])
    assert (found, note) == ([], "2 rows of MDPs (or of starts) without a complete analysis: left out")


def test_the_table_backend_goes_first() -> None:
    table, reference = row("a"), row("a", backend="sb3", sample_complexity=1)
    found, (note,) = selected([table, reference])
    assert (found, note) == ([table], "1 row by Stable-Baselines3: left out because there are rows on the table too")
    dqn = row("a", "dqn", backend="sb3")
    found, (note,) = selected([table, dqn])
    assert found == [dqn, table]
    assert note == "1 row by Stable-Baselines3: used because there are no others"


def test_runs_from_a_given_start_are_of_another_mdp() -> None:
    started = row("a", hyperparameters={"initial": "0123456789abcdef"})
    assert mdp_of(started, ["a"]) is None
    assert mdp_of(started, ["a", "a@01234567", "b@01234567"]) == "a@01234567"
    assert mdp_of(started, ["a@0123"]) is None  # too short to be a digest
    assert mdp_of(row("a@human"), ["a", "a@human"]) == "a@human"
    assert mdp_of(row("a@human", hyperparameters={"initial": "ff"}), ["a", "a@human"]) == "a@human"
    found, _ = selected([started, row("a", seed=1)])
    assert [each.seed for each in found] == [1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": 3}, "id must be a text, not 3"),
        ({"seed": "0"}, "seed must be a whole number, not '0'"),
        ({"seed": -1}, "seed must be a whole number of at least 0, not -1"),
        ({"sample_complexity": 1.5}, "sample_complexity must be a whole number, not 1.5"),
        ({"steps": None}, "steps must be a whole number, not None"),
        ({"final_return": math.nan}, "final_return must be a finite number, not nan"),
        ({"optimal_return": "ten"}, "optimal_return must be a number, not 'ten'"),
        ({"protocol": {}}, "protocol: max_steps is missing"),
        ({"protocol": {"max_steps": 0}}, "protocol: max_steps must be a whole number of at least 1, not 0"),
        ({"protocol": None}, "protocol must be an object, not None"),
        ({"provenance": []}, "provenance must be an object, not []"),
        ({"provenance": {"packages": {"numpy": 1}}}, "provenance: packages: numpy must be a text, not 1"),
        ({"mood": "good"}, "a field that this version of efhorizon does not know: mood"),
    ],
)
def test_what_is_no_row_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError) as caught:
        record_of(made_row("a", **changes), Row, "x.json")
    assert str(caught.value) == f"x.json: {message}"


@pytest.mark.parametrize(
    "curve", ["text", None, [[1]], [["a", 2, 3]], [[1, math.nan, 3]], [[1, None, 3]], [{"step": 1}], [3], [[0.5, 1, 2]]]
)
def test_a_learning_curve_that_is_none_is_refused(curve: object) -> None:
    with pytest.raises(StoreError, match=r"x.json: .*learning.curve"):
        record_of(made_row("a", learning_curve=curve), Row, "x.json")


def test_the_curve_of_another_algorithm_is_refused() -> None:
    with pytest.raises(StoreError, match="a timestep and two numbers"):
        record_of(made_row("a", "gorp", learning_curve=[[1, 2.0, 3.0]]), Row, "x.json")
    with pytest.raises(StoreError, match="a timestep and two numbers"):
        record_of(made_row("a", learning_curve=[[1, 2.0, 3.0, 4.0]]), Row, "x.json")


def test_points_of_different_lengths_are_no_curve() -> None:
    with pytest.raises(StoreError, match="a timestep and two numbers"):
        record_of(made_row("a", learning_curve=[[1, 2.0, 3.0], [1, 2.0, 3.0, 4.0]]), Row, "x.json")
