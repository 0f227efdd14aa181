"""Running many tasks at once: worker processes, each on its own share of the cores.

A gridworld's network keeps one core busy and no more, and several small trainings side by side waste less than one on
all cores. So there are as many workers as cores or tasks, whichever are fewer, and the cores are divided among them:
numba starts as many threads as its process may use cores.

A worker that dies takes one task with it, which is reported; the others continue. If the study itself is killed, its
workers see their pipe close and end at once: rows that were written stay, the rest is made by the next call.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

import numba

from efhorizon.agents.deep.protocol import RunRecord
from efhorizon.engines.actors import Actors
from efhorizon.engines.task_pool import TaskPool
from efhorizon.engines.worker_process import WorkerProcess, close_all, received_tasks
from efhorizon.io.machine import usable_cores
from efhorizon.study.failures import reason_of
from efhorizon.study.results import Results
from efhorizon.study.run import run_task
from efhorizon.study.tasks import RunTask, check_installed

_SECONDS_BETWEEN_LOOKS = 2.0  # at rows that somebody else is making


@dataclass(frozen=True)
class TaskProgress:
    """How far a task has come."""

    steps: int  # of the run that is furthest
    finished: int
    runs: int


@dataclass(frozen=True)
class TaskResult:
    """How a task ended: its failure is None where all its rows are there."""

    task: RunTask
    failure: str | None
    seconds: float


def run_tasks(
    tasks: Sequence[RunTask],
    results: Path,
    *,
    num_workers: int,
    actors: Actors | None = None,
    on_progress: Callable[[RunTask, TaskProgress], None] = lambda task, progress: None,
    on_result: Callable[[TaskResult], None] = lambda result: None,
) -> list[TaskResult]:
    """Make the rows of all tasks, in the order given as workers become free; returns how each of them ended.

    `actors`: of a cluster that shares the results folder; None: processes of this machine.
    """
    num_workers = min(num_workers, len(tasks))
    pool: TaskWorkers = (
        _LocalWorkers(results, num_workers) if actors is None else ClusterWorkers(actors, results, num_workers)
    )
    waiting, ended = deque(tasks), list[TaskResult]()
    try:
        while waiting or pool.is_busy:
            while waiting and pool.has_room:
                pool.submit(waiting.popleft())
            for task, message in pool.messages():
                if isinstance(message, TaskProgress):
                    on_progress(task, message)
                elif isinstance(message, _LeftToOthers):
                    if not waiting and not pool.is_busy:
                        time.sleep(_SECONDS_BETWEEN_LOOKS)
                    waiting.append(task)  # another study makes some rows: look again when all else is done
                else:
                    ended.append(message)
                    on_result(message)
    finally:
        pool.close()
    return ended


@dataclass(frozen=True)
class _LeftToOthers:
    """Another process holds the claims of some rows of a task."""


@dataclass
class _PoolWorker:
    worker: WorkerProcess
    cores: list[int]
    task: RunTask | None = None
    began: float = 0.0


class TaskWorkers(Protocol):
    """Workers somewhere, each with one task at a time."""

    @property
    def is_busy(self) -> bool: ...

    @property
    def has_room(self) -> bool: ...

    def submit(self, task: RunTask) -> None: ...

    def messages(self) -> list[tuple[RunTask, TaskProgress | TaskResult | _LeftToOthers]]:
        """What workers have to say."""
        ...

    def close(self) -> None: ...


class _LocalWorkers:
    """Worker processes; one that died is replaced when there is something to do."""

    def __init__(self, results: Path, num_workers: int) -> None:
        self._results = results
        cores = usable_cores()
        shares = [cores[number::num_workers] or cores for number in range(num_workers)]
        self._workers = [self._started(share) for share in shares]

    @property
    def is_busy(self) -> bool:
        return any(each.task is not None for each in self._workers)

    @property
    def has_room(self) -> bool:
        return any(each.task is None for each in self._workers)

    def submit(self, task: RunTask) -> None:
        place = next(place for place, each in enumerate(self._workers) if each.task is None)
        if not self._workers[place].worker.process.is_alive():
            self._workers[place] = self._started(self._workers[place].cores)
        chosen = self._workers[place]
        chosen.task, chosen.began = task, time.monotonic()
        with contextlib.suppress(OSError):  # it has just died: `messages` will find out
            chosen.worker.connection.send(task)

    def messages(self) -> list[tuple[RunTask, TaskProgress | TaskResult | _LeftToOthers]]:
        """What workers have to say; waits for at least one of them."""
        busy: dict[Any, _PoolWorker] = {each.worker.connection: each for each in self._workers if each.task is not None}
        found: list[tuple[RunTask, TaskProgress | TaskResult | _LeftToOthers]] = []
        for connection in wait(list(busy)):
            each = busy[connection]
            assert each.task is not None
            task = each.task
            message: Any
            try:
                message = each.worker.connection.recv()
            except (EOFError, OSError):
                message = f"its process {each.worker.end_text()}"
            if isinstance(message, TaskProgress):
                found.append((task, message))
                continue
            each.task = None
            found.append((task, _ended(task, message, time.monotonic() - each.began)))
        return found

    def close(self) -> None:
        close_all(each.worker for each in self._workers)

    def _started(self, cores: list[int]) -> _PoolWorker:
        return _PoolWorker(WorkerProcess.started(_serve, self._results, cores), cores)


class ClusterWorkers:
    """Actors of a cluster; a task whose actor is lost is given to another, which skips the rows that are there."""

    def __init__(self, actors: Actors, results: Path, num_workers: int) -> None:
        self._pool = TaskPool(actors, partial(_Runner, results), num_workers)
        self._began: dict[int, float] = {}

    @property
    def is_busy(self) -> bool:
        return self._pool.is_busy

    @property
    def has_room(self) -> bool:
        return self._pool.has_room

    def submit(self, task: RunTask) -> None:
        self._began[id(task)] = time.monotonic()
        self._pool.submit(task, _Runner.run, task)

    def messages(self) -> list[tuple[RunTask, TaskProgress | TaskResult | _LeftToOthers]]:
        found: list[tuple[RunTask, TaskProgress | TaskResult | _LeftToOthers]] = []
        for task, result in self._pool.finished():
            message = str(result) if isinstance(result, Exception) else result
            found.append((task, _ended(task, message, time.monotonic() - self._began[id(task)])))
        return found

    def close(self) -> None:
        self._pool.close()


class _Runner:
    """Makes rows in an actor."""

    def __init__(self, results: Path) -> None:
        self._results = results

    def run(self, task: RunTask) -> str | _LeftToOthers | None:
        try:
            return None if _run(task, self._results, lambda progress: None) else _LeftToOthers()
        except (Exception, MemoryError) as error:
            return reason_of(error)


def _ended(task: RunTask, message: Any, seconds: float) -> TaskResult | _LeftToOthers:
    return message if isinstance(message, _LeftToOthers) else TaskResult(task, message, seconds)


def _serve(connection: Connection, results: Path, cores: list[int]) -> None:
    """Run tasks until the other end closes."""
    tasks = received_tasks(connection)
    if cores:
        os.sched_setaffinity(0, cores)
        with contextlib.suppress(ValueError):  # NUMBA_NUM_THREADS allows fewer
            numba.set_num_threads(len(cores))  # it counted the cores when it was imported
    while True:
        task = tasks.get()
        try:
            is_whole = _run(task, results, lambda progress: connection.send(progress))
            connection.send(None if is_whole else _LeftToOthers())
        except BrokenPipeError:
            return  # the parent is gone
        except (Exception, MemoryError) as error:
            connection.send(reason_of(error))


def _run(task: RunTask, results: Path, report: Callable[[TaskProgress], None]) -> bool:
    """Make the rows of a task that are missing; whether all are there now."""
    check_installed(task.algorithm, task.backend)

    def on_progress(runs: list[RunRecord]) -> None:
        report(TaskProgress(max(run.steps for run in runs), sum(run.is_finished for run in runs), len(runs)))

    return not run_task(task.loaded(), Results.made(results), on_progress=on_progress)
