"""Runs on tables with sticky actions: SQIRL, PPO and DQN by the full protocol, one row for each run.

    ppo, dqn         a task is one run; its policy is evaluated exactly every 10,000 timesteps
    sqirl            a task is the search for the least m with one k: a row for each seed, with the m that was found
    sqirl_network    the same with a network instead of exact means

A run is solved within 1% of the optimal return, which is computed exactly. Its sample complexity is the timesteps until
then; of SQIRL, all timesteps of the run. As elsewhere, that of a setting is the median over seeds, that of an algorithm
the least over its settings.
"""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any, Literal, get_args

from efhorizon._version import __version__
from efhorizon.io.behaviour import version_name
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.observed import sticky_observed_table
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sticky import sticky
from efhorizon.stochastic.training import settings_for, train_sticky
from efhorizon.study import sticky_search, sweep
from efhorizon.study.records import Row, RunKey, RunProtocol, RunProvenance
from efhorizon.study.results import Results
from efhorizon.study.sweep import Settings

Algorithm = Literal["sqirl", "ppo", "dqn", "sqirl_network"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
KS = (1, 2, 3)  # of SQIRL
CURVE_POINTS = 25  # of a row: a run has up to 500 evaluations
_NUMBERED: dict[Algorithm, tuple[str, ...]] = {  # the modules whose BEHAVIOUR decides whether a row still counts
    "ppo": ("efhorizon.stochastic.training", "efhorizon.agents.deep.ppo_flat"),
    "dqn": ("efhorizon.stochastic.training", "efhorizon.agents.deep.dqn_flat"),
    "sqirl": ("efhorizon.stochastic.sqirl",),
    "sqirl_network": ("efhorizon.stochastic.sqirl_network",),
}
Curve = Sequence[tuple[int, float, float | None]]


@dataclass(frozen=True)
class StickyTask:
    """One setting of an algorithm on one table: the run of one seed, or SQIRL's search with all of them."""

    algorithm: Algorithm
    setting: str
    changes: Settings
    seeds: tuple[int, ...]
    max_steps: int

    def keys(self, mdp: TabularMDP, chance: float) -> list[RunKey]:
        """What the rows of this task on a table are called."""
        versions = [import_module(module).BEHAVIOUR for module in _NUMBERED[self.algorithm]]
        interval = sweep.EVALUATION_INTERVAL if self.algorithm in ("ppo", "dqn") else None
        protocol = RunProtocol(self.max_steps) if interval is None else RunProtocol(self.max_steps, interval, None)
        code = version_name(f"sticky {self.algorithm}", *versions)
        name, fingerprint = sticky_name(mdp, chance), mdp.fingerprint()
        return [
            RunKey(
                name,
                self.algorithm,
                "table",
                self.setting,
                seed,
                self._hyperparameters(mdp),
                protocol,
                fingerprint,
                code,
            )
            for seed in self.seeds
        ]

    def run(
        self, mdp: TabularMDP, chance: float, results: Results, on_progress: Callable[[str], None] = lambda _: None
    ) -> list[Row]:
        """Make the rows of a task that are not there yet, unless another process is making them."""
        keys = self.keys(mdp, chance)
        with results.claimed(keys) as ours:
            if not ours:
                return []
            made = self._trained if self.algorithm in ("ppo", "dqn") else self._searched
            rows = made(mdp, chance, ours, on_progress)
            for key, row in zip(ours, rows, strict=True):
                results.append(key, row)
            return rows

    def _hyperparameters(self, mdp: TabularMDP) -> Settings:
        if self.algorithm in ("ppo", "dqn"):
            return dataclasses.asdict(self._settings(mdp))
        return dict(self.changes)

    def _settings(self, mdp: TabularMDP) -> Any:
        return settings_for(mdp, "ppo" if self.algorithm == "ppo" else "dqn", self.changes, self.max_steps)

    def _trained(
        self, mdp: TabularMDP, chance: float, keys: list[RunKey], on_progress: Callable[[str], None]
    ) -> list[Row]:
        rows, plan = [], _plan(mdp, chance)
        for key in keys:
            began = time.monotonic()
            (run,) = train_sticky(
                mdp,
                chance,
                "ppo" if self.algorithm == "ppo" else "dqn",
                self._settings(mdp),
                [key.seed],
                max_steps=self.max_steps,
                evaluation_interval=sweep.EVALUATION_INTERVAL,
                on_progress=lambda step, found: on_progress(f"{step:,} timesteps, return {found[0]:.4g}"),
            )
            best = max((max(found, played or found) for _, found, played in run.curve), default=None)
            solved = run.sample_complexity, run.solved_by
            rows.append(_row(key, plan, solved, run.steps, (best, run.final_return), run.curve, began, {}))
        return rows

    def _searched(
        self, mdp: TabularMDP, chance: float, keys: list[RunKey], on_progress: Callable[[str], None]
    ) -> list[Row]:
        began, k = time.monotonic(), int(self.changes["k"])
        if self.algorithm == "sqirl":
            plan, ladder = _plan(mdp, chance), sticky_search.fine_ladder()
            player = sticky_search.tabular(plan, k)
        else:
            table, made = sticky_observed_table(mdp, chance)
            plan, ladder = Plan(made), sticky_search.coarse_ladder()
            player = sticky_search.with_network(plan, table, k, on_progress)
        runs = sticky_search.least_m(
            player, ladder, [key.seed for key in keys], max_steps=self.max_steps, on_progress=on_progress
        )
        return [
            _row(
                key,
                plan,
                (run.timesteps, "greedy policy") if run.is_success else (None, None),
                run.timesteps,
                (run.found_return, run.found_return),
                [(run.timesteps, run.found_return, None)],
                began,
                {"m": run.m},
            )
            for key, run in zip(keys, runs, strict=True)
        ]


def sticky_name(mdp: TabularMDP, chance: float) -> str:
    """What the table with sticky actions is called."""
    return f"{mdp.metadata.get('id', 'table')}-sticky{chance:g}"


def passes(algorithms: Sequence[Algorithm], num_seeds: int, max_steps: int) -> list[list[StickyTask]]:
    """Tasks in the order in which they are run: each pass goes over all tables before the next begins.

    So whatever the time allows, tables have the same runs: first one setting of each algorithm, then the others. SQIRL
    with a network comes last, because it takes longest.
    """
    seeds = tuple(range(num_seeds))
    found: list[tuple[tuple[bool, int], list[StickyTask]]] = []
    for algorithm in algorithms:
        is_slow = algorithm == "sqirl_network"
        for place, (setting, changes) in enumerate(_settings_of(algorithm).items()):
            parts = [(seed,) for seed in seeds] if algorithm in ("ppo", "dqn") else [seeds]
            tasks = [StickyTask(algorithm, setting, changes, part, max_steps) for part in parts]
            found.append(((is_slow, place), tasks))
    return [tasks for _, tasks in sorted(found, key=lambda each: each[0])]


def _settings_of(algorithm: Algorithm) -> dict[str, Settings]:
    if algorithm in ("ppo", "dqn"):
        return sweep.named_settings("ppo" if algorithm == "ppo" else "dqn")
    return {f"k{k}": {"k": k} for k in KS}


@lru_cache(maxsize=1)
def _plan(mdp: TabularMDP, chance: float) -> Plan:
    return Plan(sticky(mdp, chance))


def _row(
    key: RunKey,
    plan: Plan,
    solved: tuple[int | None, str | None],  # after how many timesteps, by what
    steps: int,
    returns: tuple[float | None, float],  # best, final
    curve: Curve,
    began: float,
    more: Settings,
) -> Row:
    packages = ("numpy", "numba", *(["torch"] if key.algorithm == "sqirl_network" else []))
    return Row(
        id=key.id,
        algorithm=key.algorithm,
        backend=key.backend,
        setting=key.setting,
        seed=key.seed,
        sample_complexity=solved[0],
        solved_by=solved[1],
        steps=steps,
        best_return=returns[0],
        final_return=returns[1],
        optimal_return=plan.optimal.values.at_start,
        learning_curve=list(thinned(curve)),
        wall_seconds=round(time.monotonic() - began, 3),
        hyperparameters={**key.hyperparameters, **more},
        protocol=key.protocol,
        provenance=RunProvenance(
            table_fingerprint=key.fingerprint,
            efhorizon=__version__,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            code=key.code,
            packages={name: metadata.version(name) for name in packages},
            python=platform.python_version(),
            machine=platform.machine(),
        ),
    )


def thinned(curve: Curve) -> Curve:
    """At most `CURVE_POINTS` points of a curve, evenly spaced, the first and the last among them."""
    if len(curve) <= CURVE_POINTS:
        return curve
    last = len(curve) - 1
    return [curve[round(place * last / (CURVE_POINTS - 1))] for place in range(CURVE_POINTS)]
