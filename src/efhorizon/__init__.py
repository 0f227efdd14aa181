"""How hard is this environment for deep RL, and why? Exact tables, bounds and the effective horizon."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from efhorizon._version import __version__
from efhorizon.agents.live.bridge_env import BridgeEnv, register_environments
from efhorizon.catalog import UnknownNameError, entries, entry
from efhorizon.errors import EfhorizonError, InvalidTableError, StoreError
from efhorizon.suites.entry import Entry
from efhorizon.suites.simulator import MissingExtraError, Simulator, SimulatorError, Transition

if TYPE_CHECKING:
    from efhorizon.bounds import examples
    from efhorizon.bounds.analysis import Analysis, analyze
    from efhorizon.bounds.registry import sample_complexity_bound
    from efhorizon.io.tables import load, save
    from efhorizon.mdp import TabularMDP

register_environments()

_LATER = {  # what compiles numba kernels is imported when it is first asked for
    "Analysis": "efhorizon.bounds.analysis",
    "TabularMDP": "efhorizon.mdp",
    "analyze": "efhorizon.bounds.analysis",
    "examples": "efhorizon.bounds.examples",
    "load": "efhorizon.io.tables",
    "sample_complexity_bound": "efhorizon.bounds.registry",
    "save": "efhorizon.io.tables",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'efhorizon' has no attribute {name!r}")
    module = import_module(_LATER[name])
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


__all__ = [
    "Analysis",
    "BridgeEnv",
    "EfhorizonError",
    "Entry",
    "InvalidTableError",
    "MissingExtraError",
    "Simulator",
    "SimulatorError",
    "StoreError",
    "TabularMDP",
    "Transition",
    "UnknownNameError",
    "__version__",
    "analyze",
    "entries",
    "entry",
    "examples",
    "load",
    "register_environments",
    "sample_complexity_bound",
    "save",
]
