"""The engine interface on actors: the same tasks in the same order, on a Ray cluster.

A task whose worker or node is lost is given to another worker, so a task must find the same wherever and however often
it is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from efhorizon.engines.actors import Actors
from efhorizon.engines.choice import EngineChoice
from efhorizon.engines.engine import Engine
from efhorizon.engines.local import engine
from efhorizon.engines.task_pool import TaskPool
from efhorizon.engines.worker_process import WorkerError
from efhorizon.errors import EfhorizonError

_DoerT = TypeVar("_DoerT")  # what an actor makes and keeps: it does the tasks


class ActorEngine(Generic[_DoerT]):
    """A pool of actors. Results come in the order of their tasks."""

    def __init__(self, actors: Actors, make_doer: Callable[[], _DoerT], num_workers: int, *, advice: str = "") -> None:
        """`advice` says what to do about a task that failed."""
        self._actors, self._advice = actors, advice
        self._pool = TaskPool(actors, make_doer, num_workers)
        self._results: dict[int, Any] = {}
        self._order: deque[int] = deque()
        self._next_id = 0

    @property
    def has_room(self) -> bool:
        return self._pool.has_room

    def submit(self, task: Callable[[_DoerT], Any]) -> None:
        self._pool.submit(self._next_id, _done, task)
        self._order.append(self._next_id)
        self._next_id += 1

    def next_result(self) -> Any:
        """The result of the oldest task; waits for it."""
        oldest = self._order[0]
        while oldest not in self._results:
            self._results.update(self._pool.finished())
        self._order.popleft()
        result = self._results.pop(oldest)
        if isinstance(result, WorkerError):
            raise WorkerError(f"{result}{self._advice}")
        return result

    def memory(self) -> int:
        return 0  # elsewhere

    def close(self) -> None:
        self._pool.close()
        self._actors.close()


def chosen_engine(
    choice: EngineChoice,
    make_doer: Callable[[], _DoerT],
    num_workers: int,
    *,
    advice: str = "",
    in_process: bool = False,
    only_here: bool = False,
) -> Engine[_DoerT]:
    """Where the user wants tasks done. `only_here`: no other process can make what does them."""
    if not choice.is_ray:
        return engine(make_doer, num_workers, advice=advice, in_process=in_process or only_here)
    if only_here:
        raise EfhorizonError("only this process can make this environment, so it cannot be played on Ray")
    from efhorizon.engines.ray_actors import RayActors

    actors = RayActors(choice)
    try:
        return ActorEngine(actors, make_doer, actors.num_workers, advice=advice)
    except BaseException:
        actors.close()
        raise


def _done(doer: _DoerT, task: Callable[[_DoerT], Any]) -> Any:
    return task(doer)
