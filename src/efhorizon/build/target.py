"""What is to be built: a catalogue entry or a Gymnasium environment, with a horizon."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from efhorizon import catalog
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import MAX_HORIZON, TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.environment_source import (
    STICKY,
    Environment,
    EnvironmentSource,
    environment_source,
    is_environment_name,
    time_limit,
)
from efhorizon.suites.gymnasium_simulator import SEED
from efhorizon.suites.plain_values import from_json
from efhorizon.suites.simulator import SimulatorError
from efhorizon.suites.specification import SimulatorSpec, gymnasium_spec, spec_of

_LONGEST_NAME = 120  # characters: a table is a folder of this name


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


def gymnasium_target(
    env: Environment,
    arguments: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    *,
    wrappers: Sequence[str | Callable[..., Any]] = (),
    seed: int = SEED,
    fixed_noise: bool = False,
) -> Target:
    """Any Gymnasium environment: a name (see `environment_source`), a class, a function that makes it, or itself.

    Without a horizon, the environment's own time limit counts. With `fixed_noise`, its random generators are part of
    its state, so an environment with chance is studied with the random numbers of one seed.
    """
    source = environment_source(env, arguments, wrappers)
    if horizon is None:
        horizon = time_limit(source)
    if horizon is None:
        raise SimulatorError(f"{source.name}: it has no time limit; say how long an episode is, as with --horizon 50")
    if horizon < 1:
        raise SimulatorError(f"the horizon must be at least 1, got {horizon}")
    _check_horizon(horizon)
    if seed < 0:
        raise SimulatorError(f"the seed must not be negative, got {seed}")
    name = table_name(source, seed, fixed_noise)
    spec = gymnasium_spec(source, seed=seed, fixed_noise=fixed_noise)
    metadata: dict[str, Any] = {"suite": spec.suite, "game": source.name, "frameskip": 1, "reward_factor": 1.0}
    if seed != SEED:
        metadata["seed"] = seed
    if fixed_noise:
        metadata["fixed_noise"] = True
    return Target(f"{name}-T{horizon}", spec, horizon, name, metadata)


def target_of(name: str, horizon: int | None = None) -> Target:
    """What a name stands for: an entry of the catalogue, or else an environment that Gymnasium can make."""
    if catalog.find(name) is None and is_environment_name(name):
        return gymnasium_target(name, horizon=horizon)
    return catalogue_target(name, horizon)


def table_name(source: EnvironmentSource, seed: int = SEED, fixed_noise: bool = False) -> str:
    """The name of an environment's tables, without the horizon."""
    place, colon, wanted = source.name.partition(":")
    parts = [place.removesuffix(".py") + colon + wanted]
    if catalog.find(source.name) is not None:
        parts.append("gymnasium")  # a table of the catalogue's has this name
    given = from_json(dict(source.arguments))
    if source.name.startswith("ALE/") and not given[STICKY]:
        del given[STICKY]  # off by default
    parts += [f"{key}={value}" for key, value in sorted(given.items())]
    parts += [f"wrapper={wrapper.rpartition(':')[2]}" for wrapper in source.wrappers]
    parts += [f"seed{seed}"] if seed != SEED else []
    parts += ["fixednoise"] if fixed_noise else []
    name = re.sub(r"[^A-Za-z0-9_.=-]", "_", "-".join(parts)).lstrip(".")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


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


def given_spec(
    mdp: TabularMDP,
    env: Environment,
    arguments: Mapping[str, Any] | None = None,
    wrappers: Sequence[str | Callable[..., Any]] = (),
) -> SimulatorSpec:
    """The environment of a table, named by the user: its code is imported only because they did.

    What runs no code is taken from the file where it is not given: the arguments, the seed.
    """
    stored = (mdp.metadata.get("provenance") or {}).get("arguments") or {}
    if stored.get("wrappers") and not wrappers:
        typed = " ".join(f"--wrapper {name}" for name in stored["wrappers"])
        raise EfhorizonError(f"this table was built with wrappers; type them too: {typed}")
    known = from_json(stored.get("arguments") or {})
    source = environment_source(env, arguments or (known if isinstance(known, dict) else {}), wrappers)
    seed = stored.get("seed", SEED)
    spec = gymnasium_spec(
        source, seed=seed if isinstance(seed, int) else SEED, fixed_noise=bool(stored.get("fixed_noise"))
    )
    return spec.replayed() if (mdp.metadata.get("provenance") or {}).get("replay") else spec
