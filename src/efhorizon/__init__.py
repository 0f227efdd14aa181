"""How hard is this environment for deep RL, and why? Exact tables, bounds and the effective horizon."""

from __future__ import annotations

from efhorizon._version import __version__
from efhorizon.catalog import Entry, UnknownNameError, entries, entry
from efhorizon.envs.base import MissingExtraError, Simulator, SimulatorError, Transition
from efhorizon.envs.bridge import BridgeEnv, register_environments
from efhorizon.errors import EfhorizonError, InvalidTableError, StoreError
from efhorizon.mdp import TabularMDP, load

register_environments()

__all__ = [
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
    "entries",
    "entry",
    "load",
    "register_environments",
]
