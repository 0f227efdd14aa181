"""What `efhorizon policy pretrain` shows: progress, curves and the result."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, TimeElapsedColumn

from efhorizon.commands import _terminal
from efhorizon.errors import EfhorizonError
from efhorizon.policies.pretrain import Pretrained
from efhorizon.policies.pretraining_run import Report
from efhorizon.policies.pretraining_settings import PretrainingSettings
from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal


class Screen:
    """A bar for the run; plain lines if stderr is not a terminal."""

    def __init__(self, settings: PretrainingSettings, steps: int, board: Board | None) -> None:
        self._settings, self._steps, self._board = settings, steps, board
        self._bars = _terminal.bars(
            _terminal.LineColumn("{task.description}"),
            BarColumn(),
            _terminal.LineColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self._task = self._bars.add_task(settings.game, total=steps, note="starting")
        self._lines = _terminal.SlowLines()
        self._first: tuple[float, int] = (time.monotonic(), 0)
        self._is_begun = False

    def __enter__(self) -> Screen:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def step(self, report: Report) -> None:
        if not self._is_begun:  # a run that goes on has its first timesteps already
            self._is_begun, self._first = True, (self._first[0], report.steps - self._settings.samples)
        rate = (report.steps - self._first[1]) / (time.monotonic() - self._first[0])
        note = progress_note(self._settings, report, rate, self._steps)
        self._bars.update(self._task, completed=report.steps, note=note)
        self._lines.say(f"{self._settings.game}: {note}")
        if self._board is not None:
            self._board.add(report, rate)


class Board:
    """Learning curves for TensorBoard."""

    def __init__(self, folder: Path, out: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise EfhorizonError("TensorBoard is not installed; install it with: pip install tensorboard") from None
        self._writer: Any = SummaryWriter(str(folder / out.stem))

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def add(self, report: Report, rate: float) -> None:
        curves = {
            "return/training": report.mean_return,
            "length/training": report.mean_length,
            "policy/entropy": report.entropy,
            "policy/clipped": report.clipped,
            "value/loss": report.value_loss,
            "speed/steps_a_second": rate,
        }
        for name, value in curves.items():
            if value is not None:
                self._writer.add_scalar(name, value, report.steps)


def progress_note(settings: PretrainingSettings, report: Report, rate: float, steps: int) -> str:
    """Where a run stands, in one line."""
    left = max(0, steps - report.steps) / rate
    total = "no episode yet" if report.mean_return is None else f"mean return {report.mean_return:.2f}"
    chance = report.entropy / math.log(settings.num_actions)
    return (
        f"{report.steps:,} of {steps:,} steps, {rate:,.0f} per second, {numbers.seconds(left)} left, {total}, "
        f"entropy {chance:.0%} of random play's"
    )


def content(made: Pretrained) -> dict[str, Any]:
    """The result as JSON."""
    settings = made.settings
    return {
        "path": str(made.path),
        "checkpoint": str(made.checkpoint),
        "game": settings.game,
        "levels": [settings.levels.start, settings.levels.stop - 1],
        **asdict(made.report),
        "device": made.device,
        "precision": settings.precision,
        "seconds": round(made.seconds, 3),
        "steps_made": made.steps_made,
        "settings": asdict(settings),
    }


def lines(made: Pretrained) -> Parts:
    """The result for people."""
    settings, report = made.settings, made.report
    total = "no episode has ended" if report.mean_return is None else f"mean return {report.mean_return:.2f}"
    yield (
        f"[bold]{literal(settings.game)}[/bold]  {report.steps:,} timesteps on {settings.difficulty} levels "
        f"{settings.levels.start} to {settings.levels.stop - 1}, frameskip {settings.frameskip}, {settings.precision}"
    )
    yield f"  {report.episodes:,} episodes, {total} in the last {min(report.episodes, 100)}"
    if made.steps_made:
        rate = made.steps_made / made.seconds
        yield f"  {made.steps_made:,} timesteps in {numbers.seconds(made.seconds)}: {rate:,.0f} per second"
    yield f"  network in {literal(str(made.path))}, run in {literal(str(made.checkpoint))}"
