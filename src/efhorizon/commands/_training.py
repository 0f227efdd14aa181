"""What `efhorizon train` does: run every task, show progress, sum up the results."""

from __future__ import annotations

import time

from rich.progress import BarColumn, TimeElapsedColumn

from efhorizon.agents.deep.observations import observation_note
from efhorizon.agents.deep.protocol import RunRecord, algorithm_sample_complexity, setting_sample_complexity
from efhorizon.commands import _terminal
from efhorizon.commands._tensorboard import Board
from efhorizon.render.terminal.training import (
    SettingSummary,
    TableSummary,
    TrainingSummary,
    progress_note,
    row_line,
)
from efhorizon.study.records import Row
from efhorizon.study.results import Results
from efhorizon.study.run import run_task
from efhorizon.study.tasks import RunTask

_SECONDS_BETWEEN_LOOKS = 2.0  # at rows that another sweep is making


def run_all(grid: list[RunTask], results: Results, screen: Screen, board: Board | None) -> None:
    """Run every task; rows claimed by another sweep are checked again until it has made them or given them up."""
    left, was_waiting = grid, False
    while left:
        still_left, made = [], 0
        for task in left:
            screen.begin(task)

            def on_progress(runs: list[RunRecord], task: RunTask = task) -> None:
                screen.step(task, runs)
                if board is not None:
                    board.add(task, runs)

            before = screen.num_made
            if run_task(task, results, on_progress=on_progress, on_row=screen.made):
                still_left.append(task)
            made += screen.num_made - before
        left = still_left
        if left and not made:
            if not was_waiting:
                _terminal.say("waiting for rows that another sweep is making", style="dim")
            was_waiting = True
            time.sleep(_SECONDS_BETWEEN_LOOKS)


class Screen:
    """A bar for the grid and one for the current task; plain lines if stderr is not a terminal."""

    def __init__(self, grid: list[RunTask], results: Results) -> None:
        total = sum(len(task.seeds) for task in grid)
        self._done = sum(results.has(task.key(seed)) for task in grid for seed in task.seeds)
        self.num_made = 0
        self._bars = _terminal.bars(
            _terminal.LineColumn("{task.description}"),
            BarColumn(),
            _terminal.LineColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self._rows = self._bars.add_task("rows", total=total, completed=self._done, note="")
        self._task = self._bars.add_task("", total=1, note="")
        self._lines = _terminal.SlowLines()
        if self._done:
            _terminal.say(f"{self._done} of {total} rows are already there", style="dim")

    def __enter__(self) -> Screen:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, task: RunTask) -> None:
        self._bars.reset(self._task, description=task.title, total=task.max_steps, note="")

    def step(self, task: RunTask, runs: list[RunRecord]) -> None:
        note = progress_note(runs)
        self._bars.update(self._task, completed=max(run.steps for run in runs), note=note)
        self._lines.say(f"{task.title}: {note}")

    def made(self, row: Row) -> None:
        self.num_made += 1
        self._bars.update(self._rows, completed=self._done + self.num_made)
        _terminal.say(row_line(row))


def summary(grid: list[RunTask], results: Results) -> TrainingSummary:
    """Medians over seeds and the least over settings, from the rows of this grid."""
    notes = {} if grid[0].algorithm == "gorp" else {task.id: observation_note(task.mdp) for task in grid}
    complexities: dict[str, dict[str, list[int | None]]] = {}
    for task in grid:
        for seed in task.seeds:
            row = results.row(task.key(seed))
            if row is not None:
                complexities.setdefault(task.id, {}).setdefault(task.setting, []).append(row.sample_complexity)
    return TrainingSummary(
        results=str(results.path),
        algorithm=grid[0].algorithm,
        backend=grid[0].backend,
        rows=sum(len(values) for settings in complexities.values() for values in settings.values()),
        environments=[
            TableSummary(
                id=name,
                sample_complexity=_finite(algorithm_sample_complexity(list(settings.values()))),
                settings={
                    setting: SettingSummary(
                        sample_complexity=_finite(setting_sample_complexity(values)),
                        runs=len(values),
                        solved=sum(value is not None for value in values),
                    )
                    for setting, values in settings.items()
                },
                note=notes.get(name),
            )
            for name, settings in complexities.items()
        ],
    )


def _finite(value: float) -> float | None:
    return None if value == float("inf") else value
