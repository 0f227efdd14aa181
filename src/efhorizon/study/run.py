"""Run a task: one row per run, each written as soon as it is known; existing rows are skipped."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from efhorizon._version import __version__
from efhorizon.agents.deep.observations import ObservedTable, observed_table
from efhorizon.agents.deep.pretrained import check_parameters
from efhorizon.agents.deep.protocol import RunRecord, RunResult
from efhorizon.agents.deep.random_play import random_play
from efhorizon.agents.tabular.gorp import timesteps_of
from efhorizon.agents.tabular.gorp_search import gorp_sample_complexity, learning_curve
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_plan
from efhorizon.study.records import Row, RunKey, RunProvenance
from efhorizon.study.results import Results
from efhorizon.study.tasks import RunTask

_PACKAGES = {
    "ppo dense": ("numba", "scipy"),
    "dqn dense": ("numba", "scipy"),
    "ppo image": ("torch",),
    "dqn image": ("torch", "numba"),
    "sb3": ("stable-baselines3", "torch"),
    "gorp": ("numba",),
}


def run_task(
    task: RunTask,
    results: Results,
    *,
    on_progress: Callable[[list[RunRecord]], None] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[RunKey]:
    """Make the rows of a task that are missing and that no other sweep is making; returns those left to others."""
    keys = [task.key(seed) for seed in task.seeds]
    with results.claimed(keys) as ours:
        luck = _luck(task) if ours else None

        def append(result: RunResult, optimal_return: float) -> None:
            key = next(key for key in ours if key.seed == result.seed)
            row = _row(task, key, result, optimal_return)
            if task.algorithm != "gorp":
                row = replace(row, trained=result.steps > task.settings().first_update, random_play_steps=luck)
            results.append(key, row)
            if on_row is not None:
                on_row(row)

        if ours and task.algorithm == "gorp":
            append(*_gorp(task))
        elif ours:
            _train(task, [key.seed for key in ours], append, on_progress)
    return [key for key in keys if not results.has(key)]


def _train(
    task: RunTask,
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

    settings, protocol, policy = task.settings(), task.protocol(), task.start.exploration_policy
    if task.backend == "sb3":
        from efhorizon.agents.deep import sb3

        name = str(task.mdp.metadata.get("catalogue_name") or task.id)
        initial = task.initial
        finished = sb3.train(
            name, table, settings, protocol, seeds, initial=initial, exploration_policy=policy, on_progress=look
        )
    elif task.algorithm == "ppo":
        from efhorizon.agents.deep import ppo

        theta = _theta(task, table)
        finished = ppo.train(table, settings, protocol, seeds, initial=theta, on_progress=look)
    else:
        from efhorizon.agents.deep import dqn

        theta = _theta(task, table)
        finished = dqn.train(
            table, settings, protocol, seeds, initial=theta, exploration_policy=policy, on_progress=look
        )
    for result in finished:
        if result.seed not in written:
            append(result, optimal_return)


def _theta(task: RunTask, table: ObservedTable) -> NDArray[np.float32] | None:
    """The parameters that a run of the table backend starts from."""
    from efhorizon.agents.deep.networks import network_for

    initial = task.initial
    if initial is None:
        return None
    network = network_for("actor_critic" if task.algorithm == "ppo" else "q", table)
    check_parameters(initial, network.torch_shapes)
    return network.from_torch(initial)


def _gorp(task: RunTask) -> tuple[RunResult, float]:
    """The empirical sample complexity of GORP: found over many runs, so one row stands for all of them."""
    seed, began = task.seeds[0], time.monotonic()
    if timesteps_of(task.mdp, **task.changes, m=1) > task.max_steps:  # not solved within them, and nothing to run
        return RunResult(seed, None, 0, None, None, None), optimal_plan(task.mdp).optimal_return
    mdp, policy = task.exploration()
    rng = np.random.default_rng(seed)
    search = gorp_sample_complexity(mdp, rng=rng, budget=task.max_steps, exploration_policy=policy, **task.changes)
    learnt = learning_curve(mdp, search.results, policy)
    result = RunResult(
        seed,
        search.sample_complexity,
        search.sample_complexity or search.max_m * search.timesteps_each,
        best_return=float(search.results.returns.max()),
        final_return=float(np.median(search.results.returns)),
        solved_by=None if search.m is None else "half of the runs",
        curve=list(zip(learnt.timesteps.tolist(), *learnt.percentiles.tolist(), strict=True)),
        wall_seconds=time.monotonic() - began,
    )
    return result, search.results.optimal_return


def _row(task: RunTask, key: RunKey, result: RunResult, optimal_return: float) -> Row:
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
        learning_curve=list(result.curve),
        wall_seconds=round(result.wall_seconds, 3),
        hyperparameters=key.hyperparameters,
        protocol=key.protocol,
        provenance=RunProvenance(
            table_fingerprint=key.fingerprint,
            efhorizon=__version__,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            code=key.code,
            packages={name: metadata.version(name) for name in ("numpy", *_PACKAGES[task.kind])},
            python=platform.python_version(),
            machine=platform.machine(),
        ),
    )


def _luck(task: RunTask) -> float | None:
    """What random play (on a variant, play by its policy) needs by the same rule, in timesteps; None: infinite."""
    window = task.protocol().window
    if window is None:
        return None
    steps = random_play(*task.exploration()).steps_needed(window)
    return round(steps, 1) if math.isfinite(steps) else None


_observed_tables: dict[int, tuple[TabularMDP, ObservedTable]] = {}


def _observed(mdp: TabularMDP) -> ObservedTable:
    """The observations of a table, kept for its other settings; one table at a time."""
    known = _observed_tables.get(id(mdp))
    if known is None:
        _observed_tables.clear()
        known = _observed_tables[id(mdp)] = (mdp, observed_table(mdp))
    return known[1]
