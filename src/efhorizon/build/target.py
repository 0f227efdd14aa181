"""What is to be built: a catalogue entry or a Gymnasium environment, with a horizon."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from efhorizon import catalog
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.suites.simulator import SimulatorError
from efhorizon.suites.specification import SimulatorSpec, gymnasium_spec, spec_of


@dataclass(frozen=True)
class Target:
    """A table to be built. Targets that differ only in their horizon share one search."""

    id: str
    spec: SimulatorSpec
    horizon: int
    search_name: str
    metadata: Mapping[str, Any]


def catalogue_target(name: str, horizon: int | None = None) -> Target:
    """A catalogue entry, perhaps with another horizon."""
    entry = catalog.entry(name)
    if horizon is not None and horizon != entry.horizon:
        entry = _with_horizon(entry, _positive(horizon))
    described = {**dataclasses.asdict(entry), "catalogue_name": name}
    del described["name"], described["horizon"], described["num_actions"]  # the table itself has these
    game = re.sub(r"_\d+_fs", "_fs", entry.name) if entry.suite != "minigrid" else name
    return Target(entry.name, spec_of(entry), entry.horizon, game, described)


def gymnasium_target(env_id: str, arguments: Mapping[str, Any] | None = None, horizon: int | None = None) -> Target:
    """Any registered Gymnasium environment; without a horizon, its registered episode length counts."""
    from efhorizon.suites.gymnasium import time_limit

    if horizon is None:
        horizon = time_limit(env_id)
    if horizon is None:
        raise SimulatorError(f"{env_id}: registered without an episode length; give --horizon")
    given = "".join(f"-{key}={value}" for key, value in sorted((arguments or {}).items()))
    name = re.sub(r"[^A-Za-z0-9_.=-]", "_", env_id + given)
    spec = gymnasium_spec(env_id, arguments)
    metadata = {"suite": "gymnasium", "game": env_id, "frameskip": 1, "reward_factor": 1.0}
    return Target(f"{name}-T{horizon}", spec, _positive(horizon), name, metadata)


def table_spec(mdp: TabularMDP, name: str | None = None) -> SimulatorSpec:
    """The environment of a table: by its name in the catalogue, or for other environments by what the file says.

    A file may come from anywhere, so it cannot name a module to import: ids with a colon must be given by the user.
    """
    metadata = mdp.metadata
    if name is None and metadata.get("suite") == "gymnasium":
        provenance = metadata["provenance"]["arguments"]
        if ":" in provenance["env_id"]:
            raise EfhorizonError(f"the file names {provenance['env_id']!r}, which would import a module; not verified")
        return SimulatorSpec("gymnasium", provenance)
    identifier = name or metadata.get("catalogue_name") or metadata.get("id")
    if identifier is None:
        raise EfhorizonError("the file does not say which environment it is; give --id NAME")
    return catalogue_target(identifier, mdp.horizon).spec


def _with_horizon(entry: catalog.Entry, horizon: int) -> catalog.Entry:
    in_name = re.sub(r"_\d+_fs", f"_{horizon}_fs", entry.name)
    name = f"{entry.name}-T{horizon}" if entry.suite == "minigrid" else in_name
    return dataclasses.replace(entry, name=name, horizon=horizon)


def _positive(horizon: int) -> int:
    if horizon < 1:
        raise SimulatorError(f"the horizon must be at least 1, got {horizon}")
    return horizon
