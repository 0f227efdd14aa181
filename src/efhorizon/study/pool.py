"""Running many tasks at once: worker processes, each on its own share of the cores.

A gridworld's network keeps one core busy and no more, and several small trainings side by side waste less than one on
all cores. So there are as many workers as cores or tasks, whichever are fewer, and the cores are divided among them:
numba starts as many threads as its process may use cores.

A worker that dies takes one task with it, which is reported; the others continue. If the study itself is killed, its
workers see their pipe close and end at once: rows that were written stay, the rest is made by the next call.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numba

from efhorizon.agents.deep.protocol import RunRecord
from efhorizon.io.machine import usable_cores
from efhorizon.io.processes import start
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
    on_progress: Callable[[RunTask, TaskProgress], None] = lambda task, progress: None,
    on_result: Callable[[TaskResult], None] = lambda result: None,
) -> list[TaskResult]:
    """Make the rows of all tasks, in the order given as workers become free; returns how each of them ended."""
    pool = _Pool(results, min(num_workers, len(tasks)))
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
    process: Any
    connection: Connection
    cores: list[int]
    task: RunTask | None = None
    began: float = 0.0


class _Pool:
    """Worker processes; one that died is replaced when there is something to do."""

    def __init__(self, results: Path, num_workers: int) -> None:
        self._results = results
        cores = usable_cores()
        shares = [cores[number::num_workers] or cores for number in range(num_workers)]
        self._workers = [self._started(share) for share in shares]

    @property
    def is_busy(self) -> bool:
        return any(worker.task is not None for worker in self._workers)

    @property
    def has_room(self) -> bool:
        return any(worker.task is None for worker in self._workers)

    def submit(self, task: RunTask) -> None:
        place = next(place for place, worker in enumerate(self._workers) if worker.task is None)
        if not self._workers[place].process.is_alive():
            self._workers[place] = self._started(self._workers[place].cores)
        worker = self._workers[place]
        worker.task, worker.began = task, time.monotonic()
        with contextlib.suppress(OSError):  # it has just died: `messages` will find out
            worker.connection.send(task)

    def messages(self) -> list[tuple[RunTask, TaskProgress | TaskResult | _LeftToOthers]]:
        """What workers have to say; waits for at least one of them."""
        busy: dict[Any, _PoolWorker] = {
            worker.connection: worker for worker in self._workers if worker.task is not None
        }
        found: list[tuple[RunTask, TaskProgress | TaskResult | _LeftToOthers]] = []
        for connection in wait(list(busy)):
            worker = busy[connection]
            assert worker.task is not None
            task = worker.task
            message: Any
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                worker.process.join(timeout=5)
                message = f"its process ended with exit code {worker.process.exitcode} (killed, or out of memory?)"
            if isinstance(message, TaskProgress):
                found.append((task, message))
                continue
            worker.task = None
            is_left = isinstance(message, _LeftToOthers)
            found.append((task, message if is_left else TaskResult(task, message, time.monotonic() - worker.began)))
        return found

    def close(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(timeout=5)

    def _started(self, cores: list[int]) -> _PoolWorker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._results, cores), daemon=True)
        start(process)
        theirs.close()
        return _PoolWorker(process, ours, cores)


def _serve(connection: Connection, results: Path, cores: list[int]) -> None:
    """Run tasks until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    if cores:
        os.sched_setaffinity(0, cores)
        with contextlib.suppress(ValueError):  # NUMBA_NUM_THREADS allows fewer
            numba.set_num_threads(len(cores))  # it counted the cores when it was imported
    tasks: queue.SimpleQueue[RunTask] = queue.SimpleQueue()
    threading.Thread(target=_receive_tasks, args=(connection, tasks), daemon=True).start()
    while True:
        task = tasks.get()
        try:
            is_whole = _run(task, results, lambda progress: connection.send(progress))
            connection.send(None if is_whole else _LeftToOthers())
        except BrokenPipeError:
            return  # the parent is gone
        except (Exception, MemoryError) as error:
            connection.send(reason_of(error))


def _receive_tasks(connection: Connection, tasks: queue.SimpleQueue[RunTask]) -> None:
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)  # the parent is gone: stop in the middle of a task too


def _run(task: RunTask, results: Path, report: Callable[[TaskProgress], None]) -> bool:
    """Make the rows of a task that are missing; whether all are there now."""
    check_installed(task.algorithm, task.backend)

    def on_progress(runs: list[RunRecord]) -> None:
        report(TaskProgress(max(run.steps for run in runs), sum(run.is_finished for run in runs), len(runs)))

    return not run_task(task.loaded(), Results.made(results), on_progress=on_progress)
