"""Levels of Procgen's games, each one an environment; the options are the library's own defaults.

    {game}_{easy|hard|exploration}_l{level}_{T}_fs{F}   T = horizon, F = frameskip

A snapshot is Procgen's own, with the step counter, the last action and the last reward in it, as in the published
tables (maze_easy_l0_30_fs1: 2227 states). Restoring it is exact in all 16 games, and draws the screen again.

At the end of an episode the library starts the next one in the same step: the reward is the finished episode's, while
the state and the screen are the new one's and are not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from efhorizon.suites.entry import PUBLISHED_HORIZONS, Entry
from efhorizon.suites.procgen_library import exploration_seeds, game_names, installed_package, procgen_engine
from efhorizon.suites.simulator import Screen, Simulator, SimulatorError, Transition
from efhorizon.suites.suite import Costs, Mark, Suite, Survey

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

Difficulty = Literal["easy", "hard", "exploration"]

RAND_SEED = 0
_DIFFICULTIES = ("easy", "hard", "exploration")
_MAX_LEVEL = 2**31 - 2  # the library's seeds are int32, and the range of levels is given by its end
# Layout of a snapshot: version, length of the game's name, name, 17 integers of options and the level's seed, the rest.
_NAME_OFFSET = 8
_NUM_OPTIONS = 17
_END_MARK_SIZE = 4


class ProcgenGame(NamedTuple):
    """What is known of a game."""

    frameskip: int
    num_actions: int
    can_explore: bool  # whether Procgen has an exploration level
    survey: Survey  # docs/survey.md: of its easy level 0


# Procgen's sixteenth game, caveflyer, was never given a frameskip, so no published name exists for it. The paper's
# table leaves out bossfight as well, but the published ids have it with 8.
GAMES = MappingProxyType(
    {
        "bigfish": ProcgenGame(8, 9, False, Survey(3_839, 5)),
        "bossfight": ProcgenGame(8, 10, False, Survey(1_377, 5)),
        "chaser": ProcgenGame(2, 9, False, Survey(7_663, 8)),
        "climber": ProcgenGame(6, 9, True, Survey(4_831, 6)),
        "coinrun": ProcgenGame(8, 9, True, Survey(2_760, 6)),
        "dodgeball": ProcgenGame(8, 10, False, Survey(3_012, 5)),
        "fruitbot": ProcgenGame(8, 9, False, Survey(6_403, 13)),
        "heist": ProcgenGame(2, 9, True, Survey(8_958, 7)),
        "jumper": ProcgenGame(8, 9, True, Survey(4_322, 8)),
        "leaper": ProcgenGame(6, 9, True, Survey(7_654, 10)),
        "maze": ProcgenGame(1, 9, True, Survey(16_677, 200)),
        "miner": ProcgenGame(1, 9, False, Survey(9_982, 7)),
        "ninja": ProcgenGame(8, 13, True, Survey(2_666, 5)),
        "plunder": ProcgenGame(8, 10, False, Survey(3_455, 6)),
        "starpilot": ProcgenGame(8, 11, False, Survey(4_332, 5)),
    }
)
LEVELS = MappingProxyType({"easy": (0, 1, 2), "hard": (0,), "exploration": (0,)})
# Procgen's own order. An action is the keys that it holds down; games have the first 9 to 15.
ACTION_NAMES = (
    *("left down", "left", "left up", "down", "nothing", "up", "right down", "right", "right up"),
    *("D", "A", "W", "S", "Q", "E"),
)


class Procgen(Suite):
    """Single levels of Procgen's games."""

    name = "procgen"
    title = "Procgen"
    packages = (installed_package(),)
    behaviour = BEHAVIOUR
    costs = Costs(pairs_a_second=800.0, build_seconds=4.0, search_bytes_a_state=(220, 550), has_clock=True)
    mark = Mark("M-3.3-3.3h6.6v6.6h-6.6Z", "procgen")

    def entries(self) -> Iterator[Entry]:
        for game, known in GAMES.items():
            for difficulty, levels in LEVELS.items():
                if difficulty == "exploration" and not known.can_explore:
                    continue
                for level in levels:
                    for horizon in PUBLISHED_HORIZONS:
                        yield Entry(
                            f"{game}_{difficulty}_l{level}_{horizon}_fs{known.frameskip}",
                            self.name,
                            game,
                            horizon,
                            known.frameskip,
                            known.num_actions,
                            difficulty=difficulty,
                            level=level,
                        )

    def arguments(self, entry: Entry) -> Mapping[str, Any]:
        return {
            "game": entry.game,
            "difficulty": entry.difficulty,
            "level": entry.level,
            "frameskip": entry.frameskip,
            "num_actions": entry.num_actions,
        }

    def simulator(self, **arguments: Any) -> Simulator:
        return ProcgenSimulator(**arguments)

    def survey(self, entry: Entry) -> Survey | None:
        return GAMES[entry.game].survey if (entry.difficulty, entry.level) == ("easy", 0) else None

    def action_names(self, game: str) -> Sequence[str]:
        return ACTION_NAMES


PROCGEN = Procgen()


class ProcgenSimulator:
    """One level; a step repeats its action `frameskip` times, or until the episode ends.

    Actions are the first `num_actions` of the library's 15: nine moves, then the games' special keys. The exploration
    levels are fixed by the library, one per game: their `level` is 0.
    """

    def __init__(self, game: str, difficulty: Difficulty, level: int, frameskip: int, num_actions: int) -> None:
        if frameskip < 1:
            raise SimulatorError(f"frameskip must be at least 1, got {frameskip}")
        options = _level_options(game, difficulty, level)
        # No threads: a single environment only waits for them, and a process without threads can be forked. The first
        # environment of a process loads every game's images, which takes 1.5 seconds; any other, a millisecond.
        self._engine = procgen_engine(game, num=1, difficulty=difficulty, seed=RAND_SEED, num_threads=0, **options)
        num_known = self._engine.num_actions
        if not 1 <= num_actions <= num_known:
            raise SimulatorError(f"num_actions must be in 1 .. {num_known}, got {num_actions}")
        self._num_actions = num_actions
        self._frameskip = frameskip
        self._action = np.zeros(1, dtype=np.int32)  # [1], one environment
        self._start_state = self.get_state()
        self._header = self._start_state[: _NAME_OFFSET + len(game) + 4 * _NUM_OPTIONS]
        self._end_mark = self._start_state[-_END_MARK_SIZE:]

    @property
    def num_actions(self) -> int:
        return self._num_actions

    def reset(self) -> None:
        self.set_state(self._start_state)

    def step(self, action: int) -> Transition:
        if not 0 <= action < self._num_actions:
            raise SimulatorError(f"action must be in 0 .. {self._num_actions - 1}, got {action}")
        self._action[0] = action
        total_reward = np.float32(0)  # the library's type, and the published tables'
        for _ in range(self._frameskip):
            self._engine.act(self._action)
            reward, first = self._engine.observe()
            total_reward += reward[0]
            if first[0]:
                return Transition(float(total_reward), True)
        return Transition(float(total_reward), False)

    def get_state(self) -> bytes:
        return self._engine.get_state(0)

    def set_state(self, state: bytes) -> None:
        # The library ends the process if it does not understand a state.
        if not (state.startswith(self._header) and state.endswith(self._end_mark)):
            raise SimulatorError(f"this is not a state of this Procgen level ({len(state)} bytes)")
        self._engine.set_state(0, state)

    def identity(self, state: bytes) -> bytes:
        return state

    def screen(self) -> Screen:
        """RGB, [64, 64, 3]: the observation of agents."""
        self._engine.observe()
        screen: Screen = self._engine.images[0].copy()
        return screen

    def picture(self) -> Screen:
        return self.screen()

    def close(self) -> None:
        self._engine.close()


def _level_options(game: str, difficulty: str, level: int) -> dict[str, int]:
    if game not in game_names():
        raise SimulatorError(f"Procgen has no game called {game!r}; its games: {' '.join(game_names())}")
    if difficulty not in _DIFFICULTIES:
        raise SimulatorError(f"difficulty must be one of {' '.join(_DIFFICULTIES)}, got {difficulty!r}")
    if difficulty == "exploration":
        if game not in exploration_seeds():
            raise SimulatorError(f"{game} has no exploration level")
        if level != 0:
            raise SimulatorError(f"{game} has one exploration level, number 0, got {level}")
        return {}
    if not 0 <= level <= _MAX_LEVEL:
        raise SimulatorError(f"level must be in 0 .. {_MAX_LEVEL}, got {level}")
    return {"num_levels": 1, "start_level": level}
