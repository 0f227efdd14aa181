"""What is to be built: a catalogue entry or a Gymnasium environment, with a horizon."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from efhorizon import catalog
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import MAX_HORIZON, TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.gymnasium import time_limit
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
    listed = catalog.entry(name)
    entry = listed if horizon is None else listed.with_horizon(horizon)
    _check_horizon(entry.horizon)
    described = {**dataclasses.asdict(entry), "catalogue_name": name}
    del described["name"], described["horizon"], described["num_actions"]  # the table itself has these
    return Target(entry.name, spec_of(entry), entry.horizon, listed.search_name, described)


def gymnasium_target(env_id: str, arguments: Mapping[str, Any] | None = None, horizon: int | None = None) -> Target:
    """Any registered Gymnasium environment; without a horizon, its registered episode length counts."""
    if horizon is None:
        horizon = time_limit(env_id)
    if horizon is None:
        raise SimulatorError(f"{env_id}: registered without an episode length; give one with --horizon")
    if horizon < 1:
        raise SimulatorError(f"the horizon must be at least 1, got {horizon}")
    _check_horizon(horizon)
    given = "".join(f"-{key}={value}" for key, value in sorted((arguments or {}).items()))
    name = re.sub(r"[^A-Za-z0-9_.=-]", "_", env_id + given)
    spec = gymnasium_spec(env_id, arguments)
    metadata = {"suite": spec.suite, "game": env_id, "frameskip": 1, "reward_factor": 1.0}
    return Target(f"{name}-T{horizon}", spec, horizon, name, metadata)


def _check_horizon(horizon: int) -> None:
    if horizon > MAX_HORIZON:  # before a search of hours
        raise SimulatorError(f"the horizon must be at most {MAX_HORIZON:,}, got {horizon}")


def table_spec(mdp: TabularMDP, name: str | None = None) -> SimulatorSpec:
    """The environment of a table: by its name in the catalogue, or else as described in the file.

    Where restoring was found inexact when the table was built, states are reached by replaying.
    """
    metadata = mdp.metadata
    if metadata.get("changes"):
        before = metadata["changes"][0].get("from")
        raise EfhorizonError(f"the table was made from another one, {before}, and has no environment of its own")
    spec = _named_spec(mdp, name)
    return spec.replayed() if (metadata.get("provenance") or {}).get("replay") else spec


def _named_spec(mdp: TabularMDP, name: str | None) -> SimulatorSpec:
    metadata = mdp.metadata
    suite = registry.suite(metadata.get("suite"))
    if name is None and not suite.has_names:
        arguments = (metadata.get("provenance") or {}).get("arguments")
        if arguments is None:
            raise EfhorizonError("the file does not say how its environment is made; give --id NAME")
        return SimulatorSpec(suite.name, suite.trusted_arguments(arguments))
    identifier = name or metadata.get("catalogue_name") or metadata.get("id")
    if identifier is None:
        raise EfhorizonError("the file does not say which environment it is; give --id NAME")
    return catalogue_target(identifier, mdp.horizon).spec
