"""A study: what it will take, its progress, its result."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from efhorizon.render.numbers import MISSING, counted, seconds, seconds_span, size, size_span
from efhorizon.render.terminal.layout import Parts, literal, table
from efhorizon.study.forecast import Forecast, Span, StageForecast
from efhorizon.study.plan import Plan
from efhorizon.study.records import StageOutcome
from efhorizon.study.restore import Restored
from efhorizon.study.stages import StudyResult

STAGES = {"build": "build and verify", "analyze": "analyze", "run": "run"}
STYLES = {"made": "green", "kept": "dim", "left out": "yellow", "failed": "red"}
_LISTED = 8  # environments in a line of the forecast


def environments(count: int) -> str:
    return counted(count, "environment")


def forecast_table(plan: Plan, expected: Forecast, *, free_disk: int, free_memory: int) -> Parts:
    """What it will take, stage by stage, and how reliable that is."""
    processes = counted(plan.num_workers, "process", "processes")
    num_variants = sum(case.policy is not None for case in plan.cases())
    variants = f", {counted(num_variants, 'variant')} with a policy" if num_variants else ""
    yield f"{environments(len(plan.subjects()))}{variants}, {processes}; results in {literal(plan.out)}"
    rows = table("stage", "done", "left", "time", "memory", "disk")
    for stage in expected.stages:
        rows.add_row(stage.stage, *_counts(stage), *_amounts(stage))
    rows.add_row("in all", "", "", *_spans(expected.seconds, expected.memory, expected.disk), style="bold")
    yield rows
    for note in _notes(plan, expected, free_disk, free_memory):
        yield f"[dim]- {literal(note)}[/dim]"


def time_left(left: Forecast) -> str:
    return seconds_span(left.seconds.low, left.seconds.high)


def outcome_line(outcome: StageOutcome, width: int) -> str:
    """The result for one environment in one stage; names take `width` columns."""
    return f"  {outcome.status:8} {outcome.name:{width}}  {outcome.text} ({seconds(outcome.seconds or 0.0)})"


def study_result(plan: Plan, result: StudyResult, report: Path | None) -> Parts:
    """What is complete, what is not and why, and where the report is."""
    yield f"{result.num_complete} of {environments(len(result.cases))} complete after {seconds(result.seconds)}"
    for outcome in (*result.with_status("failed"), *result.with_status("left out")):
        yield f"{outcome.status}: {literal(f'{outcome.name} ({outcome.stage}): {outcome.text}')}"
    if plan.note:
        yield f"note: {literal(plan.note)}"
    if report is not None:
        yield f"report: {literal(report)}"


def restored_line(restored: Restored) -> str:
    """What was taken over from an export."""
    taken_over = counted(restored.num_taken_over, "row")
    line = f"{restored.file}: {taken_over} taken over, {restored.num_there} were already there"
    if restored.num_being_made:
        line += f", {restored.num_being_made} are being made"
    if restored.num_analyses or restored.num_tables:
        analyses = counted(restored.num_analyses, "analysis", "analyses")
        line += f"; taken over as well: {analyses}, the description of {counted(restored.num_tables, 'table')}"
    return line


def _counts(stage: StageForecast) -> tuple[str, str]:
    return ("", "") if stage.stage == "report" else (str(stage.num_done), str(stage.num_left))


def _amounts(stage: StageForecast) -> Iterable[str]:
    return _spans(stage.seconds, stage.memory, stage.disk) if stage.num_left else (MISSING,) * 3


def _spans(time: Span, memory: Span, disk: Span) -> tuple[str, str, str]:
    return seconds_span(time.low, time.high), size_span(memory.low, memory.high), size_span(disk.low, disk.high)


def _notes(plan: Plan, expected: Forecast, free_disk: int, free_memory: int) -> Iterable[str]:
    yield "Low ends: everything goes well (small tables, agents that learn at once). High ends: nothing does."
    if expected.rates.measured:
        yield f"Measured in this study so far: {', '.join(expected.rates.measured)}."
    else:
        yield "Rates are those of the development machine (two server cores); they adapt as the study runs."
    unknown = [name for name, states in expected.sizes.items() if states.high is None]
    if unknown:
        more = f" and {len(unknown) - _LISTED} more" if len(unknown) > _LISTED else ""
        yield (
            f"Unknown number of states: {', '.join(unknown[:_LISTED])}{more}. So there is no upper end; "
            "--max-minutes or --max-states sets one."
        )
    if plan.note:
        yield plan.note
    if expected.disk.low > free_disk:
        yield f"This will not fit: only {size(free_disk)} are free on this disk."
    if expected.memory.low > free_memory:
        yield f"This will not fit: only {size(free_memory)} of memory are free."
