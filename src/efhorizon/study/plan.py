"""What a study is to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import UNSET

from efhorizon import catalog
from efhorizon.build.explore import Budget
from efhorizon.build.target import Target, catalogue_target
from efhorizon.planning.problem import DEFAULT_MAX_K
from efhorizon.study.rates import network_of
from efhorizon.study.records import PlanRecord
from efhorizon.study.tasks import RunPlan, RunTask, tasks_on

ALL = "all"  # every suite


@dataclass(frozen=True)
class Plan:
    """A study: which environments, what is run on them, how much of everything."""

    out: Path
    names: tuple[str, ...]
    runs: tuple[RunPlan, ...] = tuple(RunPlan(algorithm) for algorithm in ("gorp", "ppo", "dqn"))
    image_runs: tuple[RunPlan, ...] | None = None  # instead of `runs` where agents see images: training is slow there
    max_k: int = DEFAULT_MAX_K
    budget: Budget = field(default_factory=Budget)
    num_workers: int = 1
    note: str | None = None  # what readers of the report should know

    @property
    def tables(self) -> Path:
        return self.out / "tables"

    def targets(self) -> list[Target]:
        """What is to be built. Horizons of one game are grouped, the shortest first, as each search continues the
        previous one."""
        found = [catalogue_target(name) for name in self.names]
        first = {target.search_name: place for place, target in reversed(list(enumerate(found)))}
        return sorted(found, key=lambda target: (first[target.search_name], target.horizon))

    def runs_on(self, target: Target) -> tuple[RunPlan, ...]:
        is_seen = network_of(target.metadata) == "image"
        return self.image_runs if is_seen and self.image_runs is not None else self.runs

    def tasks(self, target: Target) -> list[RunTask]:
        """One task for each algorithm and setting; its table is loaded by whoever runs it."""
        table = self.tables / target.id
        return [
            task
            for runs in self.runs_on(target)
            for task in tasks_on(table, target.id, network_of(target.metadata), runs)
        ]

    def record(self) -> PlanRecord:
        return PlanRecord(
            names=list(self.names),
            runs=[runs.record() for runs in self.runs],
            max_k=self.max_k,
            max_states=self.budget.max_states,
            max_minutes=self.budget.max_minutes,
            note=self.note,
            image_runs=UNSET if self.image_runs is None else [runs.record() for runs in self.image_runs],
        )


def environment_names(given: Iterable[str]) -> tuple[str, ...]:
    """Names of environments from names and suites, each once; an unknown name is refused with those closest to it."""
    found: dict[str, None] = {}
    for name in given:
        suites = [suite for suite in catalog.suite_names() if name in (suite, ALL)]
        entries = [entry for suite in suites for entry in catalog.entries(suite)] if suites else [catalog.entry(name)]
        found.update((entry.name, None) for entry in entries)
    return tuple(found)
