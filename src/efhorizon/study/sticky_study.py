"""A study with sticky actions: tables, their analyses, and the runs of SQIRL, PPO and DQN on them.

The smallest tables come first. Everything is kept in a results folder as soon as it is finished, so a study that was
stopped goes on where it was; several processes can share the work, as each row is made by whoever holds its claim.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numba

from efhorizon import catalog
from efhorizon.build.explore import Budget
from efhorizon.build.pipeline import Options, build
from efhorizon.errors import EfhorizonError
from efhorizon.io.tables import opened_table
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.analysis import analyze
from efhorizon.stochastic.sticky import sticky
from efhorizon.study.plan import Plan
from efhorizon.study.results import Results
from efhorizon.study.sizes import known_size
from efhorizon.study.sticky_tasks import Algorithm, StickyTask, passes, sticky_name
from efhorizon.study.stochastic_record import code, sticky_record
from efhorizon.study.stochastic_results import read_analysis, write_analysis
from efhorizon.study.subjects import StoredTable, Subject

MOST_STATES = 100_000  # of a sticky table
_SECONDS_AN_ANALYSIS = 60.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class StickyPlan:
    """What is to be done."""

    plan: Plan  # names, folders; its runs are not looked at
    chance: float
    algorithms: tuple[Algorithm, ...]
    num_seeds: int
    max_steps: int
    max_states: int = MOST_STATES

    @property
    def results(self) -> Path:
        return self.plan.out


@dataclass(frozen=True)
class Table:
    """A table of the study, which is there."""

    path: Path
    horizon: int | None  # in place of the table's own
    num_pairs: int

    def loaded(self) -> TabularMDP:
        return _loaded(self.path, self.horizon)


@dataclass(frozen=True)
class Done:
    """How far a study has come."""

    num_tables: int
    num_rows: int  # that were made now
    is_complete: bool
    failures: tuple[str, ...]


def tables(study: StickyPlan, *, until: float, num_workers: int, say: Say) -> tuple[list[Table], bool]:
    """The tables, the smallest first, each built if it is not there; and whether all of them are there now."""
    sizes = {each.id: known_size(each, study.plan.tables) for each in study.plan.subjects()}
    found, is_whole = list[Table](), True
    for each in sorted(study.plan.subjects(), key=lambda each: (sizes[each.id].low, each.id)):
        if sizes[each.id].low * _num_actions(each) > study.max_states:
            say(f"{each.id}: left out, its sticky table may have more than {study.max_states:,} states")
            continue
        path = study.plan.table_of(each)
        if not isinstance(each, StoredTable) and not path.exists():
            if time.monotonic() > until:
                is_whole = False
                continue
            say(f"{each.id}: building")
            budget = Budget(max_states=study.max_states)
            if build(each, Options(out=study.plan.tables, num_workers=num_workers, budget=budget)).path is None:
                say(f"{each.id}: left out, it has more than {study.max_states:,} states")
                continue
        horizon = each.given_horizon if isinstance(each, StoredTable) else None
        mdp = _loaded(path, horizon)
        if mdp.num_states * mdp.num_actions > study.max_states:
            say(f"{each.id}: left out, its sticky table may have more than {study.max_states:,} states")
            continue
        found.append(Table(path, horizon, mdp.num_states * mdp.num_actions))
    return sorted(found, key=lambda table: (table.num_pairs, str(table.path))), is_whole


def run(study: StickyPlan, *, seconds: float, num_workers: int, say: Say, on_progress: Say) -> Done:
    """Do what is left to do, and begin nothing new after `seconds`."""
    until = time.monotonic() + seconds
    Results.made(study.results)
    found, is_whole = tables(study, until=until, num_workers=num_workers, say=say)
    if num_workers == 1:
        part = work(study, found, until=until, say=say, on_progress=on_progress)
        return Done(len(found), part.num_rows, is_whole and part.is_complete, part.failures)
    context = get_context("spawn")
    with context.Pool(num_workers) as pool:
        left = until - time.monotonic()
        parts = pool.starmap(_worker, [(study, found, left)] * num_workers, chunksize=1)
    return Done(
        len(found),
        sum(part.num_rows for part in parts),
        is_whole and all(part.is_complete for part in parts),
        tuple(dict.fromkeys(failure for part in parts for failure in part.failures)),
    )


def work(study: StickyPlan, found: Sequence[Table], *, until: float, say: Say, on_progress: Say) -> Done:
    """What one process does: the analyses, then pass after pass over all tables."""
    results, num_rows, failures = Results.opened(study.results), 0, dict[str, None]()
    threads = numba.get_num_threads()
    numba.set_num_threads(1)  # a gridworld's network keeps one core busy and no more
    try:
        for table in found:
            if time.monotonic() > until:
                return Done(len(found), num_rows, False, tuple(failures))
            _analyzed(study, table.loaded(), say)
        for tasks in passes(study.algorithms, study.num_seeds, study.max_steps):
            for table in found:
                for task in tasks:
                    if time.monotonic() > until:
                        return Done(len(found), num_rows, False, tuple(failures))
                    try:
                        num_rows += _ran(study, table.loaded(), task, results, say, on_progress)
                    except EfhorizonError as error:
                        failures[f"{table.path.name} {task.algorithm}: {error}"] = None
    finally:
        numba.set_num_threads(threads)
    return Done(len(found), num_rows, True, tuple(failures))


def _ran(study: StickyPlan, mdp: TabularMDP, task: StickyTask, results: Results, say: Say, on_progress: Say) -> int:
    """Run a task; the number of rows that it has made."""
    title = f"{sticky_name(mdp, study.chance)} {task.algorithm} {task.setting}"
    title += f" seed {task.seeds[0]}" if len(task.seeds) == 1 else ""
    rows = task.run(mdp, study.chance, results, lambda text: on_progress(f"{title}: {text}"))
    for row in rows:
        needed = "not solved" if row.sample_complexity is None else f"solved after {row.sample_complexity:,} timesteps"
        say(f"{row.id} {row.algorithm} {row.setting} seed {row.seed}: {needed}, {row.wall_seconds:.0f} s")
    return len(rows)


def _analyzed(study: StickyPlan, mdp: TabularMDP, say: Say) -> None:
    """The analysis of a table, unless there is one by this version of it."""
    name = sticky_name(mdp, study.chance)
    known = read_analysis(study.results, name)
    if (
        known is not None
        and known.provenance.code == code()
        and known.provenance.table_fingerprint == mdp.fingerprint()
    ):
        return
    say(f"{name}: analyzing")
    found = analyze(sticky(mdp, study.chance), seconds=_SECONDS_AN_ANALYSIS)
    write_analysis(study.results, sticky_record(mdp, found))


def _worker(study: StickyPlan, found: Sequence[Table], seconds: float) -> Done:
    return work(study, found, until=time.monotonic() + seconds, say=_said, on_progress=lambda _: None)


def _said(text: str) -> None:
    """From another process: a line on stderr."""
    sys.stderr.write(text + "\n")


def _num_actions(subject: Subject) -> int:
    """At least; 1 where only the environment itself knows."""
    if isinstance(subject, StoredTable):
        return subject.num_actions
    entry = catalog.find(str(subject.metadata.get("catalogue_name")))
    return 1 if entry is None else entry.num_actions


@lru_cache(maxsize=2)
def _loaded(path: Path, horizon: int | None) -> TabularMDP:
    return opened_table(path, horizon=horizon)
