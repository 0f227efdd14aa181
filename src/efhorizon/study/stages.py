"""A study of many environments: build, verify, analyze, run; every stage continues where it was stopped.

    OUT/tables/         the tables, and the searches that they come from
    OUT/...             a results folder: see `results`

Stages run one after the other over all environments, so that each knows from the previous one how much is left. What is
there and still matches its inputs is kept. An environment that cannot be built, is too large or fails in another way is
listed with its reason, and the rest continues.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from efhorizon._version import __version__
from efhorizon.build.explore import Progress
from efhorizon.build.outlook import progress_line
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import Target
from efhorizon.engines.actors import Actors
from efhorizon.engines.choice import EngineChoice
from efhorizon.engines.task_pool import TaskPool
from efhorizon.study.analyses import current_analysis, write_analysis
from efhorizon.study.analysis_record import CompleteFigures
from efhorizon.study.failures import reason_of
from efhorizon.study.forecast import Forecast, forecast
from efhorizon.study.kept_changes import add_changes
from efhorizon.study.plan import Case, Plan
from efhorizon.study.pool import TaskProgress, TaskResult, run_tasks
from efhorizon.study.records import Stage, StageOutcome, Status, StudyRecord
from efhorizon.study.results import Results
from efhorizon.study.sizes import known_size, search_state
from efhorizon.study.subjects import Subject
from efhorizon.study.tasks import RunTask


@dataclass(frozen=True)
class StudyResult:
    """The results for all environments."""

    outcomes: tuple[StageOutcome, ...]
    seconds: float
    cases: tuple[Case, ...]  # that were planned

    @property
    def num_complete(self) -> int:
        """Environments, and variants of them, that went through every stage."""
        lost = {outcome.name for outcome in self.outcomes if outcome.is_lost}
        return sum(not {case.id, case.target.id} & lost for case in self.cases)

    def with_status(self, status: Status) -> list[StageOutcome]:
        return [outcome for outcome in self.outcomes if outcome.status == status]


class Watcher:
    """Receives progress; this one ignores it."""

    def stage(self, stage: Stage, names: list[str], left: Forecast) -> None:
        """A stage begins with these environments, and this much is left to do."""

    def begin(self, stage: Stage, name: str) -> None:
        """Work on an environment begins."""

    def progress(self, text: str, done: float | None = None) -> None:
        """Something to show while it takes time; `done` of the stage's environments, where that is known."""

    def outcome(self, outcome: StageOutcome) -> None:
        """An environment has passed a stage, or has not."""


def study(plan: Plan, watcher: Watcher | None = None) -> StudyResult:
    """Do everything in a plan that is not done yet. May be called again at any time, even after it was killed."""
    began = time.monotonic()
    results = Results.made(plan.out)
    with _cluster(plan) as actors:
        run = _Study(plan, results, watcher or Watcher(), actors)
        run.build_all()
        run.analyze_all()
        run.run_all()
        run.note_down()
    return StudyResult(tuple(run.outcomes), time.monotonic() - began, tuple(run.cases))


@contextmanager
def _cluster(plan: Plan) -> Iterator[Actors | None]:
    """The actors of the cluster that a plan names, if it names one."""
    if not plan.engine.is_ray:
        yield None
        return
    from efhorizon.engines.ray_actors import RayActors

    actors = RayActors(plan.engine)
    try:
        yield actors
    finally:
        actors.close()


class _Study:
    """One call to `study`."""

    def __init__(self, plan: Plan, results: Results, watcher: Watcher, actors: Actors | None = None) -> None:
        self._plan, self._results, self._watcher, self._actors = plan, results, watcher, actors
        self._targets, self.cases = plan.targets(), plan.cases()
        self._build_seconds: dict[str, float] = {}
        self._verify_seconds: dict[str, float] = {}
        self.outcomes: list[StageOutcome] = []

    def build_all(self) -> None:
        if not self._targets:
            return None  # all tables are there
        self._begin("build", [target.id for target in self._targets])
        if self._actors is None:
            return self.build_these(self._targets)
        searches: dict[str, list[Target]] = {}  # horizons of one game continue each other's search
        for target in self._targets:
            searches.setdefault(target.search_name, []).append(target)
        self._on_cluster("build", _Worker.build, list(searches.values()))
        return None

    def build_these(self, targets: list[Target]) -> None:
        stopped: set[str] = set()  # searches that a budget ended: longer horizons need not be tried
        for target in targets:
            with self._guarded("build", target.id) as note:
                self._build(target, stopped, note)

    def analyze_all(self) -> None:
        cases = self._stage("analyze")
        if self._actors is None:
            return self.analyze_these(cases)
        self._on_cluster("analyze", _Worker.analyze, [[case] for case in cases], self.seconds)
        return None

    def analyze_these(self, cases: list[Case]) -> None:
        for case in cases:
            with self._guarded("analyze", case.id) as note:
                mdp = self._plan.loaded(case.target)
                analysis = current_analysis(self._results, mdp, max_k=self._plan.max_k, policy=case.policy)
                kept = analysis is not None
                if analysis is None:
                    seconds = self._build_seconds.get(case.target.id) or self._search_seconds(case.target)
                    analysis = write_analysis(
                        self._results,
                        mdp,
                        max_k=self._plan.max_k,
                        policy=case.policy,
                        build_seconds=seconds,
                        verify_seconds=self._verify_seconds.get(case.target.id),
                    )
                if self._plan.tries_changes and case.policy is None:
                    kept = not add_changes(self._results, mdp, analysis) and kept
                note("kept" if kept else "made", _analysis_text(analysis.figures))

    def run_all(self) -> None:
        """All algorithms on all tables, the slowest first so that no worker is left with them at the end."""
        missing: list[RunTask] = []
        for case in self._stage("run"):
            with self._guarded("run", case.id) as note:
                tasks, mdp = self._plan.tasks(case), self._plan.loaded(case.target)
                left = [task for task in tasks if not self._is_done(task.on(mdp))]
                missing += left
                if not left:
                    note("kept", f"{len(tasks)} settings are done" if tasks else "nothing to run")
        if missing:
            self._run_tasks(missing)

    def note_down(self) -> None:
        """Write down what was planned and what the results are, for the report and for people."""
        outcomes = [replace(outcome, seconds=UNSET) for outcome in self.outcomes]
        self._results.write_study(StudyRecord(efhorizon=__version__, plan=self._plan.record(), outcomes=outcomes))

    @property
    def _lost(self) -> frozenset[str]:
        return frozenset(outcome.name for outcome in self.outcomes if outcome.is_lost)

    def _stage(self, stage: Stage) -> list[Case]:
        """Begin a stage with the cases that are left; those of an MDP that was lost are lost too."""
        lost = self._lost
        cases = [case for case in self.cases if not {case.id, case.target.id} & lost]
        self._begin(stage, [case.id for case in cases])
        return cases

    def _begin(self, stage: Stage, names: list[str]) -> None:
        self._watcher.stage(stage, names, forecast(self._plan, self._lost))

    @contextmanager
    def _guarded(self, stage: Stage, name: str) -> Iterator[Callable[[Status, str], None]]:
        """Work on one environment; its failure is noted and stops nothing else."""
        began = time.monotonic()
        self._watcher.begin(stage, name)

        def note(status: Status, text: str) -> None:
            self._add(StageOutcome(name, stage, status, text, time.monotonic() - began))

        try:
            yield note
        except (Exception, MemoryError) as error:
            note("failed", reason_of(error))

    def _add(self, outcome: StageOutcome) -> None:
        self.outcomes.append(outcome)
        self._watcher.outcome(outcome)

    def _build(self, target: Target, stopped: set[str], note: Callable[[Status, str], None]) -> None:
        plan, limit = self._plan, self._plan.budget.max_states
        size = known_size(target, plan.tables)
        if limit is not None and size.is_known and size.low > limit:
            return note("left out", f"{size.low:,} states, more than --max-states {limit:,}")
        if target.search_name in stopped:
            return note("left out", "a shorter horizon of the same game was left out")

        def on_progress(progress: Progress) -> None:
            self._watcher.progress(progress_line(target, progress))

        options = Options(out=plan.tables, num_workers=plan.num_workers, budget=plan.budget)
        say = self._watcher.progress
        result = build(target, options, on_progress=on_progress, on_message=say, on_verify=say)
        progress = result.outcome.progress
        if result.mdp is None:
            stopped.add(target.search_name)
            found = f"{progress.num_states:,} states found, complete up to horizon {result.complete_horizon}"
            return note("left out", f"stopped by {result.outcome.stopped_by}: {found}")
        if progress.num_pairs:
            self._build_seconds[target.id] = round(result.seconds - result.verify_seconds, 3)
        if result.verify_seconds:
            self._verify_seconds[target.id] = round(result.verify_seconds, 3)
        raw, merged = result.mdp.metadata["num_states_raw"], result.mdp.num_states
        if limit is not None and raw > limit:
            return note("left out", f"{raw:,} states, more than --max-states {limit:,}")
        degenerate = (
            "; nothing to learn: every action sequence earns the same" if result.mdp.metadata["degenerate"] else ""
        )
        return note("made" if progress.num_pairs else "kept", f"{raw:,} states, {merged:,} merged{degenerate}")

    def _search_seconds(self, target: Subject) -> float | None:
        """What emulating took in earlier calls; of a search that serves several horizons, all of it."""
        search = search_state(target, self._plan.tables) if isinstance(target, Target) else None
        return None if search is None else round(search.seconds, 3)

    def _is_done(self, task: RunTask) -> bool:
        return all(self._results.has(task.key(seed)) for seed in task.seeds)

    def _run_tasks(self, tasks: list[RunTask]) -> None:
        left: dict[str, int] = {}
        for task in tasks:
            left[task.id] = left.get(task.id, 0) + 1
        done: dict[str, list[TaskResult]] = {name: [] for name in left}
        num_ended = 0

        def on_progress(task: RunTask, progress: TaskProgress) -> None:
            text = f"{task.title}: {progress.steps:,} steps, {progress.finished} of {progress.runs} finished"
            self._watcher.progress(text, num_ended / len(tasks))

        def on_result(result: TaskResult) -> None:
            nonlocal num_ended
            num_ended += 1
            name = result.task.id
            done[name].append(result)
            self._watcher.progress(_task_text(result), num_ended / len(tasks))
            if len(done[name]) == left[name]:
                self._add(_runs_outcome(name, done[name]))

        by_cost = sorted(tasks, key=_cost, reverse=True)
        run_tasks(
            by_cost,
            self._plan.out,
            num_workers=self._num_workers,
            actors=self._actors,
            on_progress=on_progress,
            on_result=on_result,
        )

    @property
    def _num_workers(self) -> int:
        return self._plan.num_workers if self._actors is None else self._actors.num_workers

    @property
    def seconds(self) -> _Seconds:
        """What building and verifying took in this call."""
        return self._build_seconds, self._verify_seconds

    def _on_cluster(self, stage: Stage, function: Callable[..., _Done], groups: list[Any], *more: Any) -> None:
        """A stage, one task for each group; the outcomes come as they are done."""
        assert self._actors is not None
        plan = dataclasses.replace(self._plan, num_workers=1, engine=EngineChoice())
        pool = TaskPool(self._actors, partial(_Worker, plan), max(1, min(self._num_workers, len(groups))))
        waiting = deque(groups)
        try:
            while waiting or pool.is_busy:
                while waiting and pool.has_room:
                    group = waiting.popleft()
                    self._watcher.begin(stage, group[0].id)
                    pool.submit(group, function, group, *more)
                for group, result in pool.finished():
                    if isinstance(result, Exception):
                        outcomes = [StageOutcome(each.id, stage, "failed", str(result), 0.0) for each in group]
                    else:
                        outcomes = result[0]
                        self._build_seconds.update(result[1][0])
                        self._verify_seconds.update(result[1][1])
                    for outcome in outcomes:
                        self._add(outcome)
        finally:
            pool.close()


_Seconds = tuple[dict[str, float], dict[str, float]]
_Done = tuple[list[StageOutcome], _Seconds]


class _Worker:
    """Does stages for some environments, in an actor."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def build(self, targets: list[Target]) -> _Done:
        run = self._study()
        run.build_these(targets)
        return run.outcomes, run.seconds

    def analyze(self, cases: list[Case], seconds: _Seconds) -> _Done:
        run = self._study()
        run.seconds[0].update(seconds[0])
        run.seconds[1].update(seconds[1])
        run.analyze_these(cases)
        return run.outcomes, ({}, {})

    def _study(self) -> _Study:
        return _Study(self._plan, Results.made(self._plan.out), Watcher())


def _cost(task: RunTask) -> tuple[bool, int]:
    """The time that tasks are likely to take, in order: images before gridworlds, DQN before PPO, GORP last."""
    return task.network == "image", ("gorp", "ppo", "dqn").index(task.algorithm)


def _task_text(result: TaskResult) -> str:
    return f"{result.task.title}: {result.failure or 'done'} ({result.seconds:.0f} s)"


def _runs_outcome(name: str, results: list[TaskResult]) -> StageOutcome:
    seconds = sum(result.seconds for result in results)
    failures = [
        f"{result.task.algorithm} {result.task.setting}: {result.failure}" for result in results if result.failure
    ]
    if failures:
        return StageOutcome(name, "run", "failed", "; ".join(failures), seconds)
    algorithms = dict.fromkeys(sorted(result.task.algorithm for result in results))
    return StageOutcome(name, "run", "made", ", ".join(algorithms), seconds)


def _analysis_text(figures: CompleteFigures) -> str:
    horizon = figures.effective_horizon
    if horizon.value is None:
        return "effective horizon unknown"
    return f"effective horizon {'' if horizon.kind == 'exact' else 'at most '}{horizon.value:.2f}"
