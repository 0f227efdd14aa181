"""The results of building, verifying and exporting a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from efhorizon.build.pipeline import BuildResult
from efhorizon.build.verify import VerificationReport
from efhorizon.mdp import TabularMDP
from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal, warned


def build_result(result: BuildResult) -> Parts:
    """How far a build got, and the table that it wrote."""
    if result.outcome.stopped_by is not None:
        yield _stopped(result)
    mdp = result.mdp
    if mdp is None:
        return
    yield f"[bold]{literal(result.id)}[/bold]  horizon {mdp.horizon}, {numbers.counted(mdp.num_actions, 'action')}"
    raw = numbers.count(mdp.metadata["num_states_raw"])
    yield f"  states     {mdp.num_states:,} (from {raw} raw), {numbers.counted(mdp.num_screens, 'screen')}"
    if mdp.unexplored is None:
        yield f"  returns    {returns(*mdp.metadata['returns'])}"
    else:
        yield f"  unfinished {unexplored(int(mdp.unexplored.sum()))}"
    yield f"  work       {_work(result)}"
    yield f"  verified   {verification(mdp.metadata['verification'])}"
    yield f"  stored in  {literal(result.path)}"


def verification_report(name: str | None, report: VerificationReport) -> Parts:
    """Whether a table and its environment agree, and where they first differ."""
    verdict = "[green]exact[/green]" if report.is_exact else "[red]not exact[/red]"
    screens = "with screens" if report.screens_compared else "without screens"
    yield (
        f"{literal(name)}: {verdict}; {report.num_steps:,} steps of "
        f"{numbers.counted(report.num_episodes, 'episode')} compared {screens} in {numbers.seconds(report.seconds)}"
    )
    if report.difference is not None:
        yield f"first difference: {literal(report.difference)}"


def exported_table(mdp: TabularMDP, file: Path, num_bytes: int) -> Parts:
    yield (f"{numbers.counted(mdp.num_states, 'state')} written to {literal(file)} ({numbers.size(num_bytes)})")


def returns(worst: float, best: float) -> str:
    """The range of returns, in one line."""
    degenerate = warned("  degenerate: every action sequence earns the same") if worst == best else ""
    return f"{numbers.significant(worst, 6)} to {numbers.significant(best, 6)}{degenerate}"


def unexplored(num_states: int) -> str:
    return warned(f"{numbers.counted(num_states, 'state')} found but not explored")


def verification(verified: Mapping[str, Any] | None) -> str:
    """Whether a table was verified, in one line."""
    if not verified:
        return warned("no: not compared with the environment, so it may not be exact")
    screens = " with screens" if verified["screens_compared"] else ""
    episodes = numbers.counted(verified["episodes"], "episode")
    return f"[green]yes[/green]: {verified['steps']:,} steps of {episodes} replayed{screens}"


def _stopped(result: BuildResult) -> str:
    progress = result.outcome.progress
    line = (
        f"stopped by {result.outcome.stopped_by}: {progress.num_states:,} states found, "
        f"{progress.num_expanded:,} expanded; complete up to horizon {result.complete_horizon}. "
        "Run the same command to continue."
    )
    if result.mdp is not None:
        return line
    return f"{line} (--horizon {result.complete_horizon} or --keep-partial writes the table so far.)"


def _work(result: BuildResult) -> str:
    """What a build had to do, in one line."""
    progress, total = result.outcome.progress, numbers.seconds(result.seconds)
    if not progress.num_pairs:
        return f"nothing emulated, {total} in all"
    return f"{progress.num_pairs:,} pairs emulated at {progress.pairs_per_second:,.0f} per second, {total} in all"
