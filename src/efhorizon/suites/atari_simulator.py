"""Atari 2600 games on the real Arcade Learning Environment (ale-py): one life, no sticky actions, fixed seeds.

A snapshot is `ALEInterface.cloneState()` without the random generator of sticky actions, which nothing here reads: half
the bytes and half the time of the full clone, and the same states (freeway_10_fs30: 399). A digest of the screen
follows.

ALE leaves two things out of its state. Both matter, and both are handled here:

- The screen. After a restore ALE goes on showing what it drew last, so `screen()` refuses to answer between `set_state`
  and the next `step` (the start state's screen is kept, so it is known after `reset`). Nor does the state say what
  the screen shows: a frame may be drawn from memory that has changed at its end. In Kangaroo one state comes with two
  screens after nine steps, and a table that held one of them for both was not exact. Hence the digest.
- Whether the last frame was finished. A game that runs 25,000 instructions without a vertical sync leaves its frame
  unfinished, and the next `act` goes on with it. This flag is not restored, so a restored state continues as the state
  did that was left before, and ALE may write outside its frame buffer (its pull requests 732 and 739). Q*bert starts in
  such a state, the only one seen in the 57 games at the ends of steps of 30 frames. Hence an unfinished frame is never
  restored: the start state is reached by reloading the ROM, any other is refused. Nor is anything restored *over*
  an unfinished frame: the emulator finishes it first.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from efhorizon.suites._ntsc_palette import PALETTE
from efhorizon.suites.simulator import MissingExtraError, Screen, SimulatorError, Transition

RANDOM_SEED = 0
SYSTEM_RANDOM_SEED = 4753849  # fills the console's memory at power-on; ALE's default, which the published tables used
FINAL_NOOP_STEPS = 200  # Skiing counts missed gates late, so its last step plays on; Appendix E.1 calls them frames
GREY_FRAME_SIZE = 84
_NOOP = 0

# Layout of a snapshot: six integers, length of the emulator's part, this part with its own length first, the digest.
_MD5_SLICE = slice(32, 64)
_LENGTH_OFFSET = 24
_DIGEST_BYTES = 16
_BYTES_AROUND_EMULATOR_STATE = 36 + _DIGEST_BYTES
_TIA_MARK = struct.pack("<i", 3) + b"TIA"  # the video chip's part
_SCANLINES = struct.Struct("<ii")  # of the last frame that was finished, and since the current one began
_SCANLINES_OFFSET = len(_TIA_MARK) + 5 * 4
_MAX_FRAMES_TO_FINISH = 1000


class AtariSimulator:
    """One Atari game; a step plays `frameskip` frames.

    `final_noops_after`: the step with this number (counted from 1, so the horizon) goes on for `FINAL_NOOP_STEPS` steps
    of NOOP, or until the game ends; their rewards count to it. Only Skiing wants this.
    """

    def __init__(self, game: str, frameskip: int, final_noops_after: int | None = None) -> None:
        if frameskip < 1:
            raise SimulatorError(f"frameskip must be at least 1, got {frameskip}")
        if final_noops_after is not None and final_noops_after < 1:
            raise SimulatorError(f"final_noops_after must be at least 1, got {final_noops_after}")
        ale_py = _ale_py()
        self._rom = _rom_path(ale_py, game)
        self._rom_md5 = hashlib.md5(self._rom.read_bytes(), usedforsecurity=False).hexdigest()
        self._state_type = ale_py.ALEState
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ale_py.ALEInterface()
        self._ale.setInt("random_seed", RANDOM_SEED)
        self._ale.setInt("system_random_seed", SYSTEM_RANDOM_SEED)
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setInt("max_num_frames_per_episode", 0)
        self._restored_state: bytes | None = None  # what the emulator's screen does not show yet
        self._power_on()
        self._start_state: bytes = self._snapshot()
        self._start_screen: Screen = self._ale.getScreen()
        self._start_grey: NDArray[np.uint8] = self._ale.getScreenGrayscale()
        # Counted from the end: before it the emulator's random generator is stored as text of changing length.
        self._tia_offset = self._start_state.rfind(_TIA_MARK) - len(self._start_state)
        self._unfinished: bool | None = self._frame_is_unfinished(self._start_state)  # None: not known
        self._restorable_state: bytes | None = None  # restored once for each action, so checked and decoded only once
        self._ale_state: Any = None
        self._actions: list[int] = [action.value for action in self._ale.getMinimalActionSet()]
        self._frameskip = frameskip
        # Some games start at an episode frame other than 0 (Berzerk: 20).
        self._last_frame = (
            None if final_noops_after is None else self._ale.getEpisodeFrameNumber() + final_noops_after * frameskip
        )

    @property
    def num_actions(self) -> int:
        return len(self._actions)

    @property
    def rom_md5(self) -> str:
        """Which ROM was played: part of a table's provenance."""
        return self._rom_md5

    def reset(self) -> None:
        if not self._untouched:
            self.set_state(self._start_state)

    def step(self, action: int) -> Transition:
        if not 0 <= action < len(self._actions):
            raise SimulatorError(f"action must be in 0 .. {len(self._actions) - 1}, got {action}")
        reward, life_lost = self._play(self._actions[action], self._frameskip)
        terminated = life_lost or self._ale.game_over()
        if not terminated and self._ale.getEpisodeFrameNumber() == self._last_frame:
            for _ in range(FINAL_NOOP_STEPS):
                final_reward, life_lost = self._play(_NOOP, self._frameskip)
                reward += final_reward
                terminated = terminated or life_lost or self._ale.game_over()
                if self._ale.game_over():
                    break
        return Transition(float(reward), terminated)

    def get_state(self) -> bytes:
        if self._restored_state is not None:
            return self._restored_state
        state = self._snapshot()
        self._unfinished = self._frame_is_unfinished(state)
        return state

    def set_state(self, state: bytes) -> None:
        if state is not self._restorable_state:
            self._check(state)
            if self._frame_is_unfinished(state):
                if state != self._start_state:
                    raise SimulatorError(f"{self._rom.stem}: ALE cannot restore a state that ends inside a frame")
                self._power_on()
                self._unfinished = True
                return
            self._restorable_state, self._ale_state = state, self._state_type(state[:-_DIGEST_BYTES])
        self._finish_frame()
        self._ale.restoreState(self._ale_state)
        self._unfinished = False
        self._untouched = False
        self._restored_state = state

    def identity(self, state: bytes) -> bytes:
        return state

    def screen(self) -> Screen:
        """Colours by their number in the console's palette, [210, 160, 1] in most games: a third of the bytes of RGB.

        Taking these from ALE costs 2 microseconds, its RGB screen 40.
        """
        values: NDArray[np.uint8] = self._start_screen.copy() if self._shows_start() else self._ale.getScreen()
        return values[:, :, None]

    def picture(self) -> Screen:
        return picture_of_screen(self.screen())

    def observation_frame(self) -> NDArray[np.uint8]:
        """The current frame as agents see it, [84, 84]; an observation stacks the last four."""
        return grey_frame(self._start_grey if self._shows_start() else self._ale.getScreenGrayscale())

    def close(self) -> None:
        """Nothing to do: the emulator is freed with this object."""

    def _power_on(self) -> None:
        """The only way to the start state that does not depend on what was played before; takes 0.1 seconds."""
        self._ale.loadROM(self._rom)
        self._ale.reset_game()
        self._untouched = True
        self._restored_state = None

    def _snapshot(self) -> bytes:
        """The emulator's state and what it shows."""
        state: bytes = self._ale.cloneState().serialize()
        return state + xxhash.xxh3_128_digest(self._ale.getScreen())

    def _play(self, ale_action: int, num_frames: int) -> tuple[int, bool]:
        """The reward of some frames, and whether a life was lost in any of them.

        ALE's own frame skip would show the lives only at the end, after a bonus life may have hidden the loss; frame by
        frame costs 0.2 microseconds more of about 65. A finished game ignores what is left to play.
        """
        act, lives = self._ale.act, self._ale.lives
        reward, life_lost, lives_before = 0, False, lives()
        for _ in range(num_frames):
            reward += act(ale_action)
            lives_now = lives()
            if lives_now != lives_before:
                life_lost = life_lost or lives_now < lives_before
                lives_before = lives_now
        self._untouched = False
        self._restored_state = None
        self._unfinished = None
        return reward, life_lost

    def _finish_frame(self) -> None:
        """Play on until the emulator is between two frames, no matter what that does to the game."""
        for _ in range(_MAX_FRAMES_TO_FINISH):
            if self._unfinished is None:
                self.get_state()
            if not self._unfinished:
                return
            if self._ale.game_over():
                self._ale.reset_game()
            self._play(_NOOP, 1)
        raise SimulatorError(f"{self._rom.stem}: the game draws no frame, so no state can be restored")

    def _shows_start(self) -> bool:
        """True if the screen to show is the start state's, False if the emulator's."""
        if self._restored_state is None:
            return False
        if self._restored_state == self._start_state:
            return True
        raise SimulatorError("ALE does not restore the screen, so it is unknown until the next step")

    def _check(self, state: bytes) -> None:
        """Refuse a malformed state: ALE would continue with half of it, or with nothing of another game's."""
        emulator_length = int.from_bytes(state[_LENGTH_OFFSET : _LENGTH_OFFSET + 4], "little")
        if len(state) != emulator_length + _BYTES_AROUND_EMULATOR_STATE or state[_MD5_SLICE] != self._rom_md5.encode():
            raise SimulatorError(f"this is not a state of {self._rom.stem} ({len(state)} bytes)")

    def _frame_is_unfinished(self, state: bytes) -> bool:
        """Whether the last frame goes on: then its scanlines so far were not yet noted as the last frame's length."""
        offset = len(state) + self._tia_offset
        if state[offset : offset + len(_TIA_MARK)] != _TIA_MARK:
            raise SimulatorError("this state's layout is not known: another version of ale-py?")
        last_frame_scanlines, scanlines = _SCANLINES.unpack_from(state, offset + _SCANLINES_OFFSET)
        return bool(last_frame_scanlines != scanlines)


def picture_of_screen(screen: Screen) -> Screen:
    """A stored screen [H, W, 1] in RGB."""
    picture: Screen = PALETTE[screen[:, :, 0] >> 1]
    return picture


def grey_frame(screen_grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A grey screen [H, W] shrunk to [84, 84] by area, the usual Atari preprocessing."""
    try:
        import cv2
    except ImportError:
        raise MissingExtraError("atari", "cv2") from None
    frame = cv2.resize(screen_grey, (GREY_FRAME_SIZE, GREY_FRAME_SIZE), interpolation=cv2.INTER_AREA)
    return np.asarray(frame, dtype=np.uint8)


def _ale_py() -> Any:
    try:
        import ale_py
        import ale_py.roms
    except ImportError:
        raise MissingExtraError("atari", "ale_py") from None
    return ale_py


def _rom_path(ale_py: ModuleType, game: str) -> Path:
    # With ALE_ROMS_DIR set ale-py prints a line, which must not get into our output.
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            path: Path | None = ale_py.roms.get_rom_path(game)
        except OSError as error:
            raise SimulatorError(f"cannot read the ROM of {game!r}: {' '.join(str(error).split())}") from None
    if path is None:
        raise SimulatorError(f"ale-py has no game called {game!r}")
    return path
