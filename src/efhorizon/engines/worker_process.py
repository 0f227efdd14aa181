"""A worker process and the pipe to it: what every pool of local processes is made of.

A worker reads its pipe in a separate thread; otherwise both ends could block while writing. The thread also notices
that the parent is gone, and ends the process in the middle of a task.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from efhorizon.errors import EfhorizonError
from efhorizon.io.processes import start

_SECONDS_TO_END = 5.0


class WorkerError(EfhorizonError):
    """A worker process failed or was killed."""


@dataclass
class WorkerProcess:
    """A fresh process that runs `serve(connection, *arguments)`."""

    process: Any
    connection: Connection

    @classmethod
    def started(cls, serve: Callable[..., None], *arguments: Any) -> WorkerProcess:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, *arguments), daemon=True)
        start(process)
        theirs.close()
        return cls(process, ours)

    def end_text(self) -> str:
        """How it ended, once its pipe is closed."""
        self.process.join(timeout=_SECONDS_TO_END)
        return f"ended with exit code {self.process.exitcode} (killed, or out of memory?)"


def close_all(workers: Iterable[WorkerProcess]) -> None:
    """End processes, whatever they are doing."""
    ending = list(workers)
    for worker in ending:
        worker.connection.close()
        worker.process.terminate()
    for worker in ending:
        worker.process.join(timeout=_SECONDS_TO_END)


def received_tasks(connection: Connection) -> queue.SimpleQueue[Any]:
    """In a worker: the tasks that come through the pipe. The process ends when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    sys.stdout = sys.stderr  # what an environment prints is no result of the command
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    return tasks


def _receive(connection: Connection, tasks: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)  # the parent is gone: stop in the middle of a task too
