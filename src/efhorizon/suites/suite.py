"""What efhorizon asks of a suite of environments: all that depends on a suite is behind this one class.

A suite needs a name, a title, entries for the catalogue and a way to make their simulators; everything else has a
default. The suites of this package are modules of this folder. Another package adds its own with an entry point:

    [project.entry-points."efhorizon.suites"]
    corridors = "my_package.corridors:SUITE"

where `SUITE` is an instance. Nothing heavy may be imported before a simulator is made or a screen is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.suites.batched import BatchedSimulator
from efhorizon.suites.entry import Entry
from efhorizon.suites.replay import ReplaySimulator, RestoreReport, restore_is_exact
from efhorizon.suites.simulator import Screen, Simulator, SimulatorError

Observation = NDArray[np.uint8]  # [D], or [H, W, C]
NetworkKind = Literal["dense", "image"]

ACTION_NAMES = "action_names"  # where the metadata of a table has the names that its environment told
PLAIN_FORMATS = ("rgb", "observation")  # of screens that need no drawing: an observation is a picture or none at all

_PROBE_ROLLOUTS, _PROBE_STEPS = 3, 10


class Survey(NamedTuple):
    """How many states an environment has within some horizon; without one, all that it has."""

    num_states: int
    horizon: int | None = None


@dataclass(frozen=True)
class Costs:
    """What building takes, for forecasts only; a study then uses the rates that it measures itself."""

    pairs_a_second: float = 1_000.0  # state-action pairs that one worker emulates
    build_seconds: float = 2.0  # of the smallest table: start simulators, check that they restore, verify
    search_bytes_a_state: tuple[int, int] = (220, 5_500)  # on disk, from and to
    has_clock: bool = False  # whether a state holds the time, so that it is met at one time only


@dataclass(frozen=True)
class Mark:
    """How charts show a suite: an SVG path around (0, 0), and the colour that the style sheet has for a name."""

    path: str
    colour: str = "other"


OTHER_MARK = Mark("M-4-1.3h2.7v-2.7h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7Z")


class Suite:
    """A family of environments that are simulated, seen, drawn and trained on in one way."""

    name: str  # in tables, keys and commands: never change it
    title: str  # for people
    packages: tuple[str, ...] = ()  # distributions that the simulators run on: their versions are part of provenance
    behaviour: int = 1  # raise it when the same inputs give another result: see io/behaviour.py
    costs: Costs = Costs()
    mark: Mark = OTHER_MARK

    # --- environments and their simulators

    builds_unlisted: bool = False  # whether `unlisted_entry` knows names that can be built
    has_names: bool = True  # whether environments are built by a name of the catalogue

    def entries(self) -> Iterable[Entry]:
        """The environments that have a name, in the order of the catalogue."""
        return ()

    def unlisted_entry(self, name: str) -> Entry | None:
        """An environment outside the catalogue that this suite knows by a name, to be played live."""
        return None

    def arguments(self, entry: Entry) -> Mapping[str, Any]:
        """What `simulator` is called with, as JSON: part of a table's provenance."""
        return {"game": entry.game}

    def simulator(self, **arguments: Any) -> Simulator:
        raise SimulatorError(f"unknown suite {self.name!r}: is the package that adds it installed?")

    def batched(self, arguments: Mapping[str, Any]) -> BatchedSimulator | None:
        """The same environment for many states at once, where there is such a simulator."""
        return None

    def replaying_simulator(self, **arguments: Any) -> Simulator:
        """A simulator that reaches states by replaying actions from reset, where restoring is inexact."""
        return ReplaySimulator(self.simulator(**arguments))

    def behaviour_of(self, arguments: Mapping[str, Any]) -> int:
        """The version of one environment's results, where a change concerned only some of the suite's."""
        return self.behaviour

    def trusted_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments that a table's file gives, where environments have no names.

        A file may come from anywhere: refuse arguments that would run code of its choice.
        """
        raise SimulatorError(f"{self.title}: a file cannot say which environment to run")

    def restore_report(self, make: Callable[[], Simulator], horizon: int, rng: np.random.Generator) -> RestoreReport:
        """Whether simulators restore states exactly; where not, states are replayed from reset.

        Raises `StochasticError` where the same action in the same state gives different results.
        """
        return restore_is_exact(make, _PROBE_ROLLOUTS, min(_PROBE_STEPS, horizon), rng)

    def told_by(self, simulator: Any) -> Mapping[str, Any]:
        """What a table keeps in its metadata of what an environment tells: JSON."""
        return {}

    def survey(self, entry: Entry) -> Survey | None:
        """How many states this environment is known to have, before it is searched."""
        return None

    # --- for people

    screen_format: str = "rgb"  # how screens are stored, written into each table; another than "rgb" needs `drawn`
    draws_states: bool = False  # whether `Simulator.picture` of a state shows more than its stored screen

    draws_when_built: bool = False  # whether a table keeps pictures beside its screens, drawn by `Simulator.drawing`

    def drawn(self, screen: Screen) -> Screen:
        """A screen stored in `screen_format` as an RGB (or grey) image [H, W, 3 or 1]."""
        if screen.shape[2] not in (1, 3) or screen.shape[0] < 2:
            raise InvalidTableError(f"an observation of shape {screen.shape} is not a picture")
        return screen

    def action_names(self, game: str) -> Sequence[str]:
        """What the first actions of a game are called; others are shown by their number."""
        return ()

    def family(self, game: str) -> str:
        """Which games resemble each other, whatever their size, level or horizon: evaluation draws whole families."""
        return game

    # --- for agents

    frame_stack: int = 1  # observations that an agent sees at once, the last ones
    discount: float = 1.0  # of PPO and DQN
    bootstraps_at_horizon: bool = False  # whether the horizon cuts an episode short instead of ending it

    def network(self, game: str) -> NetworkKind:
        """What agents learn with: "dense" where observations are flat, "image" where they are pictures."""
        return "image"

    def network_of(self, metadata: Mapping[str, Any]) -> NetworkKind:
        """The same of a table with this metadata."""
        return self.network(str(metadata.get("game")))

    def observer(self, entry: Entry) -> Callable[[Screen], Observation]:
        """What agents see of a stored screen: a vector for a dense network, an image [H, W, C] for the other."""
        return np.ravel if self.network(entry.game) == "dense" else lambda screen: screen

    def observation(self, entry: Entry, simulator: Any) -> Observation:
        """The same of a simulator's current state."""
        return self.observer(entry)(simulator.screen())


class UnknownSuite(Suite):
    """Stands for a suite that is not installed: its tables can be read, shown and reported, but not simulated."""

    def __init__(self, name: str) -> None:
        self.name = self.title = name
