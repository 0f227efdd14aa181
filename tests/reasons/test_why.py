"""The reasons as analyses carry them: in Python, in stored records, on the screen, and within their time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hard_mdps import long, noisy, sparse
from msgspec import UNSET, to_builtins

from efhorizon import TabularMDP, examples
from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.analysis import analyze as bounds_only
from efhorizon.bounds.course import Course
from efhorizon.bounds.why import Why
from efhorizon.errors import StoreError
from efhorizon.library import analyze
from efhorizon.planning.problem import problem
from efhorizon.reasons import why as reasons
from efhorizon.reasons.sentences import headline, remainder
from efhorizon.render.terminal.analysis import one_analysis
from efhorizon.study.analyses import analysis_record
from efhorizon.study.analysis_record import CompleteFigures, decoded_analysis
from efhorizon.study.results import Results


def replace_id(mdp: TabularMDP) -> TabularMDP:
    """The table with a name, as stored analyses need one."""
    return TabularMDP(mdp.transitions, mdp.rewards, mdp.horizon, metadata={"id": "toy-mdp", "suite": "toy"})


def analyzed() -> Analysis:
    found = analyze(noisy())
    assert isinstance(found, Analysis)
    return found


def test_the_library_gives_reasons_and_the_bounds_do_not() -> None:
    plain = bounds_only(noisy())
    assert isinstance(plain, Analysis)
    assert plain.why is None
    assert "why" not in plain.as_json()
    found = analyzed()
    assert found.why is not None
    assert replace(found, why=None).as_json() == plain.as_json()


def test_json_has_state_time_share_and_kind() -> None:
    content = json.loads(json.dumps(analyzed().as_json()))
    assert [set(each) >= {"state", "time", "share", "kind"} for each in content["why"]] == [True] * 3
    assert content["why_basis"]["together"] >= max(each["share"] for each in content["why"])


def test_stored_analyses_read_with_and_without_reasons(tmp_path: Path) -> None:
    mdp = replace_id(noisy())
    for analysis in (analyze(mdp), bounds_only(mdp)):
        assert isinstance(analysis, Analysis)
        record, pictures = analysis_record(mdp, analysis=analysis)
        results = Results.made(tmp_path / str(analysis.why is None))
        results.write_analysis(record, pictures)
        again = results.analysis(record.name)
        assert again == record
        assert isinstance(again.figures, CompleteFigures)
        assert (again.figures.why is UNSET) == (analysis.why is None)


def test_shares_are_ordered_and_are_parts_of_failure() -> None:
    for mdp in (noisy(), sparse(), long()):
        found = analyze(mdp)
        assert isinstance(found, Analysis)
        assert found.why is not None
        assert found.why.success is not None
        shares = [reason.share for reason in found.why]
        assert shares == sorted(shares, reverse=True)
        for reason in found.why:
            assert 0 < reason.share <= 1 + 1e-12
            assert reason.interval[0] <= reason.share <= reason.interval[1]
            assert reason.rise == pytest.approx(reason.share * (1 - found.why.success))
            assert reason.state == reason.states[0]
            assert reason.times[0] <= reason.time <= reason.times[1]


def test_what_all_places_avoid_is_said() -> None:
    found = analyze(long(40))
    assert isinstance(found, Analysis)
    assert found.why is not None
    assert 0.02 < found.why.together < 0.2  # three of forty steps
    assert f"{100 * found.why.together:.1f}%" in remainder(found.why)
    assert remainder(Why()) == ""


def test_reasons_come_before_the_bounds_and_the_state_of_theorem_5_4_last() -> None:
    lines = [str(part) for part in one_analysis(Path("table"), analyzed())]
    why = next(number for number, line in enumerate(lines) if "Why" in line)
    learns = next(number for number, line in enumerate(lines) if "PPO" in line)
    bounds = next(number for number, line in enumerate(lines) if line.strip().startswith("bounds"))
    deciding = next(number for number, line in enumerate(lines) if "Theorem 5.4:" in line)
    assert learns < why < bounds < deciding


def test_without_time_the_answer_says_that_reasons_were_skipped() -> None:
    ticks = iter(range(0, 10**9, 1000))
    course = Course(clock=lambda: float(next(ticks)))
    given = problem(examples.dense_rewards(horizon=5))
    found = bounds_only(given.mdp)
    assert isinstance(found, Analysis)
    explained = reasons.explained(given, found, course).why
    assert explained is not None
    assert len(explained) == 0
    assert headline(explained).startswith("Skipped")


def test_bounds_on_m_may_be_larger_than_any_number_of_the_processor() -> None:
    """ObstructedMaze-1Dlhb, with little time for the exact horizon, has a bound of 3 x 10^21."""
    found = reasons.why(problem(examples.sparse_rewards(horizon=5)), 1, 10**30, is_exact=False)
    assert found.m is not None
    assert found.note == f"about GORP with {found.m:,} episodes: the effective horizon is only bounded, by {10**30:,}"
    assert found[0].kind == "sparse"


def test_a_file_with_an_unknown_kind_is_refused() -> None:
    record, _ = analysis_record(replace_id(noisy()), analysis=analyzed())
    content = to_builtins(record, str_keys=True)
    assert decoded_analysis(json.dumps(content), "file") == record
    content["analysis"]["why"][0]["kind"] = "boredom"
    with pytest.raises(StoreError, match="boredom"):
        decoded_analysis(json.dumps(content), "file")
