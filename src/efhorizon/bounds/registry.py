"""The list of sample-complexity bounds. A bound of your own takes one decorated function:

    from efhorizon.bounds.registry import sample_complexity_bound

    @sample_complexity_bound("half_of_ucb", title="half of UCB")
    def half_of_ucb(problem):
        return problem.num_reachable_states * problem.mdp.num_actions * problem.mdp.horizon // 2

It then appears in `analyze`, in its JSON and in reports. A bound returns the number of environment steps after which
some algorithm has found an optimal policy with probability 1/2: an integer, None where there is none, or an object with
`sample_complexity` and `reason`. A package can name modules that register bounds as entry points "efhorizon.bounds".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeVar

from efhorizon.errors import EfhorizonError
from efhorizon.planning.problem import Problem


class BoundResult(Protocol):
    """What a bound gives back; a sample complexity of None is infinite or does not apply, and `reason` says which."""

    @property
    def sample_complexity(self) -> int | None: ...

    @property
    def reason(self) -> str | None: ...


@dataclass(frozen=True)
class PlainResult:
    """The result of a bound that has nothing more to say."""

    sample_complexity: int | None
    reason: str | None = None


@dataclass(frozen=True)
class Bound:
    """One registered bound."""

    name: str  # the key in JSON
    title: str  # for people
    function: Callable[[Problem], Any]

    def __call__(self, problem: Problem) -> BoundResult:
        result: Any = self.function(problem)
        if result is None:
            return PlainResult(None, "no bound")
        if isinstance(result, int):
            return PlainResult(result)
        checked: BoundResult = result
        return checked


class DuplicateBoundError(EfhorizonError, ValueError):
    """Two bounds under one name."""


_Function = TypeVar("_Function", bound=Callable[[Problem], Any])
_registered: dict[str, Bound] = {}
_BUILT_IN = (
    "worst_case",
    "ucb",
    "covering_length",
    "effective_planning_window",
    "effective_horizon",
    "mistake_horizon",
    "goal_horizon",
    "pg_gorp",
    "fqi_gorp",
)


def sample_complexity_bound(name: str, *, title: str | None = None) -> Callable[[_Function], _Function]:
    """Register a function of a Problem as a bound; the function itself is left as it is."""

    def register(function: _Function) -> _Function:
        known = _registered.get(name)
        if known is not None and known.function.__module__ != function.__module__:
            raise DuplicateBoundError(f"there is a bound named {name!r} already, from {known.function.__module__}")
        _registered[name] = Bound(name, title or name.replace("_", " "), function)
        return function

    return register


def unregister(name: str) -> None:
    """Forget a bound."""
    _registered.pop(name, None)


def registered_bounds() -> tuple[Bound, ...]:
    """Every bound: the paper's in its order, then those of others as they were registered."""
    for module in _BUILT_IN:
        import_module(f"efhorizon.bounds.{module}")
    for entry_point in entry_points(group="efhorizon.bounds"):
        entry_point.load()
    return tuple(sorted(_registered.values(), key=_built_in_first))


def _built_in_first(bound: Bound) -> int:
    module = bound.function.__module__.removeprefix("efhorizon.bounds.")
    return _BUILT_IN.index(module) if module in _BUILT_IN else len(_BUILT_IN)
