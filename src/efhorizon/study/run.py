"""Run a grid: every table with every setting and seed, one row a run; done rows are skipped."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon._version import __version__
from efhorizon.agents.deep.observations import ObservedTable, UntrainableTableError, observed_table
from efhorizon.agents.deep.pretrained import Start, check_parameters
from efhorizon.agents.deep.protocol import PAPER_STEPS, Protocol, RunRecord, RunResult
from efhorizon.agents.tabular.gorp import timesteps_of
from efhorizon.agents.tabular.gorp_search import BUDGET, gorp_sample_complexity, learning_curve
from efhorizon.errors import EfhorizonError
from efhorizon.io.behaviour import version_name
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_plan
from efhorizon.planning.policies import InvalidPolicyError
from efhorizon.planning.policies import exploration_policy as checked_policy
from efhorizon.study import sweep
from efhorizon.study.rates import network_of
from efhorizon.study.records import Results, Row, RunKey
from efhorizon.suites.simulator import MissingExtraError

__all__ = ["Task", "UnsuitableStartError", "check_installed", "check_start", "run_task", "tasks"]

_LEARNERS = {  # the module that runs, whose BEHAVIOUR decides whether a row still counts
    "ppo dense": "efhorizon.agents.deep.ppo_flat",
    "ppo image": "efhorizon.agents.deep.ppo_images",
    "dqn dense": "efhorizon.agents.deep.dqn_flat",
    "dqn image": "efhorizon.agents.deep.dqn_images",
    "sb3": "efhorizon.agents.deep.sb3",
    "gorp": "efhorizon.agents.tabular.gorp",
}
_PACKAGES = {
    "ppo dense": ("numba", "scipy"),
    "dqn dense": ("numba", "scipy"),
    "ppo image": ("torch",),
    "dqn image": ("torch", "numba"),
    "sb3": ("stable-baselines3", "torch"),
    "gorp": ("numba",),
}


class UnsuitableStartError(EfhorizonError):
    """An algorithm cannot start from what it was given; the message is one line for the user."""


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
    start: Start = field(default_factory=Start)

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
        set_here = dict(self.changes) if self.algorithm == "gorp" else dataclasses.asdict(self.settings())
        return set_here | self.start.digests

    def settings(self) -> Any:
        """The settings of PPO or DQN."""
        gamma = sweep.discount(str(self.mdp.metadata.get("suite")))
        if self.algorithm == "ppo":
            from efhorizon.agents.deep.ppo import PPOSettings

            return PPOSettings(gamma=gamma, **self.changes)
        from efhorizon.agents.deep.dqn import DQNSettings

        return DQNSettings(gamma=gamma, **self.changes)

    @property
    def kind(self) -> str:
        """What runs: a key of `_LEARNERS`."""
        if self.algorithm == "gorp":
            return "gorp"
        if self.backend == "sb3":
            return "sb3"
        return f"{self.algorithm} {network_of(str(self.mdp.metadata.get('suite')))}"

    @property
    def code(self) -> str:
        """The version of the learner, on which a row depends."""
        return version_name(self.kind, import_module(_LEARNERS[self.kind]).BEHAVIOUR)

    def key(self, seed: int) -> RunKey:
        return RunKey(
            self.id,
            self.algorithm,
            self.backend,
            self.setting,
            seed,
            self.hyperparameters(),
            dataclasses.asdict(self.protocol()),
            _fingerprint(self.mdp),
            self.code,
        )


def check_installed(algorithm: str, backend: str) -> None:
    """Refuse at once what cannot run for want of a package."""
    if algorithm == "gorp":
        return
    for module in ("torch",) if backend == "table" else ("torch", "stable_baselines3"):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError("train", module) from None


def check_start(algorithm: str, *, has_policy: bool, has_parameters: bool) -> None:
    """Refuse at once what an algorithm cannot start from."""
    if has_policy and algorithm == "ppo":
        raise UnsuitableStartError(
            "PPO explores with the policy that it learns: give it initial parameters instead of an exploration policy"
        )
    if has_parameters and algorithm == "gorp":
        raise UnsuitableStartError("GORP has no network: give it an exploration policy instead of initial parameters")


def tasks(
    mdps: Sequence[TabularMDP],
    algorithm: sweep.Algorithm,
    *,
    backend: str = "table",
    settings: str = sweep.PAPER,
    num_seeds: int = sweep.SEEDS,
    max_steps: int = PAPER_STEPS,
    exploration_policy: ArrayLike | None = None,
    initial: Mapping[str, NDArray[Any]] | None = None,
) -> list[Task]:
    """The grid. GORP runs its 101 seeds at once, so that each of its settings is one row; its budget is its own.

    `exploration_policy` (DQN, GORP) is an array [S, A] or [T, S, A], `initial` (PPO, DQN) the state dictionary of a
    Stable-Baselines3 policy. A setting is named after them too, so that nobody takes a median over unlike runs.
    """
    check_start(algorithm, has_policy=exploration_policy is not None, has_parameters=initial is not None)
    seeds = tuple(range(num_seeds))
    if algorithm == "gorp":
        seeds, backend, max_steps = (0,), "table", BUDGET
    grid = []
    for mdp in mdps:
        start = _start(mdp, exploration_policy, initial)
        for name, changes in sweep.named_settings(algorithm, settings).items():
            grid.append(Task(mdp, algorithm, backend, name + start.suffix, changes, seeds, max_steps, start))
    return grid


def _start(mdp: TabularMDP, policy: ArrayLike | None, initial: Mapping[str, NDArray[Any]] | None) -> Start:
    """What runs on this table start from, checked against it; the uniform policy is the algorithms' own."""
    name = mdp.metadata.get("id")
    if not mdp.is_complete:
        raise UntrainableTableError(f"{name}: the table is unfinished; training needs a complete one")
    try:
        explorer = checked_policy(mdp, policy)
    except InvalidPolicyError as error:
        raise InvalidPolicyError(f"{name}: {error}") from None
    return Start(None if explorer.is_uniform else explorer, initial)


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

    settings, protocol, policy = task.settings(), task.protocol(), task.start.exploration_policy
    if task.backend == "sb3":
        from efhorizon.agents.deep import sb3

        name = str(task.mdp.metadata.get("catalogue_name") or task.id)
        initial = task.start.initial
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


def _theta(task: Task, table: ObservedTable) -> NDArray[np.float32] | None:
    """The parameters that a run of the table backend starts from."""
    from efhorizon.agents.deep.networks import network_for

    if task.start.initial is None:
        return None
    network = network_for("actor_critic" if task.algorithm == "ppo" else "q", table)
    check_parameters(task.start.initial, network.torch_shapes)
    return network.from_torch(task.start.initial)


def _gorp(task: Task) -> tuple[RunResult, float]:
    """The empirical sample complexity of GORP: found over many runs, so one row stands for all of them."""
    seed, policy, began = task.seeds[0], task.start.exploration_policy, time.monotonic()
    if timesteps_of(task.mdp, **task.changes, m=1) > task.max_steps:  # not solved within them, and nothing to run
        return RunResult(seed, None, 0, None, None, None), optimal_plan(task.mdp).optimal_return
    rng = np.random.default_rng(seed)
    search = gorp_sample_complexity(task.mdp, rng=rng, budget=task.max_steps, exploration_policy=policy, **task.changes)
    learnt = learning_curve(task.mdp, search.results, policy)
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


def _row(task: Task, key: RunKey, result: RunResult, optimal_return: float) -> Row:
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
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "code": key.code,
            "packages": {name: metadata.version(name) for name in ("numpy", *_PACKAGES[task.kind])},
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


@lru_cache(maxsize=4)  # one table has several settings and seeds; more entries would keep old tables in memory
def _fingerprint(mdp: TabularMDP) -> str:
    return mdp.fingerprint()
