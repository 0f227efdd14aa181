"""What the actions of a table are called, for people."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

# MiniGrid's and Procgen's own orders. A Procgen action is the keys that it holds down; games have the first 9 to 15.
MINIGRID_ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle")
PROCGEN_ACTIONS = (
    *("left down", "left", "left up", "down", "nothing", "up", "right down", "right", "right up"),
    *("D", "A", "W", "S", "Q", "E"),
)


def action_names(metadata: Mapping[str, Any], num_actions: int) -> tuple[str, ...]:
    """Names of the actions of a table with this metadata; their numbers where nobody named them."""
    suite = metadata.get("suite")
    known: Sequence[str] = ()
    if suite == "minigrid":
        known = MINIGRID_ACTIONS
    elif suite == "procgen":
        known = PROCGEN_ACTIONS
    elif suite == "atari":
        known = _atari_actions(str(metadata.get("game")))
    return tuple(known[action] if action < len(known) else str(action) for action in range(num_actions))


def _atari_actions(game: str) -> tuple[str, ...]:
    """The game's minimal action set by ALE's names, such as NOOP or UPFIRE; none where ALE or the game is missing."""
    try:
        import ale_py
        import ale_py.roms
    except ImportError:
        return ()
    with (
        contextlib.redirect_stdout(sys.stderr),
        warnings.catch_warnings(),
    ):  # ale-py prints a line with ALE_ROMS_DIR set
        warnings.simplefilter("ignore")
        rom = ale_py.roms.get_rom_path(game)
    if rom is None:
        return ()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ale_py.ALEInterface()
    emulator.loadROM(rom)
    return tuple(action.name for action in emulator.getMinimalActionSet())
