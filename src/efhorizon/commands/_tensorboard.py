"""Learning curves for TensorBoard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from efhorizon.agents.deep.protocol import RunRecord
from efhorizon.errors import EfhorizonError
from efhorizon.io.names import safe_name
from efhorizon.study.tasks import RunTask


class Board:
    """Writes the curves of runs that are under way, one folder per run."""

    def __init__(self, folder: Path, grid: Iterable[RunTask]) -> None:
        for task in grid:
            safe_name(task.id)  # it comes from a file, and becomes the name of a folder
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise EfhorizonError("TensorBoard is not installed; install it with: pip install tensorboard") from None
        self._folder, self._writer_class = folder, SummaryWriter
        self._writers: dict[str, Any] = {}
        self._written: dict[str, int] = {}

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.close()

    def add(self, task: RunTask, runs: list[RunRecord]) -> None:
        for run in runs:
            name = f"{task.id}/{task.algorithm}-{task.backend}-{task.setting}/seed{run.seed}"
            if name not in self._writers:
                self._writers[name] = self._writer_class(str(self._folder / name))
            curve = run.result().curve
            for step, greedy, training in curve[self._written.get(name, 0) :]:
                self._writers[name].add_scalar("return/greedy", greedy, step)
                if training is not None:
                    self._writers[name].add_scalar("return/training", training, step)
            self._written[name] = len(curve)
