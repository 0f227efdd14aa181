"""Recordings of play, and what was cloned from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal


@dataclass(frozen=True)
class RecordSummary:
    """The result of `efhorizon policy record`, under the names that its JSON has."""

    environment: str
    recording: str  # path of the label file
    frames: int
    steps: int
    returns: Sequence[float]  # of each episode
    optimal_return: float | None  # None where the table is not there
    optimal_episodes: int | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class FitSummary:
    """How well a clone predicts labels."""

    loss: float
    accuracy: float
    entropy: float
    labels: int


@dataclass(frozen=True)
class CloneSummary:
    """The result of `efhorizon policy clone`, under the names that its JSON has."""

    environment: str
    network: str  # path
    recordings: int
    frames: int
    rows: int
    unlabelled_rows: int
    episodes: int
    frameskip: int
    steps: int
    distinct_observations: int
    replaced_actions: dict[str, int]
    batches: int
    batch_size: int
    rate: float
    entropy_weight: float
    seed: int
    training: FitSummary
    held_out: FitSummary | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def record_summary(summary: RecordSummary) -> Parts:
    """What was played, and how well."""
    episodes = numbers.counted(len(summary.returns), "episode")
    yield f"[bold]{literal(summary.environment)}[/bold]  {episodes}, {summary.steps:,} steps, {summary.frames:,} frames"
    mean = sum(summary.returns) / len(summary.returns)
    yield f"  return {min(summary.returns):g} to {max(summary.returns):g}, mean {mean:.4g}"
    if summary.optimal_return is not None:
        yield f"  {summary.optimal_episodes} of {len(summary.returns)} optimal (return {summary.optimal_return:g})"
    yield f"written to {literal(summary.recording)}"


def clone_summary(summary: CloneSummary) -> Parts:
    """What was learnt from, and how well."""
    found = numbers.counted(summary.recordings, "recording")
    yield f"[bold]{literal(summary.environment)}[/bold]  {found}: {summary.frames:,} frames, {summary.rows:,} rows"
    yield (
        f"  {numbers.counted(summary.steps, 'step')} of {numbers.counted(summary.frameskip, 'frame')} in "
        f"{numbers.counted(summary.episodes, 'episode')}, "
        f"{numbers.counted(summary.distinct_observations, 'distinct observation')}"
    )
    if summary.unlabelled_rows:
        yield f"  {numbers.counted(summary.unlabelled_rows, 'row')} without an action"
    if summary.replaced_actions:
        listed = ", ".join(f"{literal(name)} {count:,}" for name, count in summary.replaced_actions.items())
        yield f"  actions that the game does not have, replaced by the nearest: {listed}"
    yield f"  training  {_fit(summary.training)}"
    yield f"  held out  {'nothing: too little was recorded' if summary.held_out is None else _fit(summary.held_out)}"
    yield f"written to {literal(summary.network)}"


def _fit(fit: FitSummary) -> str:
    return f"accuracy {fit.accuracy:.1%}, loss {fit.loss:.4f}, entropy {fit.entropy:.4f} ({fit.labels:,} labels)"
