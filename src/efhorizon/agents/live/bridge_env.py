"""BRIDGE environments for Gymnasium: a simulator with observations and a horizon."""

from __future__ import annotations

import struct
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from efhorizon import catalog
from efhorizon.suites import registry
from efhorizon.suites.atari import ATARI, FULL_LENGTH_FRAMESKIP, FULL_LENGTH_HORIZON
from efhorizon.suites.entry import Entry
from efhorizon.suites.simulator import SimulatorError
from efhorizon.suites.specification import spec_of
from efhorizon.suites.suite import Observation

_HEADER = struct.Struct("<II")  # steps taken, bytes of the frame stack
_POINTS = struct.Struct("<d")

FULL_LENGTH_ID = "BRIDGE/Atari-v0"


class BridgeEnv(gymnasium.Env[Observation, np.int64]):
    """One entry of the catalogue, deterministic from reset: the seed changes nothing.

    Observations are what the entry's suite says: an image (perhaps several frames, the newest last) or a flat vector.
    Rewards are the game's own points. The episode is truncated at the horizon. `get_state` and `set_state` take out and
    put back everything, time and frame stack included.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(self, name: str | Entry, render_mode: str | None = None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise SimulatorError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.entry = name if isinstance(name, Entry) else catalog.entry(name)
        self._suite = registry.suite(self.entry.suite)
        self.render_mode = render_mode
        self._simulator: Any = spec_of(self.entry)()
        self._simulator.reset()
        self._elapsed = 0
        self._frames: Observation | None = None
        self.action_space = spaces.Discrete(self.entry.num_actions)
        shape = self._start_observation().shape
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._simulator.reset()
        self._elapsed = 0
        return self._start_observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._elapsed >= self.entry.horizon:
            raise SimulatorError("the episode is over: call reset()")
        reward, terminated = self._simulator.step(int(action))
        self._elapsed += 1
        truncated = not terminated and self._elapsed >= self.entry.horizon
        if terminated:
            self._elapsed = self.entry.horizon  # nothing can follow
        return self._next_observation(), reward, terminated, truncated, {}

    def render(self) -> Any:
        return self._simulator.picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        self._simulator.close()

    def get_state(self) -> bytes:
        """Everything that the rest of the episode depends on."""
        frames = b"" if self._frames is None else self._frames.tobytes()
        simulator_state: bytes = self._simulator.get_state()
        return _HEADER.pack(self._elapsed, len(frames)) + frames + simulator_state

    def set_state(self, state: bytes) -> None:
        """Go to a state that `get_state` returned."""
        size = 0 if self._frames is None else self._frames.nbytes
        if len(state) < _HEADER.size + size or _HEADER.unpack_from(state)[1] != size:
            raise SimulatorError(f"not a state of {self.entry.name}")
        self._simulator.set_state(state[_HEADER.size + size :])
        self._elapsed = _HEADER.unpack_from(state)[0]
        if self._frames is not None:
            stored = np.frombuffer(state, np.uint8, size, _HEADER.size)
            self._frames = stored.reshape(self._frames.shape).copy()

    def _start_observation(self) -> Observation:
        if self._suite.frame_stack == 1:
            return self._observation()
        self._frames = np.concatenate([self._observation()] * self._suite.frame_stack, axis=-1)
        return self._frames.copy()

    def _next_observation(self) -> Observation:
        if self._frames is None:
            return self._observation()
        self._frames = _with_newest(self._frames, self._observation())
        return self._frames.copy()

    def _observation(self) -> Observation:
        """What is seen now, without what was seen before."""
        return self._suite.observation(self.entry, self._simulator)


class AtariEnv(BridgeEnv):
    """`BRIDGE/Atari-v0`: an Atari game of any length, by default the full-length games of Appendix F.1.

    One life, no sticky actions, 27,000 steps of 4 frames, observations of the last four grey frames [84, 84, 4].
    Rewards are points divided by the paper's factor of the game; `reward_factor=1` gives points. An episode's points so
    far are in the info.
    """

    def __init__(
        self,
        game: str = "pong",
        frameskip: int = FULL_LENGTH_FRAMESKIP,
        horizon: int = FULL_LENGTH_HORIZON,
        reward_factor: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        if frameskip < 1:
            raise SimulatorError(f"frameskip must be at least 1, got {frameskip}")
        if horizon < 1:
            raise SimulatorError(f"the horizon must be at least 1, got {horizon}")
        if reward_factor is not None and not reward_factor > 0:
            raise SimulatorError(f"the reward factor must be positive, got {reward_factor}")
        entry = ATARI.unlisted_entry(f"{game}_{horizon}_fs{frameskip}")
        if entry is None:
            raise SimulatorError(f"no Atari game is called {game!r}; they are called as in pong or space_invaders")
        super().__init__(entry, render_mode)
        self.reward_factor = entry.reward_factor if reward_factor is None else reward_factor
        self._points = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        self._points = 0.0
        observation, info = super().reset(seed=seed, options=options)
        return observation, {**info, "points": 0.0}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        self._points += reward
        return observation, reward / self.reward_factor, terminated, truncated, {**info, "points": self._points}

    def get_state(self) -> bytes:
        return _POINTS.pack(self._points) + super().get_state()

    def set_state(self, state: bytes) -> None:
        if len(state) < _POINTS.size:
            raise SimulatorError(f"not a state of {self.entry.name}")
        super().set_state(state[_POINTS.size :])
        (self._points,) = _POINTS.unpack_from(state)


def _with_newest(frames: Observation, now: Observation) -> Observation:
    """Frames [H, W, K C] without the oldest and with a new one [H, W, C].

    All numbers move by C places, and those at the end of each pixel are written over: an eighth of the time of joining.
    """
    moved, channels = np.empty_like(frames), now.shape[-1]
    moved.reshape(-1)[:-channels] = frames.reshape(-1)[channels:]
    moved[..., -channels:] = now
    return moved


def register_environments() -> None:
    """Make every entry known to `gymnasium.make`; no suite is imported before an environment is made.

    `gymnasium.register` would compare each of a thousand names with all others, at every start.
    """
    folder = "efhorizon.agents.live.bridge_env"
    if FULL_LENGTH_ID not in gymnasium.registry:
        gymnasium.registry[FULL_LENGTH_ID] = EnvSpec(FULL_LENGTH_ID, entry_point=f"{folder}:AtariEnv")
    place = f"{folder}:BridgeEnv"
    for entry in catalog.entries():
        if entry.gym_id not in gymnasium.registry:
            gymnasium.registry[entry.gym_id] = EnvSpec(entry.gym_id, entry_point=place, kwargs={"name": entry.name})
