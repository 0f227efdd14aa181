"""A bound of one's own: one decorated function, and it is listed everywhere."""

from __future__ import annotations

from collections.abc import Iterator

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
from efhorizon.planning.problem import Problem


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


def test_names_of_others_cannot_be_taken() -> None:
    registered_bounds()
    with pytest.raises(DuplicateBoundError, match="'ucb' already"):
        sample_complexity_bound("ucb")(lambda problem: 1)


def test_the_built_in_bounds_come_in_the_order_of_the_paper() -> None:
    names = [bound.name for bound in registered_bounds()]
    assert names[:5] == ["worst_case", "ucb", "covering_length", "epw", "effective_horizon"]
