"""Tasks on actors that may be done more than once: one whose actor is lost is given to another.

Nothing is kept in an actor between tasks. What a task makes is a file, written in one step; so doing it again, even
while a lost actor still works on it somewhere, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from efhorizon.engines.actors import Actor, ActorLostError, Actors, Reference
from efhorizon.engines.worker_process import WorkerError

_MOST_LOSSES = 3  # of one task: it may be what kills its workers
_SECONDS_A_LOOK = 1.0


@dataclass
class _Given:
    """A task that an actor has."""

    key: Any
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    place: int
    losses: int = 0


class TaskPool:
    """Actors that do one task at a time each."""

    def __init__(self, actors: Actors, make_doer: Callable[[], Any], num_workers: int) -> None:
        self._actors, self._make_doer = actors, make_doer
        cores = actors.cores_for(num_workers)
        self._workers: list[Actor] = [actors.make(make_doer, cores) for _ in range(num_workers)]
        self._idle = list(range(num_workers))
        self._given: dict[Reference, _Given] = {}
        try:
            actors.check_alive(self._workers)
        except ActorLostError as lost:
            raise WorkerError(f"the cluster lost a worker as it started ({lost}); run the same command again") from None

    @property
    def has_room(self) -> bool:
        return bool(self._idle)

    @property
    def is_busy(self) -> bool:
        return bool(self._given)

    def submit(self, key: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Have `function(doer, *arguments)` done."""
        self._give(_Given(key, function, arguments, self._idle.pop()))

    def finished(self) -> list[tuple[Any, Any]]:
        """The keys of tasks that have ended, with their results or errors; waits a while for one."""
        ended: list[tuple[Any, Any]] = []
        for reference in self._actors.wait(list(self._given), _SECONDS_A_LOOK):
            given = self._given.pop(reference)
            try:
                result: Any = self._actors.get(reference)
            except WorkerError as error:
                result = error
            except ActorLostError as lost:
                self._actors.end([self._workers[given.place]])
                # its cores may be gone with its node, so the one in its place asks for none and always starts
                self._workers[given.place] = self._actors.make(self._make_doer)
                given.losses += 1
                if given.losses < _MOST_LOSSES:
                    self._give(given)
                    continue
                result = WorkerError(f"its worker was lost {given.losses} times ({lost})")
            self._idle.append(given.place)
            ended.append((given.key, result))
        return ended

    def close(self) -> None:
        self._actors.end(self._workers)

    def _give(self, given: _Given) -> None:
        reference = self._actors.call(self._workers[given.place], given.function, *given.arguments)
        self._given[reference] = given
