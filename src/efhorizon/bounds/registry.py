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

Other measures of hardness are registered beside the bounds, with `hardness_measure`. They have a direction instead of
a unit: they put environments in an order, and say nothing about timesteps. See `measures.py`.
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

from efhorizon.bounds.measures import Harder, Measure, Measured, checked_measure
from efhorizon.errors import EfhorizonError
from efhorizon.io.behaviour import source_digest, version_name
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
        return BUILT_IN if self.is_built_in else _source_version(self.function)

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


@dataclass(frozen=True)
class HardnessMeasure:
    """One registered measure of hardness."""

    name: str  # the key in JSON
    title: str  # for people
    harder: Harder  # whether larger or smaller values mean a harder environment
    function: Callable[[Problem], Any]
    is_built_in: bool

    @property
    def version(self) -> str | None:
        """By the BEHAVIOUR of its module; of somebody's own a digest of its source, None if that is unknown."""
        if self.is_built_in:
            return version_name(f"measure {self.name}", import_module(self.function.__module__).BEHAVIOUR)
        return _source_version(self.function)

    def __call__(self, problem: Problem) -> Measure:
        """The measure. A mistake in somebody's own is said in its reason, and costs the analysis nothing else."""
        if self.is_built_in:
            return Measure.of(self.function(problem), self.harder)
        try:
            return Measure.of(checked_measure(self.function(problem)), self.harder)
        except Exception as error:  # whatever somebody's code raises
            said = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
            return Measure.of(Measured(None, reason=f"the measure {self.name!r} raised {said}"), self.harder)


def _source_version(function: Callable[[Problem], Any]) -> str | None:
    module = function.__module__
    try:
        return source_digest(inspect.getsource(function if module == "__main__" else import_module(module)))
    except (OSError, TypeError, ImportError):
        return None


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
_measures: dict[str, HardnessMeasure] = {}
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
# Networks play on what agents see, so their measures stand with the agents. They are found by name, as those of other
# packages are: no bound imports an agent.
_MEASURES = (
    "efhorizon.bounds.rivals.number_of_states",
    "efhorizon.bounds.rivals.diameter",
    "efhorizon.bounds.rivals.inverse_gaps",
    "efhorizon.bounds.rivals.value_norm",
    "efhorizon.bounds.rivals.optimal_episode",
    "efhorizon.agents.random_networks.information_capacity",
    "efhorizon.agents.random_networks.weight_guessing",
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


def hardness_measure(name: str, *, title: str, harder: Harder) -> Callable[[_Function], _Function]:
    """Register a function of a Problem as a measure of hardness; the function itself is left as it is.

    It returns a number, a `Measured` (an estimate with its interval), or None where it does not apply.
    """

    def register(function: _Function) -> _Function:
        known = _measures.get(name)
        if known is not None and known.function.__module__ != function.__module__:
            raise DuplicateBoundError(f"there is a measure named {name!r} already, from {known.function.__module__}")
        is_built_in = function.__module__ in _MEASURES
        _measures[name] = HardnessMeasure(name, title, harder, function, is_built_in)
        return function

    return register


def unregister(name: str) -> None:
    """Forget a bound, or a measure of hardness."""
    _registered.pop(name, None)
    _measures.pop(name, None)


def registered_bounds() -> tuple[Bound, ...]:
    """Every bound: the paper's in its order, then those of others as they were registered."""
    for module in _BUILT_IN:
        import_module(f"efhorizon.bounds.{module}")
    for entry_point in entry_points(group="efhorizon.bounds"):
        entry_point.load()
    return tuple(sorted(_registered.values(), key=_built_in_first))


def registered_measures() -> tuple[HardnessMeasure, ...]:
    """Every measure of hardness: those of this package, then those of others as they were registered."""
    for module in _MEASURES:
        import_module(module)
    for entry_point in entry_points(group="efhorizon.bounds"):
        entry_point.load()
    return tuple(sorted(_measures.values(), key=lambda measure: not measure.is_built_in))


def measure_titles() -> dict[str, str]:
    """The titles of all measures, by name."""
    return {measure.name: measure.title for measure in registered_measures()}


def _built_in_first(bound: Bound) -> int:
    module = bound.function.__module__.removeprefix("efhorizon.bounds.")
    return _BUILT_IN.index(module) if module in _BUILT_IN else len(_BUILT_IN)
