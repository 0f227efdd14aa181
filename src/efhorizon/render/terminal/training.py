"""Runs of PPO, DQN and GORP: their progress and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from efhorizon.agents.deep.protocol import RunRecord
from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal
from efhorizon.study.records import Row


@dataclass(frozen=True)
class SettingSummary:
    """The runs of one setting on one table."""

    sample_complexity: float | None  # timesteps, the median over seeds; None: not solved
    runs: int
    solved: int


@dataclass(frozen=True)
class TableSummary:
    """The runs of one algorithm on one table."""

    id: str
    sample_complexity: float | None  # the least over settings
    settings: Mapping[str, SettingSummary]
    note: str | None = None  # about what agents see


@dataclass(frozen=True)
class TrainingSummary:
    """The result of `efhorizon train`, under the names that its JSON has."""

    results: str
    algorithm: str
    backend: str
    rows: int
    environments: Sequence[TableSummary]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def training_summary(summary: TrainingSummary) -> Parts:
    """One line for each table and one for each setting."""
    for table in summary.environments:
        yield f"[bold]{literal(table.id)}[/bold]  {summary.algorithm}: {_needed(table.sample_complexity)}"
        if table.note is not None:
            yield f"  {literal(table.note)}"
        for name, setting in table.settings.items():
            needed = _needed(setting.sample_complexity)
            yield f"  {literal(f'{name:16}')} {needed:>16}  ({setting.solved} of {setting.runs} runs solved)"
    yield f"{numbers.counted(summary.rows, 'row')} in {literal(summary.results)}"


def row_line(row: Row) -> str:
    """The result of one run."""
    return (
        f"{row.id} {row.algorithm} {row.setting} seed {row.seed}: "
        f"{_needed(row.sample_complexity, 'solved after ')} ({numbers.seconds(row.wall_seconds)})"
    )


def progress_note(runs: Sequence[RunRecord]) -> str:
    """Where the runs of one task stand."""
    returns = [run.last_evaluation for run in runs if run.last_evaluation is not None]
    between = f", greedy return {min(returns):g} to {max(returns):g}" if returns else ""
    furthest, num_finished = max(run.steps for run in runs), sum(run.is_finished for run in runs)
    return f"{furthest:,} steps, {num_finished} of {len(runs)} finished{between}"


def _needed(timesteps: float | None, before: str = "") -> str:
    return numbers.NOT_SOLVED if timesteps is None else f"{before}{numbers.count(timesteps)} timesteps"
