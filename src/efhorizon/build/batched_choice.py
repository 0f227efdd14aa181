"""Whether a search uses a suite's batched simulator."""

from __future__ import annotations

from pathlib import Path

from efhorizon import catalog
from efhorizon.build.target import Target
from efhorizon.errors import EfhorizonError
from efhorizon.suites import registry
from efhorizon.suites.batched import BatchedSimulator
from efhorizon.suites.specification import SimulatorSpec

BATCHED = "-batched"  # at the end of the name of such a search's folder
_MANY_STATES = 1_000_000  # from here on, such a simulator is used without asking


def batched_simulator(
    target: Target, spec: SimulatorSpec, wanted: bool | None, folder: Path, *, on_ray: bool
) -> BatchedSimulator | None:
    """The batched simulator of an environment, if it is to be used; `folder` is that of its usual search."""
    if wanted is None:
        wanted_here = not on_ray and not folder.exists() and _num_states(target) >= _MANY_STATES
    else:
        wanted_here = wanted
    if not wanted_here or spec.replay or spec.in_process:
        made = None
    else:
        made = registry.suite(spec.suite).batched(spec.arguments)
    if wanted and on_ray:
        raise EfhorizonError("--batched does not go with --engine ray: a batched simulator uses one machine")
    if wanted and made is None:
        raise EfhorizonError(f"{target.id}: there is no batched simulator of this environment")
    return made


def _num_states(target: Target) -> int:
    """How many states an environment is known to have; 0 where nobody has counted."""
    entry = catalog.find(str(target.metadata.get("catalogue_name")))
    survey = None if entry is None else registry.suite(entry.suite).survey(entry)
    return 0 if survey is None else survey.num_states
