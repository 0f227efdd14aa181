"""What a study can be about: an environment whose table it builds, or a table that is there already.

A name stands for the first of these that it fits: an environment of the catalogue, a table (its name in the folder of
tables, or its path), any other environment that `efhorizon build --env` takes, such as `FrozenLake-v1` or
`my_module:MyEnv-v0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium

from efhorizon import catalog
from efhorizon.build.target import Target, catalogue_target, gymnasium_target
from efhorizon.errors import StoreError
from efhorizon.io.tables import opened_table, table_path
from efhorizon.mdp import TabularMDP
from efhorizon.suites.simulator import SimulatorError

TABLES = Path("tables")  # the folder in which `efhorizon build` puts tables


@dataclass(frozen=True)
class StoredTable:
    """A table that was made before, used as it is."""

    id: str
    path: Path
    horizon: int
    given_horizon: int | None  # in place of the table's own
    num_states: int
    num_actions: int
    metadata: Mapping[str, Any]

    @property
    def search_name(self) -> str:
        return self.id

    def loaded(self) -> TabularMDP:
        return opened_table(self.path, horizon=self.given_horizon)


Subject = Target | StoredTable


def subject(name: str, tables: Path = TABLES, horizon: int | None = None) -> Subject:
    """What a name stands for; an unknown one is refused with those closest to it."""
    if catalog.find(name) is not None:
        return catalogue_target(name, horizon)
    path = _existing(name, tables)
    if path is not None:
        return _stored(path, horizon)
    try:
        target = gymnasium_target(name, horizon=horizon)
    except SimulatorError:
        if _is_environment(name):  # but something is wrong with it
            raise
        raise catalog.UnknownNameError(name) from None
    if not _is_environment(name):
        raise catalog.UnknownNameError(name)
    return target


def _is_environment(name: str) -> bool:
    """Whether a name is that of an environment: a registered id, or one that says where the environment is."""
    return ":" in name or "/" in name or name in gymnasium.registry


def is_table(name: str, tables: Path = TABLES) -> bool:
    """Whether a name stands for a table that is there already."""
    return catalog.find(name) is None and _existing(name, tables) is not None


def _existing(name: str, tables: Path) -> Path | None:
    try:
        return table_path(name, tables)
    except StoreError:
        return None


def _stored(path: Path, horizon: int | None) -> StoredTable:
    mdp = opened_table(path, horizon=horizon)
    return StoredTable(
        id=str(mdp.metadata["id"]),
        path=path,
        horizon=mdp.horizon,
        given_horizon=horizon,
        num_states=mdp.num_states,
        num_actions=mdp.num_actions,
        metadata=mdp.metadata,
    )
