"""One environment that has a name: an entry of the catalogue."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from efhorizon.suites.simulator import SimulatorError

PUBLISHED_HORIZONS = (10, 20, 30, 40, 50, 70, 100, 200)  # of names in Atari and Procgen

_HORIZON_IN_NAME = re.compile(r"_\d+_fs")  # as in pong_50_fs30
_VERSION = re.compile(r"-v\d+$")  # as in MiniGrid-Empty-5x5-v0


@dataclass(frozen=True)
class Entry:
    """One environment of the catalogue. Fields that a suite does not have are None.

    A name may tell its horizon, as `{game}_{T}_fs{F}` does. Entries whose names differ only in it share one search.
    """

    name: str
    suite: str
    game: str  # ROM id (Atari), game (Procgen) or MiniGrid's own id: what the suite's simulator is made from
    horizon: int
    frameskip: int
    num_actions: int
    reward_factor: float = 1.0  # points per unit: training divides rewards by it; tables keep the game's own points
    unshaped: str | None = None  # name of the unshaped original; None where this is one
    shaping: str | None = None  # MiniGrid
    difficulty: str | None = None  # Procgen
    level: int | None = None  # Procgen

    @property
    def gym_id(self) -> str:
        """The id under which Gymnasium knows it; some names end in a version already."""
        return f"BRIDGE/{self.name}" if _VERSION.search(self.name) else f"BRIDGE/{self.name}-v0"

    @property
    def search_name(self) -> str:
        """What all horizons of this environment have in common."""
        return _HORIZON_IN_NAME.sub("_fs", self.name)

    @property
    def pattern(self) -> str:
        """The name with T in place of its horizon."""
        return _HORIZON_IN_NAME.sub("_T_fs", self.name)

    def with_horizon(self, horizon: int) -> Entry:
        """The same environment with another horizon, which its name then tells."""
        if horizon < 1:
            raise SimulatorError(f"the horizon must be at least 1, got {horizon}")
        if horizon == self.horizon:
            return self
        tells_horizon = _HORIZON_IN_NAME.search(self.name)
        name = _HORIZON_IN_NAME.sub(f"_{horizon}_fs", self.name) if tells_horizon else f"{self.name}-T{horizon}"
        return replace(self, name=name, horizon=horizon)
