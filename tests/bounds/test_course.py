"""An analysis with progress, a time budget and notes: cut short it says so, and it goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from efhorizon.bounds import effective_horizon as horizons
from efhorizon.bounds import exact_horizon as exact_horizons
from efhorizon.bounds import goal_sufficient
from efhorizon.bounds.analysis import Analysis, analyze
from efhorizon.bounds.course import Course, InvalidBudgetError, Standing, working_seconds
from efhorizon.bounds.registry import sample_complexity_bound, unregister
from efhorizon.gorp.exact_success import ExactSuccess
from efhorizon.gorp.goal import GoalChoices
from efhorizon.gorp.success import Success
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import problem


def random_mdp(seed: int = 2, *, rewards: tuple[float, ...] = (-1.0, 0.0, 1.0)) -> TabularMDP:
    """Seed 2: m = 7, 4 and 3 for k = 1, 2 and 3."""
    rng = np.random.default_rng(seed)
    transitions = rng.integers(-1, 20, size=(20, 2)).astype(np.int32)
    return TabularMDP(transitions, rng.choice(rewards, size=(20, 2)), 10)


def goal_mdp() -> TabularMDP:
    """A corridor of five cells: the goal is at its end."""
    transitions = np.array([[max(0, cell - 1), cell + 1 if cell < 4 else -1] for cell in range(5)], np.int32)
    rewards = np.zeros((5, 2))
    rewards[4, 1] = 1.0
    return TabularMDP(transitions, rewards, 9)


class Ticks:
    """A clock on which every look takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def content(mdp: TabularMDP, **options: Any) -> dict[str, Any]:
    return dict(analyze(mdp, **options).as_json())


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Every (k, m) at which success is compared with 1/2, as it happens."""
    log: list[tuple[int, int]] = []
    for kind, name in ((ExactSuccess, "compared_with_half"), (GoalChoices, "success")):
        _log_calls(monkeypatch, kind, name, log)
    return log


def _log_calls(monkeypatch: pytest.MonkeyPatch, kind: Any, name: str, log: list[tuple[int, int]]) -> None:
    original, begin = getattr(kind, name), kind.__init__

    def initialised(self: Any, given: Any, k: int, *arguments: Any, **options: Any) -> None:
        begin(self, given, k, *arguments, **options)
        self.logged_k = k

    def logged(self: Any, m: int, *arguments: Any, **options: Any) -> Success:
        log.append((self.logged_k, m))
        result: Success = original(self, m, *arguments, **options)
        return result

    monkeypatch.setattr(kind, "__init__", initialised)
    monkeypatch.setattr(kind, name, logged)


def stop_at(k: int, m: int, error: type[BaseException] = KeyboardInterrupt) -> Callable[[Standing], None]:
    """Progress that is interrupted when this m comes up."""

    def on_progress(standing: Standing) -> None:
        if standing.phase.startswith(f"exact horizon, k = {k} ") and standing.detail == f"trying m = {m}":
            raise error

    return on_progress


# Interrupted, and gone on with


def test_what_is_finished_is_not_done_again_after_an_interruption(tmp_path: Path, tried: list[tuple[int, int]]) -> None:
    expected = content(random_mdp())
    by_k = {int(k): entry["exact_m"] for k, entry in expected["effective_horizon"]["by_k"].items()}
    assert by_k == {1: 7, 2: 4, 3: 3}
    tried.clear()
    with pytest.raises(KeyboardInterrupt):
        analyze(random_mdp(), course=Course(keep_in=tmp_path, on_progress=stop_at(2, 3)))
    assert tried == [(1, m) for m in range(1, 8)] + [(2, 1), (2, 2)]
    tried.clear()
    assert content(random_mdp(), course=Course(keep_in=tmp_path)) == expected
    assert tried == [(2, 3), (2, 4), (3, 1), (3, 2), (3, 3)], (
        "k = 1 is finished, and m = 1 and 2 are ruled out for k = 2"
    )
    tried.clear()
    assert content(random_mdp(), course=Course(keep_in=tmp_path)) == expected
    assert tried == [], "everything is known"


def test_a_finished_k_is_on_disk_before_the_next_one_begins(tmp_path: Path) -> None:
    """So that not even `kill -9` costs it."""
    seen: list[list[int]] = []

    def on_progress(standing: Standing) -> None:
        if standing.phase.startswith("exact horizon, k = 2 "):
            (path,) = tmp_path.glob("*.json")
            seen.append([note["k"] for note in json.loads(path.read_text())["exact"].values()])

    analyze(random_mdp(), course=Course(keep_in=tmp_path, on_progress=on_progress))
    assert seen[0] == [1]


@pytest.mark.parametrize(
    ("mdp", "ties"),
    [(random_mdp(), "uniform"), (random_mdp(7), "all"), (goal_mdp(), "uniform"), (goal_mdp(), "all")],
    ids=["random", "all", "goal", "goal-all"],
)
def test_many_short_calls_end_where_one_long_call_does(
    mdp: TabularMDP, ties: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits on work so low that every step of a search is taken."""
    monkeypatch.setattr(exact_horizons, "SCAN_POINTS", 300)
    monkeypatch.setattr(exact_horizons, "CHEAP_POINTS", 600)
    monkeypatch.setattr(goal_sufficient, "CHEAP_POINTS", 50)
    expected = content(mdp, ties=ties)
    for calls in range(200):
        found = analyze(mdp, ties=ties, course=Course(seconds=40 + 20 * calls, keep_in=tmp_path, clock=Ticks()))
        assert isinstance(found, Analysis)
        if found.is_finished:
            break
        horizon = found.effective_horizon
        true = expected["effective_horizon"]["value"]
        assert horizon.at_least <= true + 1e-12
        assert horizon.value is None or horizon.value >= true - 1e-12
    assert calls > 0, "one short call is not enough"
    assert found.as_json() == expected


def test_an_interruption_in_the_middle_of_an_attempt_loses_that_attempt_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, original = content(random_mdp()), ExactSuccess.compared_with_half

    def interrupted(self: ExactSuccess, m: int, **options: Any) -> Success:
        if m == 5:
            raise KeyboardInterrupt
        return original(self, m, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ExactSuccess, "compared_with_half", interrupted)
        with pytest.raises(KeyboardInterrupt):
            analyze(random_mdp(), course=Course(keep_in=tmp_path))
    (path,) = tmp_path.glob("*.json")
    (note,) = json.loads(path.read_text())["searches"].values()
    assert (note["k"], note["num_failing"]) == (1, 4)
    assert content(random_mdp(), course=Course(keep_in=tmp_path)) == expected


# A time budget


def test_a_budget_that_is_used_up_is_said_and_gives_an_interval() -> None:
    exact = analyze(random_mdp())
    found = analyze(random_mdp(), course=Course(seconds=18, clock=Ticks()))
    assert isinstance(found, Analysis)
    assert isinstance(exact, Analysis)
    assert exact.is_finished
    assert not found.is_finished
    horizon, true = found.effective_horizon, exact.effective_horizon.value
    assert horizon.kind == "upper"
    assert true is not None
    assert horizon.value is not None
    assert horizon.at_least < true < horizon.value
    reason = "the time budget of 18 s is used up; go on with --max-minutes 5"
    assert horizon.reason == horizon.why_not_exact == reason
    assert found.as_json()["reasons"]["effective_horizon"] == reason
    assert found.as_json()["effective_horizon"]["by_k"]["1"]["exact_reason"] == reason


def test_a_budget_that_is_not_used_up_changes_nothing() -> None:
    for mdp in (random_mdp(), random_mdp(3), goal_mdp()):
        assert content(mdp, max_minutes=60) == content(mdp)


def test_more_time_than_the_work_needs_goes_to_what_was_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tried: list[tuple[int, int]]
) -> None:
    true = content(random_mdp(), max_k=1)["effective_horizon"]["by_k"]["1"]
    monkeypatch.setattr(exact_horizons, "SCAN_POINTS", 1)
    monkeypatch.setattr(exact_horizons, "VERIFY_POINTS", 1)
    by_work = content(random_mdp(), max_k=1, course=Course(keep_in=tmp_path))["effective_horizon"]["by_k"]["1"]
    assert (by_work["exact_m"], by_work["upper_m"], by_work["least_possible_m"]) == (None, 7, 2)
    tried.clear()
    course = Course(seconds=3600, further=True, keep_in=tmp_path)
    assert content(random_mdp(), max_k=1, course=course)["effective_horizon"]["by_k"]["1"] == true
    assert [m for _, m in tried] == [2, 3, 4, 5, 6], "what was passed over, and nothing else"
    again = content(random_mdp(), max_k=1, course=Course(keep_in=tmp_path))
    assert again["effective_horizon"]["by_k"]["1"] == true, "it stays known"


def test_a_budget_is_a_time() -> None:
    for minutes in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidBudgetError, match="more than 0"):
            analyze(random_mdp(), max_minutes=minutes)
    with pytest.raises(ValueError, match="not both"):
        analyze(random_mdp(), max_minutes=1, course=Course())


# Progress


def test_every_phase_is_reported_in_its_order() -> None:
    phases: list[str] = []

    def on_progress(standing: Standing) -> None:
        if standing.phase not in phases:
            phases.append(standing.phase)
        assert standing.part_done is None or 0 <= standing.part_done <= 1

    analyze(random_mdp(), max_k=2, course=Course(on_progress=on_progress))
    assert phases[:3] == ["planning", "occupancy", "solvability"]
    assert [phase for phase in phases if "k = " in phase] == [
        *("exact horizon, k = 1 of 2", "Appendix C, k = 1 of 2"),
        *("exact horizon, k = 2 of 2", "Appendix C, k = 2 of 2"),
    ]
    assert "bound: worst case (Theorem 2.1)" in phases


def test_the_time_left_follows_from_what_is_done() -> None:
    standing = Standing("exact horizon", "", 0.25, seconds=30.0, step_seconds=10.0, seconds_left=40.0)
    assert standing.step_seconds_left == pytest.approx(30.0)
    assert Standing("planning", "", None, 1.0, 1.0, 40.0).step_seconds_left is None


# The file


def noted(tmp_path: Path) -> Path:
    analyze(random_mdp(), course=Course(keep_in=tmp_path))
    (path,) = tmp_path.glob("*.json")
    return path


@pytest.mark.parametrize(
    "damaged",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"m": 7', '"m": 6'),
        lambda text: "[]",
        lambda text: "",
        lambda text: json.dumps({**_unsealed(text), "inputs": "0" * 32}),
        lambda text: json.dumps({**_unsealed(text), "searches": {"a": 3}}),
        lambda text: json.dumps(_with_note(text, m="7")),
        lambda text: json.dumps(_with_note(text, m=-7)),
        lambda text: json.dumps(_with_note(text, witness={"time": 0, "state": 20, "failure_probability": 0.1})),
        lambda text: json.dumps(_with_note(text, witness={"time": 10, "state": 0, "failure_probability": 0.1})),
    ],
    ids=["cut", "changed", "list", "empty", "other", "search", "text", "negative", "state", "time"],
)
def test_a_damaged_file_is_ignored_with_one_line(damaged: Callable[[str], str], tmp_path: Path) -> None:
    path = noted(tmp_path)
    path.write_text(damaged(path.read_text()))
    said: list[str] = []
    course = Course(keep_in=tmp_path, on_message=said.append)
    assert content(random_mdp(), course=course) == content(random_mdp())
    (line,) = said
    assert str(path) in line
    assert "\n" not in line
    assert line.endswith("it is ignored, and the analysis begins anew")
    again: list[str] = []
    analyze(random_mdp(), course=Course(keep_in=tmp_path, on_message=again.append))
    assert again == [], "it was replaced"


def _unsealed(text: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(text).items() if name != "checksum"}


def _with_note(text: str, **changes: Any) -> dict[str, Any]:
    file = _unsealed(text)
    return {**file, "exact": {key: {**note, **changes} for key, note in file["exact"].items()}}


def test_other_inputs_have_other_files(tmp_path: Path, tried: list[tuple[int, int]]) -> None:
    noted(tmp_path)
    policy = np.tile([0.25, 0.75], (20, 1))
    mdp = random_mdp()
    changed = TabularMDP(mdp.transitions, 2 * mdp.rewards, mdp.horizon)
    for given, options in ((mdp, {"gamma": 0.5}), (mdp, {"exploration_policy": policy}), (changed, {})):
        tried.clear()
        found = content(given, **options, course=Course(keep_in=tmp_path))
        assert tried, "nothing of another problem is used"
        assert found == content(given, **options)
    assert len(list(tmp_path.glob("*.json"))) == 4


def test_the_same_table_with_its_states_in_another_order_has_another_file(tmp_path: Path) -> None:
    """Notes name states by their numbers, and a fingerprint is the same in any order."""
    mdp = random_mdp()
    order = np.array([0, *range(19, 0, -1)])
    transitions = np.where(mdp.transitions < 0, -1, order[mdp.transitions])[order].astype(np.int32)
    turned = TabularMDP(transitions, mdp.rewards[order], mdp.horizon)
    assert turned.fingerprint() == mdp.fingerprint()
    noted(tmp_path)
    assert content(turned, course=Course(keep_in=tmp_path)) == content(turned)


def test_a_fresh_analysis_computes_everything_again(tmp_path: Path, tried: list[tuple[int, int]]) -> None:
    noted(tmp_path)
    tried.clear()
    analyze(random_mdp(), course=Course(keep_in=tmp_path, fresh=True))
    assert (1, 1) in tried


def test_a_folder_that_cannot_be_written_to_is_said_once_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    course = Course(keep_in=tmp_path / "file", on_message=said.append)
    assert content(random_mdp(), course=course) == content(random_mdp())
    assert len(said) == 1
    assert "nothing of this analysis is kept" in said[0]


# Bounds of others


def test_a_bound_of_ones_own_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    @sample_complexity_bound("mine")
    def mine(_: Any) -> float:
        calls.append(1)
        return 10.2

    try:
        for _ in range(2):
            assert content(random_mdp(), course=Course(keep_in=tmp_path))["sample_complexity"]["mine"] == 11
        assert len(calls) == 1
        monkeypatch.setattr("inspect.getsource", lambda _: "changed = 1")
        analyze(random_mdp(), course=Course(keep_in=tmp_path))
        assert len(calls) == 2, "its source has changed"
    finally:
        unregister("mine")


def test_the_effective_horizon_without_a_course_is_the_same() -> None:
    given = problem(random_mdp())
    assert horizons.effective_horizon(given) == horizons.effective_horizon_on(given, Course(seconds=1000))


def test_compiling_kernels_takes_nothing_from_the_budget() -> None:
    kernel = numba.njit(lambda x: x + 1)
    began, began_working = time.monotonic(), working_seconds()
    assert kernel(1) == 2
    assert working_seconds() - began_working < time.monotonic() - began
