"""MiniGrid's gridworlds: what they are called, how they are seen and drawn, what agents get to see.

    MiniGrid-{Env}-v0, MiniGrid-{Env}-{Shaping}Shaped-v0

`minigrid_simulator` runs them, with the rewards of `minigrid_shaping`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from efhorizon.suites.batched import BatchedSimulator
from efhorizon.suites.entry import Entry
from efhorizon.suites.minigrid_simulator import ACTIONS, NAVIGATION_ACTIONS, MiniGridSimulator, picture_of_screen
from efhorizon.suites.replay import RestoreReport
from efhorizon.suites.simulator import Screen, Simulator
from efhorizon.suites.suite import Costs, Mark, NetworkKind, Observation, Suite, Survey

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

HORIZON = 100
FETCHING_BEHAVIOUR = 2  # of gridworlds whose pick-up shaping counts the object to be fetched; it once did not
ACTION_NAMES = ("left", "right", "forward", "pickup", "drop", "toggle")

# The shapings that change some reward, by what is in the gridworld: a goal or an object to fetch, doors, other objects.
GOAL = ("Distance",)
GOAL_AND_DOORS = ("Distance", "OpenDoors")
GOAL_DOORS_AND_KEYS = ("Distance", "OpenDoors", "Pickup", "OpenDoorsPickup")
DOORS = ("OpenDoors",)
DOORS_AND_KEYS = ("OpenDoors", "Pickup", "OpenDoorsPickup")

# MiniGrid's id: (all its states, shaped or not; shapings). Every gridworld registered by MiniGrid 3.2.0 that needs no
# language, draws nothing at random after its reset and has at most a million states within the horizon:
# docs/minigrid-states.md has the counts, and the reasons for what is missing. In the Memory gridworlds objects cannot
# be picked up, so there is nothing to shape.
GRIDWORLDS = MappingProxyType(
    {
        "MiniGrid-BlockedUnlockPickup-v0": (509_984, GOAL_DOORS_AND_KEYS),
        "MiniGrid-DistShift1-v0": (112, GOAL),
        "MiniGrid-DistShift2-v0": (112, GOAL),
        "MiniGrid-DoorKey-5x5-v0": (264, GOAL_DOORS_AND_KEYS),
        "MiniGrid-DoorKey-6x6-v0": (1_300, GOAL_DOORS_AND_KEYS),
        "MiniGrid-DoorKey-8x8-v0": (9_244, GOAL_DOORS_AND_KEYS),
        "MiniGrid-DoorKey-16x16-v0": (358_292, GOAL_DOORS_AND_KEYS),
        "MiniGrid-Empty-5x5-v0": (32, GOAL),
        "MiniGrid-Empty-6x6-v0": (60, GOAL),
        "MiniGrid-Empty-8x8-v0": (140, GOAL),
        "MiniGrid-Empty-16x16-v0": (780, GOAL),
        "MiniGrid-Empty-Random-5x5-v0": (32, GOAL),
        "MiniGrid-Empty-Random-6x6-v0": (60, GOAL),
        "MiniGrid-FourRooms-v0": (1_036, GOAL),
        "MiniGrid-KeyCorridorS3R1-v0": (168, GOAL_DOORS_AND_KEYS),
        "MiniGrid-KeyCorridorS3R2-v0": (4_896, GOAL_DOORS_AND_KEYS),
        "MiniGrid-KeyCorridorS3R3-v0": (108_032, GOAL_DOORS_AND_KEYS),
        "MiniGrid-KeyCorridorS4R3-v0": (602_624, GOAL_DOORS_AND_KEYS),
        "MiniGrid-LavaCrossingS9N1-v0": (168, GOAL),
        "MiniGrid-LavaCrossingS9N2-v0": (128, GOAL),
        "MiniGrid-LavaCrossingS9N3-v0": (48, GOAL),
        "MiniGrid-LavaCrossingS11N5-v0": (80, GOAL),
        "MiniGrid-LavaGapS5-v0": (16, GOAL),
        "MiniGrid-LavaGapS6-v0": (48, GOAL),
        "MiniGrid-LavaGapS7-v0": (80, GOAL),
        "MiniGrid-MemoryS7-v0": (40, ()),
        "MiniGrid-MemoryS9-v0": (48, ()),
        "MiniGrid-MemoryS11-v0": (56, ()),
        "MiniGrid-MemoryS13-v0": (64, ()),
        "MiniGrid-MemoryS13Random-v0": (60, ()),
        "MiniGrid-MemoryS17Random-v0": (76, ()),
        "MiniGrid-MultiRoom-N2-S4-v0": (60, GOAL_AND_DOORS),
        "MiniGrid-MultiRoom-N4-S5-v0": (5_696, GOAL_AND_DOORS),
        "MiniGrid-MultiRoom-N4-S5-v1": (1_072, GOAL_AND_DOORS),
        "MiniGrid-MultiRoom-N6-v0": (11_200, GOAL_AND_DOORS),
        "MiniGrid-ObstructedMaze-1Dl-v0": (3_200, GOAL_DOORS_AND_KEYS),
        "MiniGrid-ObstructedMaze-1Dlh-v0": (5_184, GOAL_DOORS_AND_KEYS),
        "MiniGrid-ObstructedMaze-1Dlhb-v0": (80_516, GOAL_DOORS_AND_KEYS),
        "MiniGrid-RedBlueDoors-6x6-v0": (196, DOORS),
        "MiniGrid-RedBlueDoors-8x8-v0": (436, DOORS),
        "MiniGrid-SimpleCrossingS9N1-v0": (168, GOAL),
        "MiniGrid-SimpleCrossingS9N2-v0": (128, GOAL),
        "MiniGrid-SimpleCrossingS9N3-v0": (48, GOAL),
        "MiniGrid-SimpleCrossingS11N5-v0": (80, GOAL),
        "MiniGrid-Unlock-v0": (1_084, DOORS_AND_KEYS),
        "MiniGrid-UnlockPickup-v0": (17_224, GOAL_DOORS_AND_KEYS),
    }
)

# Gridworlds of more than a million states, which the batched simulator explores in minutes: the states that are met
# before the horizon, and whether these are all.
LARGE_GRIDWORLDS = MappingProxyType(
    {
        "MiniGrid-KeyCorridorS5R3-v0": (5_581_219, False),
        "MiniGrid-LockedRoom-v0": (18_096_400, False),
        "MiniGrid-ObstructedMaze-2Dl-v0": (11_844_868, True),
    }
)

# Gridworlds whose task is to fetch an object.
FETCHING = ("MiniGrid-BlockedUnlockPickup", "MiniGrid-KeyCorridor", "MiniGrid-ObstructedMaze", "MiniGrid-UnlockPickup")

_FAMILY = re.compile(r"MiniGrid-[A-Za-z]+?(?=S\d|\d|-)")  # MiniGrid-DoorKey of MiniGrid-DoorKey-5x5-v0
_CROSSING = ("MiniGrid-LavaCrossing", "MiniGrid-SimpleCrossing")  # made by one class


class MiniGrid(Suite):
    """Gridworlds with the layout of seed 0."""

    name = "minigrid"
    title = "MiniGrid"
    packages = ("minigrid", "gymnasium")
    behaviour = BEHAVIOUR
    costs = Costs(pairs_a_second=8_000.0, build_seconds=1.5, search_bytes_a_state=(220, 350))
    mark = Mark("M0-4.4L4.2 3.2H-4.2Z", "minigrid")
    screen_format = "symbols"
    draws_states = True  # a gridworld lights up what the agent sees, as in the published pictures
    discount = 0.99  # PPO and DQN learn little here without one
    bootstraps_at_horizon = True

    def entries(self) -> Iterator[Entry]:
        for game, (_, shapings) in GRIDWORLDS.items():
            num_actions = NAVIGATION_ACTIONS if game.startswith("MiniGrid-Empty-") else ACTIONS
            yield Entry(game, self.name, game, HORIZON, 1, num_actions)
            gridworld, version = game.rsplit("-", 1)
            for shaping in shapings:
                name = f"{gridworld}-{shaping}Shaped-{version}"
                yield Entry(name, self.name, game, HORIZON, 1, num_actions, unshaped=game, shaping=shaping)

        for game in LARGE_GRIDWORLDS:
            yield Entry(game, self.name, game, HORIZON, 1, ACTIONS)

    def arguments(self, entry: Entry) -> Mapping[str, Any]:
        return {"env_id": entry.game, "shaping": entry.shaping}

    def simulator(self, **arguments: Any) -> Simulator:
        return MiniGridSimulator(**arguments)

    def batched(self, arguments: Mapping[str, Any]) -> BatchedSimulator | None:
        from efhorizon.suites.minigrid_batched import BatchedMiniGrid, is_batched

        return BatchedMiniGrid(**arguments) if is_batched(**arguments) else None

    def behaviour_of(self, arguments: Mapping[str, Any]) -> int:
        counts_target = "Pickup" in (arguments["shaping"] or "") and arguments["env_id"].startswith(FETCHING)
        return FETCHING_BEHAVIOUR if counts_target else BEHAVIOUR

    def restore_report(self, make: Callable[[], Simulator], horizon: int, rng: np.random.Generator) -> RestoreReport:
        return RestoreReport(True)  # a state is all that a step can change

    def survey(self, entry: Entry) -> Survey | None:
        if entry.game in GRIDWORLDS:
            return Survey(GRIDWORLDS[entry.game][0])
        num_states, are_all = LARGE_GRIDWORLDS[entry.game]
        return Survey(num_states, None if are_all else HORIZON)

    def drawn(self, screen: Screen) -> Screen:
        return picture_of_screen(screen)

    def family(self, game: str) -> str:
        """What one class of MiniGrid makes, in all its sizes: DoorKey, Empty, ..."""
        found = _FAMILY.match(game)
        name = found[0] if found else game
        return "MiniGrid-Crossing" if name in _CROSSING else name

    def action_names(self, game: str) -> Sequence[str]:
        return ACTION_NAMES

    def network(self, game: str) -> NetworkKind:
        return "dense"

    def observer(self, entry: Entry) -> Callable[[Screen], Observation]:
        """The grid transposed as MiniGrid shows it, then the mission, which is the same in every state."""
        simulator = MiniGridSimulator(**self.arguments(entry))
        mission = simulator.observation()[simulator.screen().size :]
        simulator.close()
        return lambda screen: np.concatenate([screen.transpose(1, 0, 2).ravel(), mission])

    def observation(self, entry: Entry, simulator: Any) -> Observation:
        observation: Observation = simulator.observation()
        return observation


MINIGRID = MiniGrid()
