"""Atari 2600 games: what they are called, how they are seen and drawn, what agents get to see.

    {game}_{T}_fs{F}   T = horizon, F = frameskip

`atari_simulator` runs them.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from efhorizon.suites._ntsc_palette import PALETTE
from efhorizon.suites.atari_simulator import AtariSimulator, grey_frame, picture_of_screen
from efhorizon.suites.entry import PUBLISHED_HORIZONS, Entry
from efhorizon.suites.simulator import Screen, Simulator
from efhorizon.suites.suite import Costs, Mark, Observation, Suite, Survey

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

FRAMESKIP = 30
MONTEZUMA = "montezuma_revenge"  # published with one horizon and frameskip only, where reward can just be reached
MONTEZUMA_HORIZON, MONTEZUMA_FRAMESKIP = 15, 24
SKIING = "skiing"
SKIING_BEHAVIOUR = 2  # with 200 NOOP steps after its last step; they were frames once
FULL_LENGTH_HORIZON, FULL_LENGTH_FRAMESKIP = 27_000, 4  # Appendix F.1: 30 minutes of a game
FULL_LENGTH_GAMES = ("beam_rider", "breakout", "enduro", "pong", "qbert", "seaquest", "space_invaders")  # Figure 4

_GREY_WEIGHTS = (0.2989, 0.5870, 0.1140)  # of red, green and blue in ALE's grey palette


class AtariGame(NamedTuple):
    """What is known of a game."""

    num_actions: int  # size of the minimal action set in ale-py 0.12.1
    reward_factor: float  # points per unit of reward
    survey: Survey | None = None  # docs/survey.md: with the frameskip of the published names


# The 57 games of the ALE benchmark; the factors are the paper's, which misprints Seaquest as "Qeaquest".
GAMES = MappingProxyType(
    {
        "alien": AtariGame(18, 10.0, Survey(1_001, 5)),
        "amidar": AtariGame(10, 10.0, Survey(1_490, 13)),
        "assault": AtariGame(7, 21.0, Survey(7_084, 6)),
        "asterix": AtariGame(9, 50.0, Survey(5_809, 6)),
        "asteroids": AtariGame(14, 10.0, Survey(1_261, 4)),
        "atlantis": AtariGame(4, 100.0, Survey(8_080, 26)),
        "bank_heist": AtariGame(18, 10.0, Survey(2_524, 4)),
        "battle_zone": AtariGame(18, 1000.0),
        "beam_rider": AtariGame(9, 44.0, Survey(3_624, 14)),
        "berzerk": AtariGame(18, 1.0),
        "bowling": AtariGame(6, 1.0, Survey(9_786, 13)),
        "boxing": AtariGame(18, 1.0, Survey(1_812, 4)),
        "breakout": AtariGame(4, 1.0, Survey(10_217, 39)),
        "centipede": AtariGame(18, 100.0, Survey(967, 4)),
        "chopper_command": AtariGame(18, 100.0),
        "crazy_climber": AtariGame(9, 100.0, Survey(2_711, 18)),
        "defender": AtariGame(18, 1.0),
        "demon_attack": AtariGame(6, 10.0, Survey(3_382, 7)),
        "double_dunk": AtariGame(18, 1.0),
        "enduro": AtariGame(9, 1.0),
        "fishing_derby": AtariGame(18, 1.0),
        "freeway": AtariGame(3, 1.0, Survey(3_980, 17)),
        "frostbite": AtariGame(18, 10.0, Survey(857, 6)),
        "gopher": AtariGame(8, 20.0),
        "gravitar": AtariGame(18, 1.0),
        "hero": AtariGame(18, 25.0, Survey(176, 6)),
        "ice_hockey": AtariGame(18, 1.0, Survey(865, 6)),
        "jamesbond": AtariGame(18, 1.0),
        "kangaroo": AtariGame(18, 100.0, Survey(673, 9)),
        "krull": AtariGame(18, 1.0),
        "kung_fu_master": AtariGame(14, 1.0),
        MONTEZUMA: AtariGame(18, 100.0, Survey(415, 4)),
        "ms_pacman": AtariGame(9, 10.0, Survey(2_950, 15)),
        "name_this_game": AtariGame(6, 10.0),
        "phoenix": AtariGame(8, 20.0),
        "pitfall": AtariGame(18, 1.0),
        "pong": AtariGame(6, 1.0, Survey(7_198, 33)),
        "private_eye": AtariGame(18, 100.0, Survey(613, 4)),
        "qbert": AtariGame(6, 25.0, Survey(669, 11)),
        "riverraid": AtariGame(18, 1.0),
        "road_runner": AtariGame(18, 100.0),
        "robotank": AtariGame(18, 1.0),
        "seaquest": AtariGame(18, 20.0, Survey(189, 7)),
        "skiing": AtariGame(3, 100.0),
        "solaris": AtariGame(18, 1.0),
        "space_invaders": AtariGame(6, 5.0, Survey(1_226, 10)),
        "star_gunner": AtariGame(18, 1.0),
        "surround": AtariGame(5, 1.0),
        "tennis": AtariGame(18, 1.0, Survey(136, 3)),
        "time_pilot": AtariGame(10, 100.0),
        "tutankham": AtariGame(8, 1.0),
        "up_n_down": AtariGame(6, 1.0),
        "venture": AtariGame(18, 1.0),
        "video_pinball": AtariGame(9, 100.0),
        "wizard_of_wor": AtariGame(10, 100.0),
        "yars_revenge": AtariGame(18, 1.0),
        "zaxxon": AtariGame(18, 1.0),
    }
)


class Atari(Suite):
    """The games of the ALE benchmark, one life each."""

    name = "atari"
    title = "Atari"
    packages = ("ale-py",)
    behaviour = BEHAVIOUR
    costs = Costs(pairs_a_second=300.0, build_seconds=3.0, search_bytes_a_state=(800, 5_500), has_clock=True)
    mark = Mark("M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0Z", "atari")
    screen_format = "palette"
    frame_stack = 4

    def entries(self) -> Iterator[Entry]:
        for game in GAMES:
            horizons = (MONTEZUMA_HORIZON,) if game == MONTEZUMA else PUBLISHED_HORIZONS
            for horizon in horizons:
                yield self._entry(game, horizon, MONTEZUMA_FRAMESKIP if game == MONTEZUMA else FRAMESKIP)

    def unlisted_entry(self, name: str) -> Entry | None:
        """`{game}_{T}_fs{F}` with any T and F; `pong_full`, or only `pong`, means the full-length game."""
        found = re.fullmatch(r"([a-z_]+?)(?:_full|_(\d+)_fs(\d+))?", name)
        if found is None or found[1] not in GAMES:
            return None
        return self._entry(found[1], int(found[2] or FULL_LENGTH_HORIZON), int(found[3] or FULL_LENGTH_FRAMESKIP))

    def arguments(self, entry: Entry) -> Mapping[str, Any]:
        # Skiing alone plays on after its last step, so its states depend on the horizon
        final = {"final_noops_after": entry.horizon} if entry.game == SKIING else {}
        return {"game": entry.game, "frameskip": entry.frameskip, **final}

    def simulator(self, **arguments: Any) -> Simulator:
        return AtariSimulator(**arguments)

    def behaviour_of(self, arguments: Mapping[str, Any]) -> int:
        return SKIING_BEHAVIOUR if arguments["game"] == SKIING else BEHAVIOUR

    def survey(self, entry: Entry) -> Survey | None:
        return GAMES[entry.game].survey

    def drawn(self, screen: Screen) -> Screen:
        return picture_of_screen(screen)

    def action_names(self, game: str) -> Sequence[str]:
        """ALE's names of the minimal action set, such as NOOP or UPFIRE; none where ALE or the game is missing."""
        try:
            import ale_py
            import ale_py.roms
        except ImportError:
            return ()
        # ale-py prints a line with ALE_ROMS_DIR set
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rom = ale_py.roms.get_rom_path(game)
        if rom is None:
            return ()
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        emulator = ale_py.ALEInterface()
        emulator.loadROM(rom)
        return tuple(action.name for action in emulator.getMinimalActionSet())

    def observer(self, entry: Entry) -> Callable[[Screen], Observation]:
        return observed_frame

    def observation(self, entry: Entry, simulator: Any) -> Observation:
        frame: Observation = simulator.observation_frame()
        return frame[:, :, None]

    def _entry(self, game: str, horizon: int, frameskip: int) -> Entry:
        name = f"{game}_{horizon}_fs{frameskip}"
        known = GAMES[game]
        return Entry(name, self.name, game, horizon, frameskip, known.num_actions, reward_factor=known.reward_factor)


def observed_frame(screen: Screen) -> Observation:
    """The frame [84, 84, 1] that agents see of a stored screen: palette indices [H, W, 1], or colours [H, W, 3]."""
    if screen.shape[2] == len(_GREY_WEIGHTS):  # a published file
        return grey_frame(_grey(screen))[:, :, None]
    return grey_frame(np.ascontiguousarray(_grey(PALETTE)[screen[:, :, 0] >> 1]))[:, :, None]


def _grey(colours: Screen) -> Screen:
    """ALE's grey of colours [..., 3]."""
    grey: Screen = np.rint(colours.astype(np.float64) @ np.array(_GREY_WEIGHTS)).astype(np.uint8)
    return grey


ATARI = Atari()
