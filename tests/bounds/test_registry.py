"""A bound of one's own: one decorated function, and it is listed everywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from efhorizon.bounds import examples
from efhorizon.bounds.analysis import analyze
from efhorizon.bounds.registry import (
    DuplicateBoundError,
    PlainResult,
    registered_bounds,
    sample_complexity_bound,
    unregister,
)
from efhorizon.planning.problem import Problem, problem


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    unregister("mine")
    unregister("my_own")


def test_a_registered_bound_appears_in_the_analysis() -> None:
    @sample_complexity_bound("mine", title="my own")
    def mine(problem: Problem) -> int:
        return problem.num_reachable_states * 1000

    assert [bound.name for bound in registered_bounds()][-1] == "mine"
    result = analyze(examples.dense_rewards(3))
    assert result.as_json()["sample_complexity"]["mine"] == 3000
    assert result.titles["mine"] == "my own"


def test_without_a_title_the_name_is_one() -> None:
    @sample_complexity_bound("my_own")
    def mine(problem: Problem) -> int:
        return 1

    assert registered_bounds()[-1].title == "my own"


def test_a_bound_may_say_why_it_does_not_apply() -> None:
    @sample_complexity_bound("mine")
    def mine(problem: Problem) -> PlainResult:
        return PlainResult(None, "only on Sundays")

    content = analyze(examples.dense_rewards(3)).as_json()
    assert content["sample_complexity"]["mine"] is None
    assert content["reasons"]["mine"] == "only on Sundays"


@pytest.mark.parametrize(
    ("returned", "steps", "reason"),
    [
        (12, 12, None),
        (10**400, 10**400, None),
        (np.int64(12), 12, None),
        (np.uint8(12), 12, None),
        (np.array(12), 12, None),
        (12.0, 12, None),
        (11.2, 12, None),
        (np.float64(11.2), 12, None),
        (np.float32(11.5), 12, None),
        (Fraction(23, 2), 12, None),
        (0, 0, None),
        (None, None, "no bound"),
        (math.inf, None, "no bound: it is infinite"),
        (np.float64("inf"), None, "no bound: it is infinite"),
        (PlainResult(np.int64(12)), 12, None),  # type: ignore[arg-type]
        (PlainResult(11.2, "roughly"), 12, "roughly"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_every_kind_of_number_is_a_number_of_steps(returned: object, steps: int | None, reason: str | None) -> None:
    @sample_complexity_bound("mine")
    def mine(problem: Problem) -> object:
        return returned

    (found,) = (bound(problem(examples.dense_rewards(3))) for bound in registered_bounds() if bound.name == "mine")
    assert (found.sample_complexity, found.reason) == (steps, reason)
    assert found.sample_complexity is None or type(found.sample_complexity) is int
    json.dumps(analyze(examples.dense_rewards(3)).as_json())


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (-1, "returned -1; a number of steps is at least 0"),
        (-math.inf, "returned -inf; a number of steps is at least 0"),
        (math.nan, "returned nan; a number of steps is at least 0"),
        (True, "returned True, which is not a number of steps"),
        (np.bool_(True), "which is not a number of steps"),
        ("many", "returned 'many', which is not a number of steps"),
        (1 + 2j, "returned (1+2j), which is not a number of steps"),
        ([3], "returned [3], which is not a number of steps"),
        (np.zeros(3), "which is not a number of steps"),
        (PlainResult("many"), "returned 'many', which is not a number of steps"),  # type: ignore[arg-type]
        (PlainResult(3, 4), "gave a reason that is not a text: 4"),  # type: ignore[arg-type]
        (ZeroDivisionError("of nothing\nat all"), "raised ZeroDivisionError: of nothing at all"),
        (MemoryError(), "raised MemoryError"),
    ],
    ids=repr,
)
def test_a_bound_that_does_not_work_says_so_and_costs_nothing_else(returned: object, complaint: str) -> None:
    expected = analyze(examples.dense_rewards(3)).as_json()

    @sample_complexity_bound("mine")
    def mine(problem: Problem) -> object:
        if isinstance(returned, Exception):
            raise returned
        return returned

    found = analyze(examples.dense_rewards(3)).as_json()
    reason = found["reasons"].pop("mine")
    assert reason.startswith("the bound 'mine' ")
    assert complaint in reason
    assert "\n" not in reason
    assert found["sample_complexity"].pop("mine") is None
    assert found == expected


def test_a_bound_with_more_to_say_keeps_it() -> None:
    @dataclass(frozen=True)
    class Mine:
        sample_complexity: int
        reason: str | None = None
        witness: int = 5

    @sample_complexity_bound("mine")
    def mine(problem: Problem) -> Mine:
        return Mine(3)

    assert analyze(examples.dense_rewards(3)).bounds["mine"] == Mine(3)


def test_names_of_others_cannot_be_taken() -> None:
    registered_bounds()
    with pytest.raises(DuplicateBoundError, match="'ucb' already"):
        sample_complexity_bound("ucb")(lambda problem: 1)


def test_the_built_in_bounds_come_in_the_order_of_the_paper() -> None:
    names = [bound.name for bound in registered_bounds()]
    assert names[:5] == ["worst_case", "ucb", "covering_length", "epw", "effective_horizon"]
