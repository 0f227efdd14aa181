"""`efhorizon what-if` on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from efhorizon import TabularMDP
from efhorizon.commands import main
from efhorizon.io.tables import save
from efhorizon.study.kept_changes import MOST_KEPT
from efhorizon.study.results import Results
from efhorizon.what_if import trials


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a corridor whose second action leads back."""
    corridor = TabularMDP([[1, 0], [2, 0], [3, 0], [-1, 0]], [[0, 0], [0, 0], [0, 0], [1, 0]], 8)
    save(corridor, tmp_path / "tables" / "corridor")
    (tmp_path / "mine.py").write_text("def near(state):\n    return state\n\ndef bad(state):\n    return 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_screen_of_at_most_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "corridor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("Try first" in line or "Nothing to try first" in line for line in lines[:4])
    rows = lines[lines.index("") + 4 :]
    assert any("without action 1" in row for row in rows)
    assert max(map(len, rows)) <= 110


def test_the_best_changes_are_kept_with_the_analysis(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "corridor"]) == 0
    assert "not kept in results: it has no analysis of corridor" in capsys.readouterr().err
    assert not (here / "results").exists()
    assert main(["analyze", "corridor"]) == 0
    capsys.readouterr()
    assert main(["what-if", "corridor", "--json"]) == 0
    tried = json.loads(capsys.readouterr().out)
    changes = Results(here / "results").analysis("corridor").changes
    assert isinstance(changes, list)
    assert [change.title for change in changes] == [
        change["title"] for change in tried["changes"] if change["verdict"] in ("helps", "only on paper", "hurts")
    ][:MOST_KEPT]
    assert changes[0].factor == tried["changes"][0]["factor"]
    shutil.rmtree(here / "tables" / "corridor")
    save(TabularMDP([[1, 0], [-1, 0]], [[0, 0], [1, 0]], 8), here / "tables" / "corridor")
    assert main(["what-if", "corridor", "--kind", "horizon"]) == 0
    assert "the analysis there is of another table" in capsys.readouterr().err


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "corridor", "--json", "--kind", "repeat", "potential", "--potential", "mine.py:near"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content) == {"id", "before", "best", "changes", "left_out"}
    assert content["before"]["effective_horizon"] is not None
    assert {change["kind"] for change in content["changes"]} == {"repeat", "potential"}
    for change in content["changes"]:
        assert set(change) >= {"title", "verdict", "factor", "certain", "needs", "caveats", "after", "parameters"}
        assert set(change["after"]) >= {"effective_horizon", "kind", "timesteps", "forecast"}
        assert set(change["optimal_stays_optimal"]) == {"every", "some", "least_return", "largest_return"}
        for forecast in change["after"]["forecast"].values():
            assert set(forecast["timesteps"]) == {"low", "median", "high"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no such table"),
        (["corridor", "--kind", "luck"], "invalid choice"),
        (["corridor", "--potential", "mine.py:bad"], "bad fails in state 0: ZeroDivisionError"),
        (["corridor", "--potential", "mine.py:other"], "has no function called other"),
        (["corridor", "--gamma", "2"], "gamma"),
        (["corridor", "--horizon", "0"], "horizon"),
    ],
)
def test_bad_arguments_give_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", *arguments]) in (1, 2)
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_interrupted_it_shows_what_it_has(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tried, original = [], trials.trial

    def interrupted(*arguments: object, **options: object) -> object:
        if len(tried) == 1:
            raise KeyboardInterrupt
        tried.append(arguments)
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(trials, "trial", interrupted)
    assert main(["what-if", "corridor", "--kind", "repeat", "--json"]) == 130
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["changes"]) == 1
    assert "interrupted: 1 of 7 changes were tried" in printed.err
