"""`efhorizon analyze` with a time budget, interrupted, and run again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon import TabularMDP
from efhorizon.bounds.course import Standing
from efhorizon.commands import _analysis, main
from efhorizon.commands._analysis import progress_line
from efhorizon.gorp.exact_success import ExactSuccess
from efhorizon.gorp.success import Success
from efhorizon.io.tables import save


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table in which m = 7, 4 and 3 for k = 1, 2 and 3."""
    rng = np.random.default_rng(2)
    transitions = rng.integers(-1, 20, size=(20, 2)).astype(np.int32)
    save(TabularMDP(transitions, rng.choice([-1.0, 0.0, 1.0], size=(20, 2)), 10), tmp_path / "tables" / "mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def analyzed(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["analyze", "mine", "--json", *options]) == 0
    return dict(json.loads(capsys.readouterr().out))


def interrupt(monkeypatch: pytest.MonkeyPatch, at_call: int) -> list[int]:
    """Ctrl-C at the so-maniest comparison of success with 1/2; a note of every m."""
    tried: list[int] = []
    original = ExactSuccess.compared_with_half

    def compared(self: ExactSuccess, m: int, **options: Any) -> Success:
        if len(tried) == at_call:
            raise KeyboardInterrupt
        tried.append(m)
        return original(self, m, **options)

    monkeypatch.setattr(ExactSuccess, "compared_with_half", compared)
    return tried


def test_a_budget_ends_it_with_an_answer_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "mine", "--max-minutes", "0.001s"]) == 0
    said = capsys.readouterr().out
    assert "Effective horizon at most" in said
    assert "Not finished: the time budget of 0.001 s is used up; go on with --max-minutes 5." in said
    short = analyzed(capsys, "--max-minutes", "0.001s")
    assert short["effective_horizon"]["kind"] == "upper"
    assert "--max-minutes 5" in short["reasons"]["effective_horizon"]
    whole = analyzed(capsys, "--max-minutes", "5")
    assert whole["effective_horizon"]["kind"] == "exact"
    assert whole == analyzed(capsys, "--fresh")
    assert "Not finished" not in _text(capsys)


def test_without_an_option_there_is_a_budget_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _analysis.DEFAULT_SECONDS <= 30, "with all else, an answer within a minute"
    monkeypatch.setattr(_analysis, "DEFAULT_SECONDS", 1e-3)
    assert "Not finished: the time budget of 0.001 s is used up" in _text(capsys)


def _text(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["analyze", "mine"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("at_call", "kept"),
    [
        (0, "nothing is kept"),
        (4, "kept: for mine, k = 1 up to m = 4; to go on: efhorizon analyze mine --max-minutes 5"),
        (7, "kept: for mine, k = 1 finished; to go on: efhorizon analyze mine --max-minutes 5"),
        (9, "kept: for mine, k = 1 finished, k = 2 up to m = 2; to go on: efhorizon analyze mine --max-minutes 5"),
    ],
)
def test_an_interruption_says_which_k_are_kept_and_they_are(
    at_call: int, kept: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        before = interrupt(patch, at_call)
        assert main(["analyze", "mine", "--fresh", "--max-minutes", "5"]) == 130
        assert capsys.readouterr().err.splitlines()[-1] == f"efhorizon: interrupted: {kept}"
    with monkeypatch.context() as patch:
        after = interrupt(patch, -1)
        analyzed(capsys, "--max-minutes", "5")
    assert before + after == [*range(1, 8), *range(1, 5), *range(1, 4)], "no m was tried twice"


# The command as it is, but for a note of each m before it is tried, and an m at which it waits to be killed.
ANALYZE = """
import sys, time
from efhorizon.commands import main
from efhorizon.gorp.exact_success import ExactSuccess

original, tried = ExactSuccess.compared_with_half, 0

def compared(self, m, **options):
    global tried
    print(m, file=sys.stderr, flush=True)
    while tried == int(sys.argv[1]):
        time.sleep(1)
    tried += 1
    return original(self, m, **options)

ExactSuccess.compared_with_half = compared
sys.exit(main(["analyze", "mine", "--max-minutes", "5", "--json"]))
"""


def started(here: Path, waits_at: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ANALYZE, str(waits_at)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here)


def killed_at(here: Path, waits_at: int) -> list[int]:
    """The m that a call tries which is killed in the middle of one."""
    process = started(here, waits_at)
    assert process.stderr is not None
    tried: list[int] = []
    while len(tried) <= waits_at:
        line = process.stderr.readline()
        assert line, "it ended before it was killed"
        tried += numbers([line])
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    return tried


def numbers(lines: Iterable[str]) -> list[int]:
    """The m among the lines of progress."""
    return [int(line) for line in lines if line.strip().isdigit()]


def test_killed_it_goes_on_and_no_finished_k_is_computed_again(here: Path) -> None:
    """`kill -9` leaves no moment to write anything: a finished k must be on disk before."""
    first = killed_at(here, 9)
    assert first == [*range(1, 8), 1, 2, 3], "k = 1 finished, k = 2 not"
    second = killed_at(here, 5)
    assert second == [*range(1, 5), 1, 2], "k = 1 is known; k = 2 finished, k = 3 not"
    output, progress = started(here, -1).communicate()
    assert numbers(progress.splitlines()) == [1, 2, 3], "only k = 3 is left"
    whole = subprocess.run(
        [sys.executable, "-m", "efhorizon", "analyze", "mine", "--fresh", "--json"],
        capture_output=True,
        text=True,
        cwd=here,
        check=True,
    )
    assert json.loads(output) == json.loads(whole.stdout)


def test_interrupted_in_the_second_table_it_says_what_is_kept_of_both(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = TabularMDP([[0, 1], [-1, 1]], [[0.0, 1.0], [2.0, 0.0]], 3)
    save(other, here / "tables" / "other")
    interrupt(monkeypatch, 16)
    assert main(["analyze", "mine", "other"]) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("efhorizon: interrupted: kept: what was found for mine; for other, k = 1")
    assert said.endswith("; to go on: efhorizon analyze mine other")


def test_what_is_kept_is_not_a_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analyzed(capsys)
    assert [path.name for path in (here / "tables").iterdir()] != ["mine"]
    from efhorizon.io.tables import table_names

    assert table_names(here / "tables") == ["mine"]


def test_a_damaged_file_is_said_in_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = analyzed(capsys)
    (path,) = (here / "tables" / ".analyses").iterdir()
    path.write_text("{")
    assert main(["analyze", "mine", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == expected
    line, kept = printed.err.splitlines()
    assert line.startswith(f"note: {path.relative_to(here)}: ")
    assert kept.startswith("kept in results")


def test_the_progress_line_says_what_is_done_and_how_long_it_takes() -> None:
    standing = Standing("exact horizon, k = 1 of 3", "trying m = 120", 0.25, 12.0, 10.0, 33.0)
    assert progress_line("mine", standing) == (
        "mine: exact horizon, k = 1 of 3, trying m = 120, about 30 s left in this step, 12 s so far, "
        "at most 33 s left for exact figures"
    )
    assert progress_line("mine", Standing("planning", "", None, 200.0, 1.0, float("inf"))) == (
        "mine: planning, 3 min so far"
    )
