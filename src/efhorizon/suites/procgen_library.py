"""Procgen's engine, which two packages ship: procgen-mirror (up to Python 3.12) and procgen-gym (from Python 3.13).

Their states and rewards are the same byte for byte; some pixels of CoinRun differ. Here both are one class: N
environments that are stepped together, each of which can be taken out as bytes and put back.

Legend: N environments.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from efhorizon.suites.simulator import MissingExtraError

MIRROR, PORT = "procgen-mirror", "procgen-gym"
_MODULES = {MIRROR: "procgen.env", PORT: "procgen_gym.env"}
_MAX_STATE_SIZE = 2**20  # the engine's own limit


class ProcgenEngine(Protocol):
    """N environments. Arrays are the engine's own memory: the next call overwrites them."""

    @property
    def num_actions(self) -> int: ...

    @property
    def images(self) -> NDArray[np.uint8]:
        """What was last observed, [N, 64, 64, 3]."""
        ...

    def act(self, actions: NDArray[np.int32]) -> None:
        """Play one frame with these actions [N]."""
        ...

    def observe(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Rewards of the last frame [N], and whether a new episode has begun [N]."""
        ...

    def get_state(self, which: int) -> bytes: ...

    def set_state(self, which: int, state: bytes) -> None:
        """The engine ends the process if it does not understand a state: check it before."""
        ...

    def close(self) -> None: ...


def installed_package() -> str:
    """The package that simulators run on; procgen-mirror if neither is there."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        metadata.version(MIRROR)
        return MIRROR
    with contextlib.suppress(metadata.PackageNotFoundError):
        metadata.version(PORT)
        return PORT
    return MIRROR


def game_names() -> Sequence[str]:
    """Every game of the engine."""
    names: Sequence[str] = _library().ENV_NAMES
    return names


def exploration_seeds() -> Mapping[str, int]:
    """The level of each game that has an exploration level, by the engine's seeds."""
    seeds: Mapping[str, int] = _library().EXPLORATION_LEVEL_SEEDS
    return seeds


def procgen_engine(
    game: str, *, num: int, difficulty: str, seed: int, num_threads: int, **levels: int
) -> ProcgenEngine:
    """Environments of a game; `levels` are the library's `start_level` and `num_levels`."""
    library = _library()
    options = {"env_name": game, "distribution_mode": difficulty, "rand_seed": seed, "num_threads": num_threads}
    if library.__name__ == _MODULES[MIRROR]:
        return _MirrorEngine(library.ProcgenGym3Env(num=num, **options, **levels))
    return _PortEngine(library, library.ProcgenVecEnv(num_envs=num, **options, **levels))


class _MirrorEngine:
    """Through gym3."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        environment._reuse_arrays = True  # `observe` would copy every image of every frame
        # The library's own get_state allocates and clears this megabyte in each call, which takes most of its time.
        self._buffer = environment._ffi.new(f"char[{_MAX_STATE_SIZE}]")

    @property
    def num_actions(self) -> int:
        return len(self._environment.get_combos())

    @property
    def images(self) -> NDArray[np.uint8]:
        images: NDArray[np.uint8] = self._environment._ob["rgb"]
        return images

    def act(self, actions: NDArray[np.int32]) -> None:
        self._environment.act(actions)

    def observe(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        reward, _, first = self._environment.observe()
        return reward, first

    def get_state(self, which: int) -> bytes:
        length = self._environment.call_c_func("get_state", which, self._buffer, _MAX_STATE_SIZE)
        return bytes(self._environment._ffi.buffer(self._buffer, length))

    def set_state(self, which: int, state: bytes) -> None:
        self._environment.call_c_func("set_state", which, state, len(state))

    def close(self) -> None:
        self._environment.close()


class _PortEngine:
    """Through ctypes, past the copies that the library's own `observe` makes."""

    def __init__(self, library: ModuleType, environment: Any) -> None:
        self._environment, self._native = environment, environment._clib
        self.num_actions = len(library.KEY_COMBOS)
        self._buffer = ctypes.create_string_buffer(_MAX_STATE_SIZE)

    @property
    def images(self) -> NDArray[np.uint8]:
        images: NDArray[np.uint8] = self._native.get_ob_bufs()["rgb"]
        return images

    def act(self, actions: NDArray[np.int32]) -> None:
        self._native.act(actions)

    def observe(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        self._native.call_c_func("libenv_observe")
        return self._native.get_reward_buf(), self._native.get_first_buf().view(np.bool_)

    def get_state(self, which: int) -> bytes:
        length = self._native.call_c_func("get_state", which, self._buffer, _MAX_STATE_SIZE)
        return ctypes.string_at(self._buffer, length)

    def set_state(self, which: int, state: bytes) -> None:
        self._native.call_c_func("set_state", which, state, len(state))

    def close(self) -> None:
        self._environment.close()


def _library() -> ModuleType:
    """The module that makes environments, imported without the notices that old Gym, which it may import, prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return import_module(_MODULES[installed_package()])
        except ImportError:
            raise MissingExtraError("procgen", "procgen") from None
