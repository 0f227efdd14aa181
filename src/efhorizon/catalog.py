"""Every BRIDGE environment by its published name: one registry, one list. Pure data; no suite is imported.

    Atari     {game}_{T}_fs{F}                                  T = horizon, F = frameskip
    Procgen   {game}_{easy|hard|exploration}_l{level}_{T}_fs{F}
    MiniGrid  MiniGrid-{Env}-v0, MiniGrid-{Env}-{Shaping}Shaped-v0

The tables below are the facts; the entries are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, get_args

from efhorizon.errors import EfhorizonError

Suite = Literal["atari", "procgen", "minigrid"]
SUITES: tuple[Suite, ...] = get_args(Suite)

HORIZONS = (10, 20, 30, 40, 50, 70, 100, 200)  # of the published names in Atari and Procgen
ATARI_FRAMESKIP = 30
MONTEZUMA = "montezuma_revenge"  # published with one horizon and frameskip only, where reward can just be reached
MONTEZUMA_HORIZON, MONTEZUMA_FRAMESKIP = 15, 24
MINIGRID_HORIZON = 100


@dataclass(frozen=True)
class Entry:
    """One environment of the catalogue. Fields that a suite does not have are None."""

    name: str
    suite: Suite
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
        """The id under which Gymnasium knows it; MiniGrid's names end in a version already."""
        return f"BRIDGE/{self.name}" if self.suite == "minigrid" else f"BRIDGE/{self.name}-v0"


class UnknownNameError(EfhorizonError, LookupError):
    """No entry has this name; the message is one line for the user."""

    def __init__(self, name: str) -> None:
        by_lower_case = {known.lower(): known for known in _REGISTRY}
        closest = [by_lower_case[match] for match in get_close_matches(name.lower(), by_lower_case, n=5, cutoff=0.0)]
        super().__init__(f"no environment is called {name!r}; closest: {', '.join(closest)}")


def entries(suite: Suite | None = None) -> tuple[Entry, ...]:
    """All entries, or those of one suite, in the order of the catalogue."""
    return tuple(entry for entry in _REGISTRY.values() if suite in (None, entry.suite))


def entry(name: str) -> Entry:
    """The entry with this name."""
    try:
        return _REGISTRY[name]
    except KeyError:
        raise UnknownNameError(name) from None


# game: (size of the minimal action set in ale-py 0.12.1, points per unit of reward).
# The 57 games of the ALE benchmark; the factors are the paper's, which misprints Seaquest as "Qeaquest".
ATARI_GAMES = MappingProxyType(
    {
        "alien": (18, 10.0),
        "amidar": (10, 10.0),
        "assault": (7, 21.0),
        "asterix": (9, 50.0),
        "asteroids": (14, 10.0),
        "atlantis": (4, 100.0),
        "bank_heist": (18, 10.0),
        "battle_zone": (18, 1000.0),
        "beam_rider": (9, 44.0),
        "berzerk": (18, 1.0),
        "bowling": (6, 1.0),
        "boxing": (18, 1.0),
        "breakout": (4, 1.0),
        "centipede": (18, 100.0),
        "chopper_command": (18, 100.0),
        "crazy_climber": (9, 100.0),
        "defender": (18, 1.0),
        "demon_attack": (6, 10.0),
        "double_dunk": (18, 1.0),
        "enduro": (9, 1.0),
        "fishing_derby": (18, 1.0),
        "freeway": (3, 1.0),
        "frostbite": (18, 10.0),
        "gopher": (8, 20.0),
        "gravitar": (18, 1.0),
        "hero": (18, 25.0),
        "ice_hockey": (18, 1.0),
        "jamesbond": (18, 1.0),
        "kangaroo": (18, 100.0),
        "krull": (18, 1.0),
        "kung_fu_master": (14, 1.0),
        MONTEZUMA: (18, 100.0),
        "ms_pacman": (9, 10.0),
        "name_this_game": (6, 10.0),
        "phoenix": (8, 20.0),
        "pitfall": (18, 1.0),
        "pong": (6, 1.0),
        "private_eye": (18, 100.0),
        "qbert": (6, 25.0),
        "riverraid": (18, 1.0),
        "road_runner": (18, 100.0),
        "robotank": (18, 1.0),
        "seaquest": (18, 20.0),
        "skiing": (3, 100.0),
        "solaris": (18, 1.0),
        "space_invaders": (6, 5.0),
        "star_gunner": (18, 1.0),
        "surround": (5, 1.0),
        "tennis": (18, 1.0),
        "time_pilot": (10, 100.0),
        "tutankham": (8, 1.0),
        "up_n_down": (6, 1.0),
        "venture": (18, 1.0),
        "video_pinball": (9, 100.0),
        "wizard_of_wor": (10, 100.0),
        "yars_revenge": (18, 1.0),
        "zaxxon": (18, 1.0),
    }
)

# game: (frameskip, actions, whether Procgen has an exploration level).
# Procgen's sixteenth game, caveflyer, was never given a frameskip, so no published name exists for it. The paper's
# table leaves out bossfight as well, but the published ids have it with 8.
PROCGEN_GAMES = MappingProxyType(
    {
        "bigfish": (8, 9, False),
        "bossfight": (8, 10, False),
        "chaser": (2, 9, False),
        "climber": (6, 9, True),
        "coinrun": (8, 9, True),
        "dodgeball": (8, 10, False),
        "fruitbot": (8, 9, False),
        "heist": (2, 9, True),
        "jumper": (8, 9, True),
        "leaper": (6, 9, True),
        "maze": (1, 9, True),
        "miner": (1, 9, False),
        "ninja": (8, 13, True),
        "plunder": (8, 10, False),
        "starpilot": (8, 11, False),
    }
)
PROCGEN_LEVELS = MappingProxyType({"easy": (0, 1, 2), "hard": (0,), "exploration": (0,)})

# The shapings that change some reward, by what is in the gridworld: a goal or an object to fetch, doors, other objects.
GOAL = ("Distance",)
GOAL_AND_DOORS = ("Distance", "OpenDoors")
GOAL_DOORS_AND_KEYS = ("Distance", "OpenDoors", "Pickup", "OpenDoorsPickup")
DOORS = ("OpenDoors",)
DOORS_AND_KEYS = ("OpenDoors", "Pickup", "OpenDoorsPickup")

# MiniGrid's id: shapings. Every gridworld registered by MiniGrid 3.2.0 that needs no language, draws nothing at random
# after its reset and has at most a million states within the horizon: docs/minigrid-states.md has the counts, and the
# reasons for what is missing. In the Memory gridworlds objects cannot be picked up, so there is nothing to shape.
MINIGRID_GRIDWORLDS = MappingProxyType(
    {
        "MiniGrid-BlockedUnlockPickup-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-DistShift1-v0": GOAL,
        "MiniGrid-DistShift2-v0": GOAL,
        "MiniGrid-DoorKey-5x5-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-DoorKey-6x6-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-DoorKey-8x8-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-DoorKey-16x16-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-Empty-5x5-v0": GOAL,
        "MiniGrid-Empty-6x6-v0": GOAL,
        "MiniGrid-Empty-8x8-v0": GOAL,
        "MiniGrid-Empty-16x16-v0": GOAL,
        "MiniGrid-Empty-Random-5x5-v0": GOAL,
        "MiniGrid-Empty-Random-6x6-v0": GOAL,
        "MiniGrid-FourRooms-v0": GOAL,
        "MiniGrid-KeyCorridorS3R1-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-KeyCorridorS3R2-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-KeyCorridorS3R3-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-KeyCorridorS4R3-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-LavaCrossingS9N1-v0": GOAL,
        "MiniGrid-LavaCrossingS9N2-v0": GOAL,
        "MiniGrid-LavaCrossingS9N3-v0": GOAL,
        "MiniGrid-LavaCrossingS11N5-v0": GOAL,
        "MiniGrid-LavaGapS5-v0": GOAL,
        "MiniGrid-LavaGapS6-v0": GOAL,
        "MiniGrid-LavaGapS7-v0": GOAL,
        "MiniGrid-MemoryS7-v0": (),
        "MiniGrid-MemoryS9-v0": (),
        "MiniGrid-MemoryS11-v0": (),
        "MiniGrid-MemoryS13-v0": (),
        "MiniGrid-MemoryS13Random-v0": (),
        "MiniGrid-MemoryS17Random-v0": (),
        "MiniGrid-MultiRoom-N2-S4-v0": GOAL_AND_DOORS,
        "MiniGrid-MultiRoom-N4-S5-v0": GOAL_AND_DOORS,
        "MiniGrid-MultiRoom-N4-S5-v1": GOAL_AND_DOORS,
        "MiniGrid-MultiRoom-N6-v0": GOAL_AND_DOORS,
        "MiniGrid-ObstructedMaze-1Dl-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-ObstructedMaze-1Dlh-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-ObstructedMaze-1Dlhb-v0": GOAL_DOORS_AND_KEYS,
        "MiniGrid-RedBlueDoors-6x6-v0": DOORS,
        "MiniGrid-RedBlueDoors-8x8-v0": DOORS,
        "MiniGrid-SimpleCrossingS9N1-v0": GOAL,
        "MiniGrid-SimpleCrossingS9N2-v0": GOAL,
        "MiniGrid-SimpleCrossingS9N3-v0": GOAL,
        "MiniGrid-SimpleCrossingS11N5-v0": GOAL,
        "MiniGrid-Unlock-v0": DOORS_AND_KEYS,
        "MiniGrid-UnlockPickup-v0": GOAL_DOORS_AND_KEYS,
    }
)


def _atari_entries() -> Iterator[Entry]:
    for game, (num_actions, reward_factor) in ATARI_GAMES.items():
        horizons = (MONTEZUMA_HORIZON,) if game == MONTEZUMA else HORIZONS
        frameskip = MONTEZUMA_FRAMESKIP if game == MONTEZUMA else ATARI_FRAMESKIP
        for horizon in horizons:
            name = f"{game}_{horizon}_fs{frameskip}"
            yield Entry(name, "atari", game, horizon, frameskip, num_actions, reward_factor=reward_factor)


def _procgen_entries() -> Iterator[Entry]:
    for game, (frameskip, num_actions, can_explore) in PROCGEN_GAMES.items():
        for difficulty, levels in PROCGEN_LEVELS.items():
            if difficulty == "exploration" and not can_explore:
                continue
            for level in levels:
                for horizon in HORIZONS:
                    name = f"{game}_{difficulty}_l{level}_{horizon}_fs{frameskip}"
                    yield Entry(
                        name, "procgen", game, horizon, frameskip, num_actions, difficulty=difficulty, level=level
                    )


def _minigrid_entries() -> Iterator[Entry]:
    for game, shapings in MINIGRID_GRIDWORLDS.items():
        num_actions = 3 if game.startswith("MiniGrid-Empty-") else 6
        yield Entry(game, "minigrid", game, MINIGRID_HORIZON, 1, num_actions)
        gridworld, version = game.rsplit("-", 1)
        for shaping in shapings:
            name = f"{gridworld}-{shaping}Shaped-{version}"
            yield Entry(name, "minigrid", game, MINIGRID_HORIZON, 1, num_actions, unshaped=game, shaping=shaping)


_REGISTRY: dict[str, Entry] = {
    item.name: item for items in (_atari_entries(), _procgen_entries(), _minigrid_entries()) for item in items
}
