"""All suites: those of this package, and those that other packages add by the entry-point group `efhorizon.suites`.

A plug-in that cannot be used is left out with a one-line warning, and everything else works.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from efhorizon.suites.atari import ATARI
from efhorizon.suites.entry import Entry
from efhorizon.suites.gymnasium import GYMNASIUM
from efhorizon.suites.gymnax import GYMNAX
from efhorizon.suites.lattice import LATTICES
from efhorizon.suites.minigrid import MINIGRID
from efhorizon.suites.procgen import PROCGEN
from efhorizon.suites.suite import Suite, UnknownSuite

GROUP = "efhorizon.suites"
BUILT_IN: tuple[Suite, ...] = (ATARI, PROCGEN, MINIGRID, GYMNASIUM, LATTICES, GYMNAX)

_added: dict[EntryPoint, Suite | None] = {}  # None: cannot be used


class SuiteWarning(UserWarning):
    """A suite of another package cannot be used."""


def suites() -> tuple[Suite, ...]:
    """Every suite, those of this package first."""
    found = {suite.name: suite for suite in BUILT_IN}
    for point in _entry_points():
        if point not in _added and not _is_being_imported(point):
            _added[point] = _loaded(point, found)
        added = _added.get(point)
        if added is not None:
            found[added.name] = added
    return tuple(found.values())


def suite(name: object) -> Suite:
    """The suite with this name; one that is not installed has nothing but its name."""
    return next((each for each in suites() if each.name == name), UnknownSuite(str(name)))


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: (_package(point), point.name)))


def _loaded(point: EntryPoint, others: dict[str, Suite]) -> Suite | None:
    try:
        suite = point.load()
        _check(suite)
        if suite.name in others:
            raise TypeError(f"there is a suite called {suite.name!r} already")
    except Exception as error:  # errors in another package must not stop everything else
        reason = (str(error).splitlines() or [""])[0]
        text = f"the suite {point.name!r} of {_package(point)} is left out: {type(error).__name__}: {reason}"
        warnings.warn_explicit(text, SuiteWarning, filename=point.value, lineno=1)
        return None
    assert isinstance(suite, Suite)
    return suite


def _check(suite: object) -> None:
    if not isinstance(suite, Suite):
        raise TypeError(f"its entry point is {suite!r}, not an instance of efhorizon.suites.suite.Suite")
    for attribute in ("name", "title"):
        if not isinstance(getattr(suite, attribute, None), str):
            raise TypeError(f"it has no {attribute}")
    for entry in suite.entries():
        if not isinstance(entry, Entry) or entry.suite != suite.name:
            raise TypeError(f"{entry!r} is not an entry of the suite {suite.name!r}")


def _is_being_imported(point: EntryPoint) -> bool:
    """True while a plug-in that was imported first imports efhorizon: it is taken up the next time."""
    spec = getattr(sys.modules.get(point.module), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module
