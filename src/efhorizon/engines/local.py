"""Worker processes of this machine, each with its own simulator, that take tasks; or none, in this very process."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

import psutil

from efhorizon.engines.engine import Engine, failure_text
from efhorizon.engines.worker_process import WorkerError, WorkerProcess, close_all, received_tasks
from efhorizon.errors import EfhorizonError

_TASKS_A_WORKER = 2  # one at work, one waiting
_DoerT = TypeVar("_DoerT")  # what a worker process makes and keeps: it does the tasks


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
            raise WorkerError(failure_text(error)) from None

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
        self._workers = [WorkerProcess.started(_serve, make_doer) for _ in range(num_workers)]
        self._outstanding = [0] * num_workers
        self._results: dict[int, Any] = {}
        self._order: deque[int] = deque()
        self._next_id = 0

    @property
    def has_room(self) -> bool:
        """Whether a worker can take another task."""
        return min(self._outstanding) < _TASKS_A_WORKER

    @property
    def num_outstanding(self) -> int:
        """Tasks sent whose results were not yet taken."""
        return len(self._order)

    def submit(self, task: Callable[[_DoerT], Any]) -> None:
        place = min(range(len(self._workers)), key=self._outstanding.__getitem__)
        self._order.append(self._next_id)
        try:
            self._workers[place].connection.send((self._next_id, task))
        except OSError:
            self._fail(self._workers[place])
        self._outstanding[place] += 1
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
        close_all(self._workers)

    def _receive(self) -> None:
        places: dict[Any, int] = {worker.connection: place for place, worker in enumerate(self._workers)}
        for connection in wait(list(places)):
            place = places[connection]
            worker = self._workers[place]
            try:
                number, result, failure = worker.connection.recv()
            except (EOFError, OSError):
                self._fail(worker)
            if failure is not None:
                raise WorkerError(failure)
            self._outstanding[place] -= 1
            self._results[number] = result

    def _fail(self, worker: WorkerProcess) -> None:
        raise WorkerError(f"a worker process {worker.end_text()}{self._advice}")


def _serve(connection: Connection, make_doer: Callable[[], _DoerT]) -> None:
    """Do tasks until the other end closes."""
    tasks = received_tasks(connection)
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
        connection.send((number, None, failure_text(error)))
