"""Agents on a table: GORP, and the learners of `efhorizon train`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.agents.deep.protocol import PAPER_STEPS, RunRecord, algorithm_sample_complexity
from efhorizon.agents.tabular.gorp import gorp as gorp_runs
from efhorizon.agents.tabular.gorp_search import BUDGET, RUNS, GorpSearch, gorp_sample_complexity
from efhorizon.agents.tabular.runs import Runs
from efhorizon.gorp.ties import Ties
from efhorizon.library.building import as_table
from efhorizon.library.progress import ProgressLine
from efhorizon.mdp import TabularMDP
from efhorizon.render import frames, numbers
from efhorizon.render.terminal.training import progress_note
from efhorizon.study import sweep
from efhorizon.study.records import Row
from efhorizon.study.results import Results
from efhorizon.study.run import run_task
from efhorizon.study.tasks import RunTask, check_installed, tasks

_SECONDS_BETWEEN_LOOKS = 2.0  # at rows that another process is making


def gorp(
    mdp: TabularMDP | str | Path,
    *,
    k: int = 1,
    m: int | None = None,
    runs: int = RUNS,
    seed: int = 0,
    budget: int = BUDGET,
    exploration_policy: ArrayLike | None = None,
    ties: Ties = "uniform",
) -> Runs | GorpSearch:
    """GORP, the paper's simple algorithm, run `runs` times with sequences of k actions and m random episodes for each.

    Without m, the smallest m is searched with which at least half of the runs return an optimal policy, and a
    `GorpSearch` is returned, with its `m` and `sample_complexity`. `budget` are the most timesteps of a run.
    """
    table, rng = as_table(mdp), np.random.default_rng(seed)
    if m is None:
        return gorp_sample_complexity(
            table, k=k, runs=runs, rng=rng, budget=budget, exploration_policy=exploration_policy, ties=ties
        )
    return gorp_runs(table, k=k, m=m, runs=runs, rng=rng, exploration_policy=exploration_policy, ties=ties)


@dataclass(frozen=True)
class Training:
    """The runs of one algorithm on one table."""

    id: str
    algorithm: str
    path: Path  # the results folder
    rows: tuple[Row, ...]  # one per setting and seed

    @property
    def sample_complexity(self) -> float | None:
        """Timesteps until the greedy policy was optimal: the median over seeds, the least over settings.

        None where at least half of the runs of every setting never were.
        """
        settings: dict[str, list[int | None]] = {}
        for row in self.rows:
            settings.setdefault(row.setting, []).append(row.sample_complexity)
        found = algorithm_sample_complexity(list(settings.values()))
        return found if math.isfinite(found) else None

    @property
    def num_solved(self) -> int:
        return sum(row.sample_complexity is not None for row in self.rows)

    def __repr__(self) -> str:
        needed = self.sample_complexity
        said = numbers.NOT_SOLVED if needed is None else f"{needed:,.0f} timesteps"
        return f"Training({self.id}, {self.algorithm}: {said}; {self.num_solved} of {len(self.rows)} runs solved)"

    def to_pandas(self) -> Any:
        """One row per run."""
        return frames.runs_frame(self.rows)


def train(
    mdp: TabularMDP | str | Path,
    *,
    algo: sweep.Algorithm = "ppo",
    seeds: int = sweep.SEEDS,
    steps: int = PAPER_STEPS,
    settings: str = sweep.PAPER,
    results: str | Path = "results",
    backend: sweep.Backend = "table",
    exploration_policy: ArrayLike | None = None,
    initial: Mapping[str, NDArray[Any]] | None = None,
    progress: bool = False,
    **options: Any,
) -> Training:
    """Train "ppo", "dqn" or "gorp" on a table with the paper's settings: after how many timesteps is it optimal?

    `seeds` runs of up to `steps` timesteps for each of the `settings` ("paper": all of them; or names such as
    "rollout128"). Each run is a row in the folder `results`; those that are there already are not run again.
    """
    check_installed(algo, backend)
    grid = tasks(
        [as_table(mdp)],
        algo,
        backend=backend,
        settings=settings,
        num_seeds=seeds,
        max_steps=steps,
        exploration_policy=exploration_policy,
        initial=initial,
        **options,
    )
    folder = Results.made(Path(results))
    with ProgressLine(progress) as line:
        for task in grid:
            _run(task, folder, line)
    keys = [task.key(seed) for task in grid for seed in task.seeds]
    rows = tuple(row for key in keys if (row := folder.row(key)) is not None)
    return Training(grid[0].id, algo, folder.path, rows)


def _run(task: RunTask, results: Results, line: ProgressLine) -> None:
    """Make the rows of a task; those that another process is making are waited for."""

    def on_progress(runs: list[RunRecord]) -> None:
        line(f"{task.title}: {progress_note(runs)}")

    while run_task(task, results, on_progress=on_progress):
        line(f"{task.title}: waiting for another process")
        time.sleep(_SECONDS_BETWEEN_LOOKS)
