"""How hard is this environment for deep RL, and why? Exact tables, bounds and the effective horizon.

    import efhorizon as ef

    mdp = ef.build("MiniGrid-Empty-5x5-v0")
    ef.analyze(mdp)

The names in `__all__` are the library; docs/library.md shows them at work, docs/api.md lists them all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from efhorizon._version import __version__
from efhorizon.agents.live.bridge_env import BridgeEnv, register_environments
from efhorizon.catalog import UnknownNameError, entries, entry
from efhorizon.envs.registration import register_tables
from efhorizon.errors import EfhorizonError, InvalidTableError, StoreError
from efhorizon.suites.entry import Entry
from efhorizon.suites.simulator import MissingExtraError, Simulator, SimulatorError, Transition

if TYPE_CHECKING:
    from efhorizon.bounds import examples
    from efhorizon.bounds.analysis import Analysis
    from efhorizon.bounds.registry import sample_complexity_bound
    from efhorizon.envs.table_env import TableEnv
    from efhorizon.envs.table_vector_env import TableVectorEnv
    from efhorizon.io.tables import save
    from efhorizon.library import (
        Study,
        Training,
        analyze,
        build,
        diagnose,
        forecast,
        gorp,
        load,
        report,
        study,
        train,
        what_if,
    )
    from efhorizon.mdp import TabularMDP

register_environments()
register_tables()

_LATER = {  # what compiles numba kernels is imported when it is first asked for
    "Analysis": "efhorizon.bounds.analysis",
    "Study": "efhorizon.library",
    "TableEnv": "efhorizon.envs.table_env",
    "TableVectorEnv": "efhorizon.envs.table_vector_env",
    "TabularMDP": "efhorizon.mdp",
    "Training": "efhorizon.library",
    "analyze": "efhorizon.library",
    "build": "efhorizon.build",  # folders that can be called: see callable_module.py
    "diagnose": "efhorizon.diagnose",
    "examples": "efhorizon.bounds.examples",
    "forecast": "efhorizon.forecast",
    "gorp": "efhorizon.gorp",
    "load": "efhorizon.library",
    "report": "efhorizon.library",
    "sample_complexity_bound": "efhorizon.bounds.registry",
    "save": "efhorizon.io.tables",
    "study": "efhorizon.study",
    "train": "efhorizon.library",
    "what_if": "efhorizon.what_if",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'efhorizon' has no attribute {name!r}")
    module = import_module(_LATER[name])
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


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
    "Study",
    "TableEnv",
    "TableVectorEnv",
    "TabularMDP",
    "Training",
    "Transition",
    "UnknownNameError",
    "__version__",
    "analyze",
    "build",
    "diagnose",
    "entries",
    "entry",
    "examples",
    "forecast",
    "gorp",
    "load",
    "register_environments",
    "report",
    "sample_complexity_bound",
    "save",
    "study",
    "train",
    "what_if",
]
