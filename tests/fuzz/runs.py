"""A run: which cases, shared among workers, each outcome in a log from which a stopped run continues."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .bench import Outcome
from .cases import Case
from .kinds import KINDS
from .verdicts import Verdict
from .workers import serve

# A pool of numba's that survives a fork, and one thread each: workers share the cores.
_ENVIRONMENT = {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def planned(kinds: Iterable[str], *, seed: int, damages: int, flips: int) -> list[Case]:
    """As many structured mutations of each kind, and as many flips, in turn, so that a stopped run has some of all.

    Where a flipped bit may change the result, because the format has no checksum, a fifth of the flips will do.
    """
    names = list(kinds)
    cases = [Case(kind, "damage", seed, number) for number in range(damages) for kind in names]
    of_each = {kind: flips // 5 if KINDS[kind].may_differ else flips for kind in names if KINDS[kind].files}
    return cases + [Case(kind, "flip", seed, each) for each in range(flips) for kind in of_each if each < of_each[kind]]


class Workers:
    """Warm processes; a context manager."""

    def __init__(self, number: int, corpus: Path, scratch: Path) -> None:
        """`corpus` is made if it is not there, or made by another version; cases are laid out in `scratch`."""
        self._connections: list[Connection] = []
        theirs = []
        context = multiprocessing.get_context("spawn")
        for _ in range(number):
            ours, its = context.Pipe()
            self._connections.append(ours)
            theirs.append(its)
        before = {name: os.environ.get(name) for name in _ENVIRONMENT}
        os.environ.update(_ENVIRONMENT)
        try:
            self._process = context.Process(target=serve, args=(theirs, corpus.resolve(), scratch))
            self._process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        for its in theirs:
            its.close()

    def __enter__(self) -> Workers:
        for connection in self._connections:
            if failure := connection.recv():
                raise RuntimeError(failure)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()  # a worker that waits for a case ends
        self._process.join(timeout=20)
        if self._process.is_alive():
            self._process.terminate()

    def outcomes(self, cases: Iterable[Case], *, one: bool = False) -> Iterator[Outcome]:
        """Run cases as workers become free, all commands of each or one; outcomes in the order in which they end."""
        waiting = iter(cases)
        busy: set[Connection] = set()
        for connection in self._connections:
            if (case := next(waiting, None)) is not None:
                connection.send((str(case), one))
                busy.add(connection)
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                yield ready.recv()
                if (case := next(waiting, None)) is not None:
                    ready.send((str(case), one))
                else:
                    busy.remove(ready)


class Log:
    """One line of JSON for each case that was run."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        if not resume:
            path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.outcomes = [_outcome(line) for line in path.read_text().splitlines()] if path.exists() else []

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        with self.path.open("a") as file:
            file.write(json.dumps(_plain(outcome)) + "\n")

    def left(self, cases: list[Case]) -> list[Case]:
        done = {outcome.case for outcome in self.outcomes}
        return [case for case in cases if str(case) not in done]


def run(
    cases: list[Case],
    log: Log,
    corpus: Path,
    scratch: Path,
    *,
    num_workers: int,
    one: bool = False,
    on_outcome: Callable[[Outcome, int, float], None] = lambda outcome, left, seconds: None,
) -> None:
    """Run what is left of the cases, with `one` a single command of each."""
    left = log.left(cases)
    if not left:
        return
    with Workers(min(num_workers, len(left)), corpus, scratch) as workers:
        began = time.monotonic()
        for number, outcome in enumerate(workers.outcomes(left, one=one), 1):
            log.add(outcome)
            on_outcome(outcome, len(left) - number, time.monotonic() - began)


def _plain(outcome: Outcome) -> dict[str, Any]:
    verdicts = {command: [verdict.outcome, verdict.detail] for command, verdict in outcome.verdicts.items()}
    return {"case": outcome.case, "what": outcome.what, "verdicts": verdicts, "seconds": round(outcome.seconds, 3)}


def _outcome(line: str) -> Outcome:
    content = json.loads(line)
    verdicts = {command: Verdict(*verdict) for command, verdict in content["verdicts"].items()}
    return Outcome(content["case"], content["what"], verdicts, content["seconds"])
