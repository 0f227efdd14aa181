"""`efhorizon train`: PPO, DQN or GORP on tables, one row a run, with progress and resumption."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from efhorizon.agents.deep.pretrained import load_parameters
from efhorizon.agents.deep.protocol import RunRecord, algorithm_sample_complexity, setting_sample_complexity
from efhorizon.cli import messages, print_json
from efhorizon.errors import EfhorizonError
from efhorizon.io.tables import load_table
from efhorizon.planning.policies import load_policy
from efhorizon.study import sweep
from efhorizon.study.records import Row
from efhorizon.study.results import Results
from efhorizon.study.run import run_task
from efhorizon.study.tasks import RunTask, check_installed, check_start, tasks

_SECONDS_A_LINE = 30.0
_SECONDS_BETWEEN_LOOKS = 2.0  # at rows that another sweep is making


def run(options: argparse.Namespace) -> int:
    for name in ("seeds", "steps"):
        if getattr(options, name) < 1:
            raise EfhorizonError(f"--{name} must be at least 1, got {getattr(options, name)}")
    policy_file, parameter_file = options.exploration_policy, options.initial
    sweep.named_settings(options.algo, options.settings)  # before any table is read
    check_start(options.algo, has_policy=policy_file is not None, has_parameters=parameter_file is not None)
    check_installed(options.algo, options.backend)
    grid = tasks(
        [load_table(Path(name), options.tables) for name in options.names],
        options.algo,
        backend=options.backend,
        settings=options.settings,
        num_seeds=options.seeds,
        max_steps=options.steps,
        exploration_policy=None if policy_file is None else load_policy(policy_file),
        initial=None if parameter_file is None else load_parameters(parameter_file),
    )
    results = Results.made(options.results)
    with ExitStack() as stack:
        board = stack.enter_context(_Board(options.tensorboard)) if options.tensorboard else None
        progress = stack.enter_context(_Progress(grid, results))
        _run_all(grid, results, progress, board)
    content = _summary(grid, results)
    if options.json:
        print_json(content)
    else:
        _print_summary(content)
    return 0


def _run_all(grid: list[RunTask], results: Results, progress: _Progress, board: _Board | None) -> None:
    """Run every task; rows that another sweep has claimed are looked at again until it has made or dropped them."""
    left, was_waiting = grid, False
    while left:
        still_left, made = [], 0
        for task in left:
            progress.begin(task)

            def on_progress(runs: list[RunRecord], task: RunTask = task) -> None:
                progress.step(task, runs)
                if board is not None:
                    board.add(task, runs)

            before = progress.num_made
            if run_task(task, results, on_progress=on_progress, on_row=progress.made):
                still_left.append(task)
            made += progress.num_made - before
        left = still_left
        if left and not made:
            if not was_waiting:
                messages.print("waiting for rows that another sweep is making", style="dim")
            was_waiting = True
            time.sleep(_SECONDS_BETWEEN_LOOKS)


class _Progress:
    """A bar for the grid and one for the current task; plain lines where stderr is no terminal."""

    def __init__(self, grid: list[RunTask], results: Results) -> None:
        self._total = sum(len(task.seeds) for task in grid)
        self._done = sum(results.has(task.key(seed)) for task in grid for seed in task.seeds)
        self.num_made = 0
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[note]}"))
        self._bars = Progress(
            *columns, TimeElapsedColumn(), console=messages, transient=True, disable=not messages.is_terminal
        )
        self._rows = self._bars.add_task("rows", total=self._total, completed=self._done, note="")
        self._task = self._bars.add_task("", total=1, note="")
        self._last = time.monotonic()
        if self._done:
            messages.print(f"{self._done} of {self._total} rows are there already", style="dim")

    def __enter__(self) -> _Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, task: RunTask) -> None:
        self._bars.reset(self._task, description=task.title, total=task.max_steps, note="")

    def step(self, task: RunTask, runs: list[RunRecord]) -> None:
        furthest = max(run.steps for run in runs)
        solved = sum(run.is_finished for run in runs)
        returns = [run.last_evaluation for run in runs if run.last_evaluation is not None]
        note = f"{furthest:,} steps, {solved} of {len(runs)} finished"
        if returns:
            note += f", greedy return {min(returns):g} to {max(returns):g}"
        self._bars.update(self._task, completed=furthest, note=note)
        if not messages.is_terminal and time.monotonic() - self._last > _SECONDS_A_LINE:
            self._last = time.monotonic()
            messages.print(f"{task.title}: {note}", markup=False, soft_wrap=True)

    def made(self, row: Row) -> None:
        self.num_made += 1
        self._bars.update(self._rows, completed=self._done + self.num_made)
        outcome = "not solved" if row.sample_complexity is None else f"solved after {row.sample_complexity:,} timesteps"
        messages.print(
            f"{row.id} {row.algorithm} {row.setting} seed {row.seed}: {outcome} ({row.wall_seconds:.1f} s)",
            markup=False,
            soft_wrap=True,
        )


class _Board:
    """Learning curves for TensorBoard, a folder a run."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise EfhorizonError("TensorBoard is not installed; install it with: pip install tensorboard") from None
        self._folder, self._writer_class = folder, SummaryWriter
        self._writers: dict[str, Any] = {}
        self._written: dict[str, int] = {}

    def __enter__(self) -> _Board:
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


def _summary(grid: list[RunTask], results: Results) -> dict[str, Any]:
    """Medians over seeds and the least over settings, from the rows of this grid."""
    complexities: dict[str, dict[str, list[int | None]]] = {}
    for task in grid:
        for seed in task.seeds:
            row = results.row(task.key(seed))
            if row is not None:
                complexities.setdefault(task.id, {}).setdefault(task.setting, []).append(row.sample_complexity)
    return {
        "results": str(results.path),
        "algorithm": grid[0].algorithm,
        "backend": grid[0].backend,
        "rows": sum(len(values) for settings in complexities.values() for values in settings.values()),
        "environments": [
            {
                "id": name,
                "sample_complexity": _finite(algorithm_sample_complexity(list(settings.values()))),
                "settings": {
                    setting: {
                        "sample_complexity": _finite(setting_sample_complexity(values)),
                        "runs": len(values),
                        "solved": sum(value is not None for value in values),
                    }
                    for setting, values in settings.items()
                },
            }
            for name, settings in complexities.items()
        ],
    }


def _print_summary(content: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for environment in content["environments"]:
        console.print(f"[bold]{environment['id']}[/bold]  {content['algorithm']}: {_steps(environment)}")
        for name, setting in environment["settings"].items():
            console.print(f"  {name:16} {_steps(setting):>16}  ({setting['solved']} of {setting['runs']} runs solved)")
    console.print(f"{content['rows']} rows in {content['results']}")


def _steps(content: dict[str, Any]) -> str:
    value = content["sample_complexity"]
    return "not solved" if value is None else f"{value:,.0f} timesteps"


def _finite(value: float) -> float | None:
    return None if value == float("inf") else value
