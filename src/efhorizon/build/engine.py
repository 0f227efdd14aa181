"""Worker processes, each with its own simulator, that take tasks.

Tasks go out in order and their results come back in order, whichever worker was faster, so what is built does not
depend on how many workers there are. A worker reads its pipe in a separate thread; otherwise both ends could block
while writing.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

import psutil

from efhorizon.errors import EfhorizonError
from efhorizon.io.processes import start

_TASKS_A_WORKER = 2  # one at work, one waiting
_UsedT = TypeVar("_UsedT", covariant=True)
_DoerT = TypeVar("_DoerT")  # what a worker process makes and keeps: it does the tasks


class WorkerError(EfhorizonError):
    """A worker process failed or was killed."""


@dataclass
class _Worker:
    process: Any
    connection: Connection
    outstanding: int = 0


class Engine(Protocol[_UsedT]):
    """Takes tasks, each a function of what it has made, and gives their results in order."""

    @property
    def has_room(self) -> bool: ...

    def submit(self, task: Callable[[_UsedT], Any]) -> None: ...

    def next_result(self) -> Any: ...

    def memory(self) -> int: ...

    def close(self) -> None: ...


def engine(
    make_doer: Callable[[], _DoerT], num_workers: int, *, advice: str = "", in_process: bool = False
) -> Engine[_DoerT]:
    """Fresh processes; or none, for a simulator that only this process can make."""
    return InProcessEngine(make_doer) if in_process else LocalEngine(make_doer, num_workers, advice=advice)


class InProcessEngine(Generic[_DoerT]):
    """Does each task at once, in this process."""

    def __init__(self, make_doer: Callable[[], _DoerT]) -> None:
        self._doer = make_doer()
        self._results: deque[Any] = deque()

    @property
    def has_room(self) -> bool:
        return not self._results

    def submit(self, task: Callable[[_DoerT], Any]) -> None:
        try:
            self._results.append(task(self._doer))
        except EfhorizonError:
            raise
        except Exception as error:
            raise WorkerError(_failure(error)) from None

    def next_result(self) -> Any:
        return self._results.popleft()

    def memory(self) -> int:
        return 0

    def close(self) -> None:
        pass


class LocalEngine(Generic[_DoerT]):
    """A pool of fresh processes. A task is a function of what `make_doer` makes in each of them."""

    def __init__(self, make_doer: Callable[[], _DoerT], num_workers: int, *, advice: str = "") -> None:
        """`advice` says what to do about a worker that was killed."""
        self._advice = advice
        context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._results: dict[int, Any] = {}
        self._order: deque[int] = deque()
        self._next_id = 0
        for _ in range(num_workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, make_doer), daemon=True)
            start(process)
            theirs.close()
            self._workers.append(_Worker(process, ours))

    @property
    def has_room(self) -> bool:
        """Whether a worker can take another task."""
        return any(worker.outstanding < _TASKS_A_WORKER for worker in self._workers)

    @property
    def num_outstanding(self) -> int:
        """Tasks sent whose results were not yet taken."""
        return len(self._order)

    def submit(self, task: Callable[[_DoerT], Any]) -> None:
        worker = min(self._workers, key=lambda worker: worker.outstanding)
        self._order.append(self._next_id)
        try:
            worker.connection.send((self._next_id, task))
        except OSError:
            self._fail(worker)
        worker.outstanding += 1
        self._next_id += 1

    def next_result(self) -> Any:
        """The result of the oldest task; waits for it."""
        oldest = self._order[0]
        while oldest not in self._results:
            self._receive()
        self._order.popleft()
        return self._results.pop(oldest)

    def memory(self) -> int:
        """Resident bytes of all workers."""
        total = 0
        for worker in self._workers:
            with contextlib.suppress(psutil.Error):
                total += psutil.Process(worker.process.pid).memory_info().rss
        return total

    def close(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(timeout=5)

    def _receive(self) -> None:
        by_connection: dict[Any, _Worker] = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(by_connection)):
            worker = by_connection[connection]
            try:
                number, result, failure = worker.connection.recv()
            except (EOFError, OSError):
                self._fail(worker)
            if failure is not None:
                raise WorkerError(failure)
            worker.outstanding -= 1
            self._results[number] = result

    def _fail(self, worker: _Worker) -> None:
        worker.process.join(timeout=2)
        raise WorkerError(
            f"a worker process ended with exit code {worker.process.exitcode} (killed, or out of memory?){self._advice}"
        )


def _serve(connection: Connection, make_doer: Callable[[], _DoerT]) -> None:
    """Do tasks until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    tasks: queue.SimpleQueue[tuple[int, Callable[[_DoerT], Any]]] = queue.SimpleQueue()
    threading.Thread(target=_receive_tasks, args=(connection, tasks), daemon=True).start()
    number = -1
    try:
        doer = make_doer()
        while True:
            number, task = tasks.get()
            connection.send((number, task(doer), None))
    except OSError:
        return  # the parent is gone
    except EfhorizonError as error:
        connection.send((number, None, str(error)))
    except Exception as error:
        connection.send((number, None, _failure(error)))


def _failure(error: Exception) -> str:
    """What went wrong in the environment, and where."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(where.filename)}:{where.lineno}"
    return f"the environment failed: {type(error).__name__}: {error} ({place})"


def _receive_tasks(connection: Connection, tasks: queue.SimpleQueue[tuple[int, Callable[[_DoerT], Any]]]) -> None:
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)  # the parent is gone: stop in the middle of a task too
