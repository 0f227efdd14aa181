"""Actors: objects that live somewhere, keep what they know, and are called with references to results of other calls.

What a search needs of a cluster is this small interface. `RayActors` has the actors in processes of a cluster, where
data goes from actor to actor without passing through the driver. `LocalActors` has them in this process and does each
call at once: the same search, for tests and for one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from efhorizon.engines.engine import failure_text
from efhorizon.engines.worker_process import WorkerError
from efhorizon.errors import EfhorizonError

Actor = Any  # what `make` returned
Reference = Any  # what `call` returned: stands for a result that may not be there yet


class ActorLostError(Exception):
    """An actor, its node or a result on it is gone: go back to what is on disk."""


@dataclass(frozen=True)
class Failure:
    """A call went wrong in a way that trying again does not change; a line for the user."""

    text: str


class Actors(Protocol):
    """Makes actors and calls them."""

    @property
    def num_nodes(self) -> int: ...

    @property
    def num_workers(self) -> int:
        """How many actors are to be busy at once."""
        ...

    @property
    def put(self) -> Callable[[Any], Reference]:
        """For actors: keep a value where it is, and hand out a reference."""
        ...

    def make(self, make_doer: Callable[[], Any], cores: float = 0.0) -> Actor: ...

    def call(self, actor: Actor, function: Callable[..., Any], *arguments: Any) -> Reference:
        """`function(doer, *arguments)`, once all results that the arguments refer to are there."""
        ...

    def get(self, reference: Reference) -> Any:
        """A result: `ActorLostError` if it is gone, `WorkerError` if the call failed."""
        ...

    def wait(self, references: Sequence[Reference], seconds: float) -> list[Reference]:
        """Those whose results are there, at least one unless the time is over."""
        ...

    def cores_for(self, num_actors: int) -> float:
        """The cores that each of so many busy actors can have."""
        ...

    def check_alive(self, actors: Sequence[Actor]) -> None:
        """Wait until actors have started; a line for the user if they cannot."""
        ...

    def end(self, actors: Sequence[Actor]) -> None:
        """End actors at once, whatever they are doing."""
        ...

    def close(self) -> None: ...


class Doer:
    """What an actor does: one object, made at the first call, and calls of its methods."""

    def __init__(self, make_doer: Callable[[], Any]) -> None:
        self._make_doer, self._doer, self._is_made = make_doer, None, False

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result, or a `Failure`; one among the arguments is passed on."""
        for argument in arguments:
            if isinstance(argument, Failure):
                return argument
        try:
            if not self._is_made:
                self._doer, self._is_made = self._make_doer(), True
            return function(self._doer, *arguments)
        except EfhorizonError as error:
            return Failure(str(error))
        except Exception as error:
            return Failure(failure_text(error))

    def end(self) -> None:
        """Let go of what it holds."""
        close = getattr(self._doer, "close", None)
        if close is not None:
            close()
        self._doer, self._is_made = None, False


@dataclass(frozen=True, eq=False)
class _Done:
    """A reference to a result that is there."""

    value: Any


class LocalActors:
    """Actors in this process."""

    num_nodes, num_workers = 1, 1

    @property
    def put(self) -> Callable[[Any], Reference]:
        return _Done

    def make(self, make_doer: Callable[[], Any], cores: float = 0.0) -> Actor:
        return Doer(make_doer)

    def call(self, actor: Actor, function: Callable[..., Any], *arguments: Any) -> Reference:
        values = [argument.value if isinstance(argument, _Done) else argument for argument in arguments]
        return _Done(actor.call(function, *values))

    def get(self, reference: Reference) -> Any:
        return checked(reference.value)

    def wait(self, references: Sequence[Reference], seconds: float) -> list[Reference]:
        return list(references)

    def cores_for(self, num_actors: int) -> float:
        return 1.0

    def check_alive(self, actors: Sequence[Actor]) -> None:
        pass

    def end(self, actors: Sequence[Actor]) -> None:
        for actor in actors:
            actor.end()

    def close(self) -> None:
        pass


def checked(value: Any) -> Any:
    """A result, unless it says what went wrong."""
    if isinstance(value, Failure):
        raise WorkerError(value.text)
    return value
