"""Tasks on actors: a lost one is given to another worker, one that fails is reported."""

from __future__ import annotations

from typing import Any

import pytest

from efhorizon.engines.actors import ActorLostError, Failure, LocalActors, Reference, checked
from efhorizon.engines.choice import EngineChoice
from efhorizon.engines.task_pool import TaskPool
from efhorizon.engines.worker_process import WorkerError


class Squares:
    def square(self, number: int) -> int:
        if number == 3:
            raise ValueError("three is too many")
        return number * number


class LossyActors(LocalActors):
    """Loses every result the first time, and those of one number always."""

    def __init__(self) -> None:
        self._seen: list[Any] = []

    def get(self, reference: Reference) -> Any:
        value = super().get(reference)
        self._seen.append(value)
        if value == 16 or self._seen.count(value) == 1:
            raise ActorLostError("the node is gone")
        return value


def done(actors: LocalActors, numbers: range) -> dict[int, Any]:
    pool = TaskPool(actors, Squares, 2)
    waiting, found = list(numbers), {}
    while waiting or pool.is_busy:
        while waiting and pool.has_room:
            pool.submit(waiting[0], Squares.square, waiting.pop(0))
        found.update(pool.finished())
    pool.close()
    return found


def test_results_and_failures_come_with_their_keys() -> None:
    found = done(LocalActors(), range(5))
    failure = found.pop(3)
    assert found == {0: 0, 1: 1, 2: 4, 4: 16}
    assert isinstance(failure, WorkerError)
    assert "ValueError: three is too many (test_task_pool.py:" in str(failure)


def test_what_is_lost_is_done_again_but_not_for_ever() -> None:
    found = done(LossyActors(), range(5))
    assert {number: found[number] for number in (0, 1, 2)} == {0: 0, 1: 1, 2: 4}
    assert str(found[4]) == "its worker was lost 3 times (the node is gone)"


def test_failures_pass_through_calls() -> None:
    actors = LocalActors()
    actor = actors.make(Squares)
    failed = actors.call(actor, Squares.square, 3)
    with pytest.raises(WorkerError, match="three is too many"):
        actors.get(actors.call(actor, Squares.square, failed))
    with pytest.raises(WorkerError, match=r"^a line$"):
        checked(Failure("a line"))


def test_the_local_engine_is_the_usual_one() -> None:
    assert not EngineChoice().is_ray
    assert EngineChoice("ray").is_ray
