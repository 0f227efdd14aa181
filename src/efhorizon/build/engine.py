"""Worker processes that expand batches of states.

Batches go out in order and come back in order, whichever worker was faster, so what is built does not depend on how
many workers there are. A worker reads its pipe in a separate thread; otherwise both ends could block while writing.
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
from typing import Any

import psutil

from efhorizon.build.expand import Codec, Expander, Expansion
from efhorizon.errors import EfhorizonError
from efhorizon.suites.simulator import Simulator

_BATCHES_A_WORKER = 2  # one at work, one waiting


class WorkerError(EfhorizonError):
    """A worker process failed or was killed."""


@dataclass
class _Worker:
    process: Any
    connection: Connection
    outstanding: int = 0


class LocalEngine:
    """A pool of processes, each with its own simulator."""

    def __init__(
        self, make_simulator: Callable[[], Simulator], state_codec: Codec, screen_codec: Codec, num_workers: int
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._results: dict[int, Expansion] = {}
        self._order: deque[int] = deque()
        self._next_id = 0
        for _ in range(num_workers):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(theirs, make_simulator, state_codec.dictionary, screen_codec.dictionary),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours))

    @property
    def has_room(self) -> bool:
        """Whether a worker can take another batch."""
        return any(worker.outstanding < _BATCHES_A_WORKER for worker in self._workers)

    @property
    def num_outstanding(self) -> int:
        """Batches sent whose results were not yet taken."""
        return len(self._order)

    def submit(self, packed_states: list[bytes]) -> None:
        worker = min(self._workers, key=lambda worker: worker.outstanding)
        self._order.append(self._next_id)
        try:
            worker.connection.send((self._next_id, packed_states))
        except OSError:
            self._fail(worker)
        worker.outstanding += 1
        self._next_id += 1

    def next_result(self) -> Expansion:
        """The result of the oldest batch; waits for it."""
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
                batch, result, failure = worker.connection.recv()
            except (EOFError, OSError):
                self._fail(worker)
            if failure is not None:
                raise WorkerError(failure)
            worker.outstanding -= 1
            self._results[batch] = result

    def _fail(self, worker: _Worker) -> None:
        worker.process.join(timeout=2)
        raise WorkerError(
            f"a worker process ended with exit code {worker.process.exitcode} (killed, or out of memory?); "
            "what was committed is kept; run the same command to continue"
        )


def _serve(
    connection: Connection, make_simulator: Callable[[], Simulator], state_dictionary: bytes, screen_dictionary: bytes
) -> None:
    """Expand batches until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    batches: queue.SimpleQueue[tuple[int, list[bytes]]] = queue.SimpleQueue()
    threading.Thread(target=_receive_batches, args=(connection, batches), daemon=True).start()
    batch = -1
    try:
        expander = Expander(make_simulator(), Codec(state_dictionary), Codec(screen_dictionary))
        while True:
            batch, packed_states = batches.get()
            connection.send((batch, expander.expand(packed_states), None))
    except OSError:
        return  # the parent is gone
    except EfhorizonError as error:
        connection.send((batch, None, str(error)))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}:{where.lineno}"
        connection.send((batch, None, f"the environment failed: {type(error).__name__}: {error} ({place})"))


def _receive_batches(connection: Connection, batches: queue.SimpleQueue[tuple[int, list[bytes]]]) -> None:
    try:
        while True:
            batches.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)  # the parent is gone: stop in the middle of a batch too
