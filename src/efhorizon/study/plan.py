"""What a study is to do: which tables are built, and which cases are analyzed and run on them.

A case is an MDP, or a variant: an MDP with a policy to start from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from msgspec import UNSET

from efhorizon import catalog
from efhorizon.build.explore import Budget
from efhorizon.build.target import Target
from efhorizon.engines.choice import EngineChoice
from efhorizon.errors import EfhorizonError
from efhorizon.io.tables import load
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import DEFAULT_MAX_K
from efhorizon.study.analysis_record import SEPARATOR
from efhorizon.study.rates import network_of
from efhorizon.study.records import PlanRecord
from efhorizon.study.subjects import TABLES, StoredTable, Subject, is_table, subject
from efhorizon.study.tasks import RunPlan, RunTask, tasks_on
from efhorizon.study.variants import PolicyFile, PolicyFolder, UnknownPolicyError, split_name

ALL = "all"  # every suite
STARTS_FROM_A_POLICY = ("gorp", "ppo")  # algorithms that are run on variants: the paper's, and its theory's


@dataclass(frozen=True)
class Case:
    """What is analyzed and run: an MDP, or one with a policy to start from."""

    target: Subject
    policy: PolicyFile | None = None

    @property
    def id(self) -> str:
        return self.target.id if self.policy is None else f"{self.target.id}{SEPARATOR}{self.policy.label}"


@dataclass(frozen=True)
class Plan:
    """A study: which environments, what is run on them, how much of everything."""

    out: Path
    names: tuple[str, ...]  # of MDPs: see `subjects`; NAME@LABEL is a variant alone
    runs: tuple[RunPlan, ...] = tuple(RunPlan(algorithm) for algorithm in ("gorp", "ppo", "dqn"))
    image_runs: tuple[RunPlan, ...] | None = None  # instead of `runs` where agents see images: training is slow there
    max_k: int = DEFAULT_MAX_K
    budget: Budget = field(default_factory=Budget)
    num_workers: int = 1
    engine: EngineChoice = field(default_factory=EngineChoice)
    note: str | None = None  # what readers of the report should know
    policies: Path | None = None  # a folder of policies: MDPs that have one are studied with it too
    horizon: int | None = None  # in place of the MDPs' own
    tries_changes: bool = False  # whether changes of each table are tried: what would make it easier?
    given_tables: Path = TABLES  # where tables that are there already are looked up by name

    @property
    def tables(self) -> Path:
        """Where tables are built."""
        return self.out / "tables"

    def subjects(self) -> list[Subject]:
        """All MDPs. Horizons of one game are grouped, the shortest first, as each search continues the previous one."""
        found = list(dict.fromkeys(name for name, _ in self._bases.values()))
        known = [self._found[name] for name in found]
        first = {each.search_name: place for place, each in reversed(list(enumerate(known)))}
        return sorted(known, key=lambda each: (first[each.search_name], each.horizon))

    def targets(self) -> list[Target]:
        """What is to be built."""
        return [each for each in self.subjects() if isinstance(each, Target)]

    def table_of(self, of: Subject) -> Path:
        """Where the table of an MDP is, or will be."""
        return of.path if isinstance(of, StoredTable) else self.tables / of.id

    def loaded(self, of: Subject) -> TabularMDP:
        """The table of an MDP, which is there."""
        return of.loaded() if isinstance(of, StoredTable) else load(self.tables / of.id)

    def cases(self) -> list[Case]:
        """What is to be analyzed and run, in the order of the tables: each MDP, then its variants."""
        folder = None if self.policies is None else PolicyFolder(self.policies)
        return [case for each in self.subjects() for case in self._cases_of(each, folder)]

    @cached_property
    def _bases(self) -> dict[str, tuple[str, str | None]]:
        """NAME and LABEL of each name."""
        return {name: (name, None) if is_table(name, self.given_tables) else split_name(name) for name in self.names}

    @cached_property
    def _found(self) -> dict[str, Subject]:
        """What each name stands for, looked up once: tables are opened and environments imported for it."""
        found: dict[str, Subject] = {}
        for name, _ in self._bases.values():
            if name not in found:
                found[name] = subject(name, self.given_tables, self.horizon)
                same = [other for other, each in found.items() if each.id == found[name].id and other != name]
                if same:
                    raise EfhorizonError(f"{same[0]} and {name} are both called {found[name].id}; study one at a time")
        return found

    def _cases_of(self, target: Subject, folder: PolicyFolder | None) -> list[Case]:
        game = str(target.metadata.get("game"))
        labels = [label for base, label in self._bases.values() if self._found[base] is target]
        if any(labels) and folder is None:
            raise UnknownPolicyError(f"{target.id}{SEPARATOR}{next(filter(None, labels))}: no folder of policies given")
        named = [] if folder is None else [folder.file(label, target.id, game) for label in labels if label is not None]
        if None not in labels:
            return [Case(target, policy) for policy in named]
        found = () if folder is None else (folder.find(label, target.id, game) for label in folder.labels)
        return [Case(target), *(Case(target, policy) for policy in found if policy is not None)]

    def runs_on(self, case: Case) -> tuple[RunPlan, ...]:
        is_seen = network_of(case.target.metadata) == "image"
        runs = self.image_runs if is_seen and self.image_runs is not None else self.runs
        return runs if case.policy is None else tuple(each for each in runs if each.algorithm in STARTS_FROM_A_POLICY)

    def tasks(self, case: Case) -> list[RunTask]:
        """One task for each algorithm and setting; its table is loaded by whoever runs it."""
        table, network = self.table_of(case.target), network_of(case.target.metadata)
        horizon = case.target.given_horizon if isinstance(case.target, StoredTable) else None
        return [
            task
            for runs in self.runs_on(case)
            for task in tasks_on(table, case.id, network, runs, policy=case.policy, horizon=horizon)
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
            policies=UNSET if self.policies is None else list(PolicyFolder(self.policies).labels),
        )


def environment_names(given: Iterable[str], tables: Path = TABLES, horizon: int | None = None) -> tuple[str, ...]:
    """Names of environments and tables from names and suites, each once; an unknown name is refused with those closest
    to it.

    NAME@LABEL stands for a variant of an environment alone.
    """
    found: dict[str, None] = {}
    for name in given:
        suites = [suite for suite in catalog.suite_names() if name in (suite, ALL)]
        if suites:
            found.update((entry.name, None) for suite in suites for entry in catalog.entries(suite))
        else:
            base, label = (name, None) if is_table(name, tables) else split_name(name)
            subject(base, tables, horizon)
            found[base if label is None else name] = None
    return tuple(found)
