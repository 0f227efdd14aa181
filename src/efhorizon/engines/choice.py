"""Which engine does the work: what `--engine`, `--address` and `--owners` say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

EngineName = Literal["local", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
LEAST_OBJECT_STORE = 80 * 2**20  # bytes: Ray refuses less than 75 MB


@dataclass(frozen=True)
class EngineChoice:
    """Where work runs. Results do not depend on it."""

    name: EngineName = "local"
    address: str | None = None  # of a Ray cluster; None: one is started on this machine, unless RAY_ADDRESS names one
    owners: int | None = None  # actors that hold the states of a search; None: one for each node of the cluster
    workers: int | None = None  # that expand states or make rows; None: one for each core of the cluster
    object_store: int = 512 * 2**20  # bytes, of a cluster that is started here

    @property
    def is_ray(self) -> bool:
        return self.name == "ray"


@dataclass(frozen=True)
class Workplace:
    """The folder and the import path of this process, so that a worker elsewhere finds the same files and modules."""

    folder: Path = field(default_factory=Path.cwd)
    import_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))

    def enter(self) -> None:
        """Work there. A folder that is not there is an error of whatever needs it, not of this."""
        if self.folder.is_dir():
            os.chdir(self.folder)
        sys.path.extend(entry for entry in self.import_path if entry not in sys.path)


@contextmanager
def environment_defaults(**values: str) -> Iterator[None]:
    """Environment variables that are set only where the user has not set them."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
