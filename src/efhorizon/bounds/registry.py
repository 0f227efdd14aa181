"""The list of sample-complexity bounds. A bound of your own takes one decorated function:

    from efhorizon.bounds.registry import sample_complexity_bound

    @sample_complexity_bound("half_of_ucb", title="half of UCB")
    def half_of_ucb(problem):
        return problem.num_reachable_states * problem.mdp.num_actions * problem.mdp.horizon // 2

It then appears in `analyze`, in its JSON and in reports. A bound returns the number of environment steps after which
some algorithm has found an optimal policy with probability 1/2:

    an integer, of Python or numpy     that many steps
    a number with a fraction           rounded up: 10.2 steps are 11
    infinity or None                   no bound
    an object                          with `sample_complexity`, one of the above, and `reason`, a text or None

Anything else (a negative number, nan, True, a text, an exception) is a mistake in the bound. The analysis goes on
without it, and `reason` says what went wrong. A package can name modules that register bounds as entry points
"efhorizon.bounds".
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from numbers import Integral, Real
from typing import Any, Protocol, TypeVar

import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.io.behaviour import source_digest
from efhorizon.planning.problem import Problem

BUILT_IN = "built in"  # the version of a bound of this package: that of the analysis
_LONGEST = 200  # characters of what is said about a mistake


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
    is_mistake: bool = False  # the bound does not work; `reason` says why


@dataclass(frozen=True)
class Bound:
    """One registered bound."""

    name: str  # the key in JSON
    title: str  # for people
    function: Callable[[Problem], Any]

    @property
    def is_built_in(self) -> bool:
        return self.function.__module__.startswith("efhorizon.")

    @property
    def version(self) -> str | None:
        """A digest of the source of a user's bound; None if that is unknown, so that changes would go unnoticed."""
        module = self.function.__module__
        if self.is_built_in:
            return BUILT_IN
        try:
            return source_digest(inspect.getsource(self.function if module == "__main__" else import_module(module)))
        except (OSError, TypeError, ImportError):
            return None

    def __call__(self, problem: Problem) -> BoundResult:
        """The bound. A mistake in somebody's own is said in its reason, and costs the analysis nothing else."""
        if self.is_built_in:
            result: BoundResult = self.function(problem)
            return result
        try:
            return _checked(self.function(problem))
        except InvalidBoundError as error:
            return PlainResult(None, f"the bound {self.name!r} {error}", is_mistake=True)
        except Exception as error:  # whatever somebody's code raises
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return PlainResult(
                None, f"the bound {self.name!r} raised {' '.join(said.split())[:_LONGEST]}", is_mistake=True
            )


def _checked(result: Any) -> BoundResult:
    """What a bound has returned, with a number of steps that is an integer."""
    if not hasattr(result, "sample_complexity"):
        return _number_of_steps(result)
    found, reason = _number_of_steps(result.sample_complexity), getattr(result, "reason", None)
    if reason is not None and not isinstance(reason, str):
        raise InvalidBoundError(f"gave a reason that is not a text: {_shown(reason)}")
    if type(result.sample_complexity) in (int, type(None)) and hasattr(result, "reason"):
        checked: BoundResult = result
        return checked
    return PlainResult(found.sample_complexity, found.reason if reason is None else reason)


def _number_of_steps(value: Any) -> PlainResult:
    """An integer from any kind of number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if value is None:
        return PlainResult(None, "no bound")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InvalidBoundError(f"returned {_shown(value)}, which is not a number of steps")
    number: Any = value
    if number == math.inf:
        return PlainResult(None, "no bound: it is infinite")
    if not number >= 0:  # nan as well
        raise InvalidBoundError(f"returned {_shown(value)}; a number of steps is at least 0")
    return PlainResult(int(number) if isinstance(value, Integral) else math.ceil(number))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST // 2 else f"{text[: _LONGEST // 2]}..."


class InvalidBoundError(EfhorizonError, ValueError):
    """A bound has returned what is no number of steps; the message goes on after its name."""


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
