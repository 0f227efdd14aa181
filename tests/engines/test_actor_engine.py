"""The engine interface on actors: results in the order of their tasks, whatever is lost."""

from __future__ import annotations

from typing import Any

import pytest

from efhorizon.engines.actor_engine import ActorEngine, chosen_engine
from efhorizon.engines.actors import ActorLostError, LocalActors, Reference
from efhorizon.engines.choice import EngineChoice
from efhorizon.engines.local import InProcessEngine
from efhorizon.engines.worker_process import WorkerError
from efhorizon.errors import EfhorizonError


class Square:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, doer: list[int]) -> int:
        if self.number == 7:
            raise ValueError("seven is too many")
        return self.number * self.number + len(doer)


class LateAndLossy(LocalActors):
    """Three workers; the last result is there first, and every result is lost the first time."""

    num_workers = 3

    def __init__(self) -> None:
        self.lost: set[int] = set()

    def wait(self, references: Any, seconds: float) -> list[Reference]:
        return [references[-1]]

    def get(self, reference: Reference) -> Any:
        value = super().get(reference)
        if value not in self.lost:
            self.lost.add(value)
            raise ActorLostError("the node is gone")
        return value


def results(engine: ActorEngine[list[int]], numbers: list[int]) -> list[int]:
    found: list[int] = []
    waiting = list(numbers)
    while len(found) < len(numbers):
        while waiting and engine.has_room:
            engine.submit(Square(waiting.pop(0)))
        found.append(engine.next_result())
    return found


def test_results_come_in_order_though_they_are_late_and_lost() -> None:
    actors = LateAndLossy()
    engine = ActorEngine(actors, list, 3)
    assert results(engine, [5, 1, 4, 2, 3]) == [25, 1, 16, 4, 9]
    assert actors.lost == {25, 1, 16, 4, 9}


def test_a_failure_comes_in_its_turn_with_advice() -> None:
    engine = ActorEngine(LocalActors(), list, 1, advice="; try again")
    engine.submit(Square(7))
    with pytest.raises(WorkerError, match=r"ValueError: seven is too many \(test_actor_engine\.py:\d+\); try again$"):
        engine.next_result()


def test_what_only_this_process_can_make_stays_here() -> None:
    here = chosen_engine(EngineChoice(), list, 4, only_here=True)
    assert isinstance(here, InProcessEngine)
    with pytest.raises(EfhorizonError, match="only this process can make this environment"):
        chosen_engine(EngineChoice("ray"), list, 4, only_here=True)
