"""How a study is run from the command line: `efhorizon study` and `efhorizon demo`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, TimeElapsedColumn

from efhorizon.commands import _exit, _terminal
from efhorizon.errors import EfhorizonError
from efhorizon.io.machine import available_memory
from efhorizon.render.html import write_report
from efhorizon.render.terminal.layout import Parts
from efhorizon.render.terminal.study import (
    STAGES,
    STYLES,
    environments,
    forecast_table,
    outcome_line,
    restored_line,
    study_result,
    time_left,
)
from efhorizon.study.forecast import Forecast, forecast
from efhorizon.study.plan import Plan
from efhorizon.study.records import Stage, StageOutcome
from efhorizon.study.restore import Restored, restore
from efhorizon.study.results import Results
from efhorizon.study.stages import StudyResult, Watcher, study
from efhorizon.study.tasks import check_installed


def run_plan(plan: Plan, *, rows: Path | None = None, as_json: bool = False) -> int:
    """Forecast, study, report; the exit code says whether something failed (1) or was left out by a budget (3).

    `rows` is an export whose runs count as done, and whose analyses are taken over.
    """
    for algorithm in {runs.algorithm for runs in (*plan.runs, *(plan.image_runs or ()))}:
        check_installed(algorithm, "table")
    restored = None if rows is None else restore(rows, plan.out)
    if restored is not None:
        _terminal.say(restored_line(restored))
    _terminal.show(forecast_parts(plan, forecast(plan)), _terminal.messages)
    with _Screen(len(plan.names)) as screen:
        result = study(plan, screen)
        report, failure = _report(plan, screen)
    if as_json:
        _terminal.print_json(_content(plan, restored, result, report, failure))
    else:
        _terminal.show(study_result(plan, result, report))
    if failure is not None:
        _terminal.failed(f"no report: {failure}")
    if failure is not None or result.with_status("failed"):
        return _exit.ERROR
    return _exit.BUDGET if result.with_status("left out") else _exit.DONE


def forecast_parts(plan: Plan, expected: Forecast) -> Parts:
    existing = next(parent for parent in (plan.out, *plan.out.absolute().parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    return forecast_table(plan, expected, free_disk=free, free_memory=available_memory())


def _report(plan: Plan, screen: _Screen) -> tuple[Path | None, str | None]:
    """The first page of the report, or why there is none."""
    if not Results(plan.out).has_analyses():
        return None, "no environment was analyzed"
    screen.progress("writing the report")
    try:
        report = write_report(plan.out, plan.out / "report")
    except EfhorizonError as error:
        return None, str(error)
    return report.index, None


class _Screen(Watcher):
    """A line for each stage and environment on stderr, and a bar below them on a terminal."""

    def __init__(self, num_environments: int) -> None:
        self._bars = _terminal.bars(
            _terminal.LineColumn("{task.description}"),
            BarColumn(),
            _terminal.LineColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self._bar = self._bars.add_task("", total=num_environments, note="")
        self._width = 0
        self._lines = _terminal.SlowLines()
        self._is_first = True

    def __enter__(self) -> _Screen:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def stage(self, stage: Stage, names: list[str], left: Forecast) -> None:
        self._width = max((len(name) for name in names), default=0)
        self._bars.reset(self._bar, description=STAGES[stage], total=len(names), note="")
        remaining = "" if self._is_first else f"; from here on {time_left(left)}"
        self._is_first = False
        _terminal.say(f"{STAGES[stage]}: {environments(len(names))}{remaining}", style="bold")

    def begin(self, stage: Stage, name: str) -> None:
        self._bars.update(self._bar, note=name)

    def progress(self, text: str, done: float | None = None) -> None:
        self._bars.update(self._bar, note=text)
        share = "" if done is None else f"{done:.0%} of the runs; "
        self._lines.say(f"  {share}{text}", style="dim")

    def outcome(self, outcome: StageOutcome) -> None:
        self._lines.restart()
        self._bars.advance(self._bar)
        _terminal.say(outcome_line(outcome, self._width), style=STYLES[outcome.status])


def _content(
    plan: Plan, restored: Restored | None, result: StudyResult, report: Path | None, failure: str | None
) -> dict[str, Any]:
    return {
        "out": str(plan.out),
        "rows": None if restored is None else restored.as_json(),
        "report": None if report is None else str(report),
        "report_failure": failure,
        "environments": len(result.cases),
        "complete": result.num_complete,
        "seconds": round(result.seconds, 1),
        "outcomes": [
            {
                "id": outcome.name,
                "stage": outcome.stage,
                "status": outcome.status,
                "text": outcome.text,
                "seconds": round(outcome.seconds or 0.0, 2),
            }
            for outcome in result.outcomes
        ],
    }
