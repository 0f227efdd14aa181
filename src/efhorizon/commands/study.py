"""`efhorizon study`: from names to a report, with a forecast before and progress on the way."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from efhorizon.build.explore import Budget
from efhorizon.cli import EXIT_BUDGET, EXIT_ERROR, messages, print_json
from efhorizon.errors import EfhorizonError
from efhorizon.io.files import available_memory
from efhorizon.render.html import write_report
from efhorizon.study import sweep
from efhorizon.study.forecast import Forecast, Span, forecast
from efhorizon.study.plan import Plan, RunPlan, environment_names
from efhorizon.study.records import Stage, StageOutcome
from efhorizon.study.restore import Restored, restore
from efhorizon.study.results import Results
from efhorizon.study.stages import StudyResult, Watcher, study
from efhorizon.study.tasks import check_installed

NO_RUNS = "none"
_SECONDS_A_LINE = 30.0
_LISTED = 8  # environments in a line of the forecast
_STAGES = {"build": "build and verify", "analyze": "analyze", "run": "run"}
_STYLES = {"made": "green", "kept": "dim", "left out": "yellow", "failed": "red"}


def run(options: argparse.Namespace) -> int:
    plan = _plan(options)
    if options.forecast:
        expected = forecast(plan)
        if options.json:
            print_json({"out": str(plan.out), **expected.as_json()})
        else:
            print_forecast(plan, expected, Console(highlight=False))
        return 0
    return run_plan(plan, rows=options.rows, as_json=options.json)


def run_plan(plan: Plan, *, rows: Path | None = None, as_json: bool = False) -> int:
    """Forecast, study, report; the exit code says whether something failed (1) or was left out by a budget (3).

    `rows` is an export whose runs count as done, and whose analyses are taken over.
    """
    for algorithm in {runs.algorithm for runs in (*plan.runs, *(plan.image_runs or ()))}:
        check_installed(algorithm, "table")
    restored = None if rows is None else restore(rows, plan.out)
    if restored is not None:
        messages.print(_restored_text(restored), markup=False, soft_wrap=True)
    print_forecast(plan, forecast(plan), messages)
    with _Screen(len(plan.names)) as screen:
        result = study(plan, screen)
        report, failure = _report(plan, screen)
    if as_json:
        print_json(_content(plan, restored, result, report, failure))
    else:
        _print_result(plan, result, report)
    if failure is not None:
        messages.print(f"efhorizon: no report: {failure}", style="red", markup=False, soft_wrap=True)
    if failure is not None or result.with_status("failed"):
        return EXIT_ERROR
    return EXIT_BUDGET if result.with_status("left out") else 0


def _plan(options: argparse.Namespace) -> Plan:
    if options.forecast and options.rows is not None:
        raise EfhorizonError("--forecast writes nothing, and --rows writes rows: leave one of them out")
    for name, least in (
        ("seeds", 1),
        ("steps", 1),
        ("max_states", 1),
        ("max_minutes", 0),
        ("max_k", 1),
        ("workers", 1),
    ):
        value = getattr(options, name)
        if value is not None and (value < least or value == 0):
            limit = "above 0" if least == 0 else f"at least {least}"
            raise EfhorizonError(f"--{name.replace('_', '-')} must be {limit}, got {value}")
    return Plan(
        out=options.out,
        names=environment_names(options.names),
        runs=tuple(
            RunPlan(algorithm, num_seeds=options.seeds, max_steps=options.steps) for algorithm in _algorithms(options)
        ),
        max_k=options.max_k,
        budget=Budget(options.max_states, options.max_minutes),
        num_workers=options.workers or num_cores(),
    )


def num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _algorithms(options: argparse.Namespace) -> list[sweep.Algorithm]:
    given = [name.strip() for name in options.algos.split(",") if name.strip() not in ("", NO_RUNS)]
    for name in given:
        if name not in sweep.ALGORITHMS:
            raise EfhorizonError(f"--algos: no algorithm is called {name!r}; there are: {','.join(sweep.ALGORITHMS)}")
    return [algorithm for algorithm in ("gorp", "ppo", "dqn") if algorithm in given]


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


def print_forecast(plan: Plan, expected: Forecast, console: Console) -> None:
    """What it will take, stage by stage, and how far that can be trusted."""
    table = Table("stage", "done", "left", "time", "memory", "disk", box=None, pad_edge=False)
    for column in table.columns:
        column.no_wrap = True
        column.justify = "left" if column is table.columns[0] else "right"
    for stage in expected.stages:
        counts = ("", "") if stage.stage == "report" else (str(stage.num_done), str(stage.num_left))
        amounts = (duration(stage.seconds), amount(stage.memory), amount(stage.disk)) if stage.num_left else ("-",) * 3
        table.add_row(stage.stage, *counts, *amounts)
    table.add_row(
        "in all", "", "", duration(expected.seconds), amount(expected.memory), amount(expected.disk), style="bold"
    )
    console.print(
        f"{_environments(len(plan.names))}, {plan.num_workers} processes; results in {plan.out}",
        markup=False,
        soft_wrap=True,
    )
    console.print(table)
    for note in _forecast_notes(plan, expected):
        console.print(f"- {note}", markup=False, soft_wrap=True, style="dim")


def _forecast_notes(plan: Plan, expected: Forecast) -> list[str]:
    notes = ["Low ends: everything goes well (small tables, agents that learn at once); high ends: nothing does."]
    if expected.rates.measured:
        notes.append(f"Measured in this study so far: {', '.join(expected.rates.measured)}.")
    else:
        notes.append("Rates are those of the development machine (two server cores); they adapt as the study runs.")
    unknown = [name for name, size in expected.sizes.items() if size.high is None]
    if unknown:
        more = f" and {len(unknown) - _LISTED} more" if len(unknown) > _LISTED else ""
        notes.append(
            f"Nobody knows how many states {', '.join(unknown[:_LISTED])}{more} have, so there is no upper end: "
            "--max-minutes or --max-states sets one."
        )
    if plan.note:
        notes.append(plan.note)
    existing = next(parent for parent in (plan.out, *plan.out.absolute().parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if expected.disk.low > free:
        notes.append(f"This will not fit: {_bytes(free)} are free on this disk.")
    if expected.memory.low > available_memory():
        notes.append(f"This will not fit: {_bytes(available_memory())} of memory are free.")
    return notes


class _Screen(Watcher):
    """A line for each stage and environment on stderr, and a bar below them on a terminal."""

    def __init__(self, num_environments: int) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        self._bars = Progress(
            *columns, TimeElapsedColumn(), console=messages, transient=True, disable=not messages.is_terminal
        )
        self._bar = self._bars.add_task("", total=num_environments, note="")
        self._width = 0
        self._last = time.monotonic()
        self._is_first = True

    def __enter__(self) -> _Screen:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def stage(self, stage: Stage, names: list[str], left: Forecast) -> None:
        self._width = max((len(name) for name in names), default=0)
        self._bars.reset(self._bar, description=_STAGES[stage], total=len(names), note="")
        remaining = "" if self._is_first else f"; from here on {duration(left.seconds)}"
        self._is_first = False
        messages.print(f"{_STAGES[stage]}: {_environments(len(names))}{remaining}", style="bold", markup=False)

    def begin(self, stage: Stage, name: str) -> None:
        self._bars.update(self._bar, note=name)

    def progress(self, text: str, done: float | None = None) -> None:
        self._bars.update(self._bar, note=text)
        if not messages.is_terminal and time.monotonic() - self._last > _SECONDS_A_LINE:
            self._last = time.monotonic()
            share = "" if done is None else f"{done:.0%} of the runs; "
            messages.print(f"  {share}{text}", style="dim", markup=False, soft_wrap=True)

    def outcome(self, outcome: StageOutcome) -> None:
        self._last = time.monotonic()
        self._bars.advance(self._bar)
        messages.print(
            f"  {outcome.status:8} {outcome.name:{self._width}}  {outcome.text} ({outcome.seconds:.1f} s)",
            style=_STYLES[outcome.status],
            markup=False,
            soft_wrap=True,
        )


def _print_result(plan: Plan, result: StudyResult, report: Path | None) -> None:
    console = Console(highlight=False)
    seconds = duration(Span(result.seconds, result.seconds))
    console.print(f"{result.num_complete} of {_environments(len(plan.names))} complete after {seconds}")
    for status in ("failed", "left out"):
        for outcome in result.with_status(status):
            console.print(f"{status}: {outcome.name} ({outcome.stage}): {outcome.text}", markup=False, soft_wrap=True)
    if plan.note:
        console.print(f"note: {plan.note}", markup=False, soft_wrap=True)
    if report is not None:
        console.print(f"report: {report}", markup=False, soft_wrap=True)


def _restored_text(restored: Restored) -> str:
    rows = _counted(restored.num_taken_over, "row")
    text = f"{restored.file}: {rows} taken over, {restored.num_there} were there"
    being_made = f", {restored.num_being_made} are being made" if restored.num_being_made else ""
    analyses, tables = _counted(restored.num_analyses, "analysis", "analyses"), _counted(restored.num_tables, "table")
    others = f"; taken over as well: {analyses}, the description of {tables}"
    return text + being_made + (others if restored.num_analyses or restored.num_tables else "")


def _counted(count: int, one: str, several: str | None = None) -> str:
    return f"1 {one}" if count == 1 else f"{count:,} {several or one + 's'}"


def _content(
    plan: Plan, restored: Restored | None, result: StudyResult, report: Path | None, failure: str | None
) -> dict[str, Any]:
    return {
        "out": str(plan.out),
        "rows": None if restored is None else restored.as_json(),
        "report": None if report is None else str(report),
        "report_failure": failure,
        "environments": len(plan.names),
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


def _environments(count: int) -> str:
    return _counted(count, "environment")


_TIMES = (("s", 1.0), ("min", 60.0), ("h", 3_600.0), ("days", 86_400.0))
_SIZES = (("kB", 1e3), ("MB", 1e6), ("GB", 1e9))


def duration(span: Span) -> str:
    """A span of seconds for people: "20 s to 4 min", "at least 3 h"."""
    low, low_unit = _scaled(span.low, _TIMES, least=2)
    if span.high is None:
        return f"at least {low} {low_unit}"
    high, high_unit = _scaled(span.high, _TIMES, least=2)
    return _joined(low, high, high_unit) if low_unit == high_unit else f"{low} {low_unit} to {high} {high_unit}"


def amount(span: Span) -> str:
    """A span of bytes for people, in one unit: "0.7 to 1.5 GB"."""
    if span.high is None:
        return "at least {} {}".format(*_scaled(span.low, _SIZES))
    high, unit = _scaled(span.high, _SIZES)
    return _joined(_number(span.low / dict(_SIZES)[unit]), high, unit)


def _joined(low: str, high: str, unit: str) -> str:
    return f"{high} {unit}" if low == high else f"{low} to {high} {unit}"


def _scaled(number: float, units: tuple[tuple[str, float], ...], least: int = 1) -> tuple[str, str]:
    """A number in the largest unit of which it has at least so many."""
    unit, size = next(((unit, size) for unit, size in reversed(units) if number >= least * size), units[0])
    return _number(number / size), unit


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0") if value < 10 else f"{value:,.0f}"


def _bytes(number: float) -> str:
    return amount(Span(number, number))
