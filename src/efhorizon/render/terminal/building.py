"""The results of building, verifying and exporting a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from efhorizon.build.pipeline import BuildResult
from efhorizon.build.verify import WRONG_SHARE, VerificationReport
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
    """Whether a table and its environment agree, where they first differ, and how much was compared."""
    if report.difference is not None:
        yield f"{literal(name)}: [red]not exact[/red]; first difference: {literal(report.difference)}"
    else:
        yield f"{literal(name)}: {_verdict(report.as_json())}"
    states = f"{_part(report.num_states_replayed, report.num_states)} states"
    screens = "with screens" if report.screens_compared else "without screens"
    yield f"  pairs      {_part(report.num_pairs_replayed, report.num_pairs)} replayed, {states}, {screens}"
    if report.num_pairs_drawn is not None:
        yield f"  drawn      {report.num_pairs_drawn:,} of them at random; {_chance(report.num_pairs_drawn)}"
        recognised, num_next = report.num_next_states_recognised or 0, report.num_next_states or 0
        others = "" if recognised == num_next else ", the others by one random episode"
        yield f"             {_part(recognised, num_next)} next states recognised by their raw state{others}"
    if report.num_raw_states is not None:
        from_reset = _part(report.num_raw_states_from_reset or 0, report.num_raw_states)
        yield f"  snapshots  {from_reset} reached again from reset, without restoring"
    yield f"  episodes   {report.num_episodes:,} from reset, {numbers.counted(report.num_steps, 'step')}"
    yield f"  time       {numbers.seconds(report.seconds)}"


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
    if verified.get("pairs") is None:  # of an older version
        episodes = numbers.counted(verified["episodes"], "episode")
        return f"on {episodes} only: no difference in {verified['steps']:,} steps{screens}"
    return f"{_verdict(verified)}{screens}"


def _verdict(verified: Mapping[str, Any]) -> str:
    """What the comparison of a table that agrees with its environment proves."""
    num_pairs = verified["pairs"]
    if verified.get("exact"):
        return (
            f"[green]exact[/green], all {num_pairs:,} pairs of {numbers.counted(verified['states'], 'state')} replayed"
        )
    if verified.get("complete"):
        share = numbers.percent(verified["raw_states_from_reset"] / verified["raw_states"])
        return f"no difference in any of the {num_pairs:,} pairs, {share} of the snapshots checked from reset"
    share = numbers.percent(verified["pairs_replayed"] / max(1, num_pairs))
    return f"no difference in {verified['pairs_replayed']:,} of {num_pairs:,} pairs ({share})"


def _part(number: int, total: int) -> str:
    """How many of all."""
    if number == total:
        return f"all {total:,}"
    return f"{number:,} of {total:,} ({numbers.percent(number / max(1, total))})"


def _chance(num_drawn: int) -> str:
    """What a sample of pairs would have missed."""
    missed = (1 - WRONG_SHARE) ** num_drawn
    return f"if one in a thousand were wrong, the chance to miss them all is {numbers.percent(missed)}"


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
