"""Run a grid: every table with every setting and seed, one row a run; done rows are skipped."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from efhorizon._version import __version__
from efhorizon.agents.observations import ObservedTable, observed_table
from efhorizon.agents.protocol import Protocol, RunRecord, RunResult
from efhorizon.envs.base import MissingExtraError
from efhorizon.envs.specification import code_digest
from efhorizon.experiments import sweep
from efhorizon.experiments.records import Results, Row, RunKey
from efhorizon.mdp import TabularMDP

_AGENTS = "efhorizon.agents."
_MODULES = {  # whose code decides what a run does
    "table": tuple(
        _AGENTS + name for name in ("ppo", "dqn", "forward", "networks", "packing", "observations", "protocol")
    ),
    "sb3": (*(_AGENTS + name for name in ("sb3", "observations", "protocol")), "efhorizon.envs.bridge"),
    "gorp": tuple(_AGENTS + name for name in ("gorp", "gorp_search", "_kernels", "_runs")),
}
_PACKAGES = {"table": ("jax", "jaxlib"), "sb3": ("stable-baselines3", "torch"), "gorp": ("numba",)}


@dataclass(frozen=True)
class Task:
    """Runs that differ in their seed only."""

    mdp: TabularMDP
    algorithm: sweep.Algorithm
    backend: str
    setting: str
    changes: Mapping[str, Any]  # what the setting sets
    seeds: tuple[int, ...]
    max_steps: int

    @property
    def id(self) -> str:
        return str(self.mdp.metadata.get("id"))

    @property
    def title(self) -> str:
        return f"{self.id} {self.algorithm} {self.setting}" + (" sb3" if self.backend == "sb3" else "")

    def protocol(self) -> Protocol:
        window = sweep.TRAINING_WINDOW if self.algorithm == "ppo" else None
        return Protocol(self.max_steps, sweep.EVALUATION_INTERVAL, window)

    def hyperparameters(self) -> dict[str, Any]:
        return dict(self.changes) if self.algorithm == "gorp" else dataclasses.asdict(self.settings())

    def settings(self) -> Any:
        """The settings of PPO or DQN."""
        gamma = sweep.discount(str(self.mdp.metadata.get("suite")))
        if self.algorithm == "ppo":
            from efhorizon.agents.ppo import PPOSettings

            return PPOSettings(gamma=gamma, **self.changes)
        from efhorizon.agents.dqn import DQNSettings

        return DQNSettings(gamma=gamma, **self.changes)

    def key(self, seed: int) -> RunKey:
        kind = self.algorithm if self.algorithm == "gorp" else self.backend
        return RunKey(
            self.id,
            self.algorithm,
            self.backend,
            self.setting,
            seed,
            self.hyperparameters(),
            dataclasses.asdict(self.protocol()),
            _fingerprint(self.mdp),
            _code(kind),
        )


def check_installed(algorithm: str, backend: str) -> None:
    """Refuse at once what cannot run for want of a package."""
    if algorithm == "gorp":
        return
    for module in ("jax",) if backend == "table" else ("jax", "torch", "stable_baselines3"):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError("train", module) from None


def tasks(
    mdps: Sequence[TabularMDP],
    algorithm: sweep.Algorithm,
    *,
    backend: str = "table",
    settings: str = sweep.PAPER,
    num_seeds: int = sweep.SEEDS,
    max_steps: int = sweep.STEPS,
) -> list[Task]:
    """The grid. GORP runs its 101 seeds at once, so that each of its settings is one row."""
    seeds = (0,) if algorithm == "gorp" else tuple(range(num_seeds))
    backend = "table" if algorithm == "gorp" else backend
    return [
        Task(mdp, algorithm, backend, name, changes, seeds, max_steps)
        for mdp in mdps
        for name, changes in sweep.named_settings(algorithm, settings).items()
    ]


def run_task(
    task: Task,
    results: Results,
    *,
    on_progress: Callable[[list[RunRecord]], None] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[RunKey]:
    """Make the rows of a task that are missing and that no other sweep is making; returns those left to others."""
    keys = [task.key(seed) for seed in task.seeds]
    with results.claimed(keys) as ours:

        def append(result: RunResult, optimal_return: float) -> None:
            key = next(key for key in ours if key.seed == result.seed)
            row = _row(task, key, result, optimal_return)
            results.append(key, row)
            if on_row is not None:
                on_row(row)

        if ours and task.algorithm == "gorp":
            append(*_gorp(task))
        elif ours:
            _train(task, [key.seed for key in ours], append, on_progress)
    return [key for key in keys if not results.has(key)]


def _train(
    task: Task,
    seeds: list[int],
    append: Callable[[RunResult, float], None],
    on_progress: Callable[[list[RunRecord]], None] | None,
) -> None:
    """Train, and append the row of each seed as soon as it has finished."""
    table = _observed(task.mdp)
    optimal_return = table.optimal_units * table.unit
    written: set[int] = set()

    def look(runs: list[RunRecord]) -> None:
        for run in runs:
            if run.is_finished and run.seed not in written:
                written.add(run.seed)
                append(run.result(), optimal_return)
        if on_progress is not None:
            on_progress(runs)

    settings, protocol = task.settings(), task.protocol()
    if task.backend == "sb3":
        from efhorizon.agents import sb3

        name = str(task.mdp.metadata.get("catalogue_name") or task.id)
        finished = sb3.train(name, table, settings, protocol, seeds, on_progress=look)
    elif task.algorithm == "ppo":
        from efhorizon.agents import ppo

        finished = ppo.train(table, settings, protocol, seeds, on_progress=look)
    else:
        from efhorizon.agents import dqn

        finished = dqn.train(table, settings, protocol, seeds, on_progress=look)
    for result in finished:
        if result.seed not in written:
            append(result, optimal_return)


def _gorp(task: Task) -> tuple[RunResult, float]:
    """The empirical sample complexity of GORP: found over many runs, so one row stands for all of them."""
    from efhorizon.agents.gorp_search import gorp_sample_complexity, learning_curve

    seed = task.seeds[0]
    search = gorp_sample_complexity(task.mdp, rng=np.random.default_rng(seed), **task.changes)
    best = final = None
    curve: list[tuple[int, float, float | None]] = []
    if search.results is not None:
        best, final = float(search.results.returns.max()), float(np.median(search.results.returns))
        learnt = learning_curve(task.mdp, search.results)
        means = learnt.returns.mean(axis=0).tolist()
        curve = [(int(step), value, None) for step, value in zip(learnt.timesteps.tolist(), means, strict=True)]
    steps = search.sample_complexity or search.max_m * search.timesteps_each
    solved_by = None if search.m is None else "half of the runs"
    result = RunResult(seed, search.sample_complexity, steps, best, final, solved_by, curve)
    from efhorizon.planning.optimal import optimal_plan

    return result, optimal_plan(task.mdp).optimal_return


def _row(task: Task, key: RunKey, result: RunResult, optimal_return: float) -> Row:
    kind = task.algorithm if task.algorithm == "gorp" else task.backend
    return Row(
        id=key.id,
        algorithm=key.algorithm,
        backend=key.backend,
        setting=key.setting,
        seed=key.seed,
        sample_complexity=result.sample_complexity,
        solved_by=result.solved_by,
        steps=result.steps,
        best_return=result.best_return,
        final_return=result.final_return,
        optimal_return=optimal_return,
        learning_curve=[list(point) for point in result.curve],
        wall_seconds=round(result.wall_seconds, 3),
        hyperparameters=dict(key.hyperparameters),
        protocol=dict(key.protocol),
        provenance={
            "table_fingerprint": key.fingerprint,
            "efhorizon": __version__,
            "code": key.code,
            "packages": {name: metadata.version(name) for name in ("numpy", *_PACKAGES[kind])},
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
    )


_observed_tables: dict[int, tuple[TabularMDP, ObservedTable]] = {}


def _observed(mdp: TabularMDP) -> ObservedTable:
    """The observations of a table, kept for its other settings; one table at a time."""
    known = _observed_tables.get(id(mdp))
    if known is None:
        _observed_tables.clear()
        known = _observed_tables[id(mdp)] = (mdp, observed_table(mdp))
    return known[1]


@cache
def _code(kind: str) -> str:
    """The code as it was when it was first asked for, whatever is edited while it runs."""
    return code_digest(_MODULES[kind])


@cache
def _fingerprint(mdp: TabularMDP) -> str:
    return mdp.fingerprint()


def load_table(given: Path, tables: Path = Path("tables")) -> TabularMDP:
    """A table by its path, or by its name in the folder of tables."""
    from efhorizon import catalog
    from efhorizon.errors import StoreError
    from efhorizon.mdp import load

    named = tables / given
    if not given.is_absolute() and named.exists():
        return load(named)
    if given.exists():
        return load(given)
    if str(given) in {entry.name for entry in catalog.entries()}:
        raise StoreError(f"{given}: no table in {tables}/; build it first: efhorizon build {given} --out {tables}")
    if len(given.parts) == 1:
        catalog.entry(str(given))  # says what names are close
    raise StoreError(f"{given}: no such table, and none of that name in {tables}/")
