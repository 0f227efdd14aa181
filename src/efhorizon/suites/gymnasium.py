"""Any deterministic Gymnasium environment as a simulator.

A snapshot is the sequence of actions from reset, plus the identity of the state it leads to: a canonical dump of the
environment's attributes without its random generators. Nothing is ever unpickled: a state is reached by replaying its
actions or, where that is slower, by deep-copying an environment that stands in it already. Environments with
`get_state() -> bytes` and `set_state(bytes)` are snapshotted by those instead.
"""

from __future__ import annotations

import copy
import io
import pickle
import random
import struct
import time
import types
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from efhorizon.suites.environment_names import action_names_of
from efhorizon.suites.observation_layout import METADATA, layout_as_json, layout_of_space, screen_of, stored_layout
from efhorizon.suites.observation_reader import is_image
from efhorizon.suites.rendering import RENDER_MODE, Drawing, Painter
from efhorizon.suites.replay import RestoreReport
from efhorizon.suites.simulator import Screen, Simulator, SimulatorError, StochasticError, Transition
from efhorizon.suites.suite import ACTION_NAMES, Mark, NetworkKind, Suite

BEHAVIOUR = 2  # raise it when the same inputs give another result: see io/behaviour.py

SEED = 0  # environments with a random start state are taken at this seed
_PROBE_SEEDS = (1, 2, 3, 4)
_PROBE_STEPS = 50


class Gymnasium(Suite):
    """Anything registered with Gymnasium; these environments are not in the catalogue."""

    name = "gymnasium"
    title = "Gymnasium"
    packages = ("gymnasium",)
    behaviour = BEHAVIOUR
    mark = Mark("M0-4.8L4.8 0L0 4.8L-4.8 0Z", "gymnasium")
    screen_format = "observation"
    has_names = False
    draws_when_built = True

    def simulator(self, **arguments: Any) -> Simulator:
        return gymnasium_simulator(**arguments)

    def told_by(self, simulator: Any) -> Mapping[str, Any]:
        """The layout of its observations, and the names of its actions where it tells them."""
        names = simulator.action_names()
        return {METADATA: layout_as_json(simulator.layout)} | ({} if names is None else {ACTION_NAMES: list(names)})

    def network_of(self, metadata: Mapping[str, Any]) -> NetworkKind:
        layout = stored_layout(metadata)
        return "image" if layout is not None and is_image(layout) else "dense"

    def trusted_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those of a file, which cannot name a module to import: ids with a colon must be given by the user."""
        env_id, given = arguments.get("env_id"), arguments.get("arguments")
        if not isinstance(env_id, str) or not isinstance(given, Mapping | None) or len(arguments) > 2:
            raise SimulatorError("the file does not say how its environment is made, so it was not verified")
        if ":" in env_id:
            raise SimulatorError(f"the file names {env_id!r}, which would import a module, so it was not verified")
        return arguments

    def restore_report(self, make: Callable[[], Simulator], horizon: int, rng: np.random.Generator) -> RestoreReport:
        """States are replayed or copied: what can go wrong is an environment that is not deterministic."""
        simulator = make()
        assert isinstance(simulator, GymnasiumSimulator)
        found = simulator.stochastic_pair(_PROBE_STEPS, rng)
        simulator.close()
        if found:
            raise StochasticError(found)
        return RestoreReport(True)


GYMNASIUM = Gymnasium()


class GymnasiumSimulator:
    """A Gymnasium environment with a discrete action space, deterministic after its reset."""

    def __init__(self, env_id: str, arguments: Mapping[str, Any] | None = None) -> None:
        self._env = _made(env_id, arguments or {})
        space = self._env.action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise SimulatorError(f"{env_id}: the action space must be Discrete, got {space}")
        self._first_action, self._num_actions = int(space.start), int(space.n)
        self.layout = layout_of_space(self._env.observation_space)
        self._painter = Painter(
            self._env.metadata.get("render_modes"),
            lambda mode: type(self)(env_id, {**(arguments or {}), RENDER_MODE: mode}),
        )
        self._path: list[int] = []
        self._observation: Any = None
        self._pristine: tuple[bytes, Any, Any] | None = (
            None  # (path, environment, observation) of the last restored state
        )
        self._step_seconds, self._copy_seconds = 0.0, float("inf")
        self.reset()
        self._measure_copy()

    @property
    def num_actions(self) -> int:
        return self._num_actions

    def reset(self) -> None:
        self._observation, _ = self._env.reset(seed=SEED)
        self._path = []

    def step(self, action: int) -> Transition:
        started = time.perf_counter()
        self._observation, reward, terminated, truncated, _ = self._env.step(self._first_action + action)
        self._path.append(action)
        self._step_seconds = 0.9 * self._step_seconds + 0.1 * (time.perf_counter() - started)
        return Transition(float(reward), bool(terminated or truncated))

    def get_state(self) -> bytes:
        path = np.array(self._path, "<u2").tobytes()
        return struct.pack("<I", len(self._path)) + path + identity_of(self._env)

    def set_state(self, state: bytes) -> None:
        path = _path_of(state)
        if self._pristine is not None and self._pristine[0] == path:
            self._env = copy.deepcopy(self._pristine[1])
            self._observation = self._pristine[2]
            self._path = np.frombuffer(path, "<u2").tolist()
            return
        self.reset()
        for action in np.frombuffer(path, "<u2").tolist():
            self.step(action)
        if self._copy_seconds < self._step_seconds * (len(path) // 2 + 1):
            self._pristine = (path, copy.deepcopy(self._env), self._observation)

    def identity(self, state: bytes) -> bytes:
        return state[4 + len(_path_of(state)) :]

    def screen(self) -> Screen:
        """The observation: an image as it is, anything else as bytes in a row [1, n, 1]."""
        return screen_of(self.layout, self._observation)

    def picture(self) -> Screen:
        drawing = self.drawing()
        if isinstance(drawing, str):
            raise SimulatorError("the environment draws text, not pictures")
        return drawing

    def drawing(self) -> Drawing:
        """What the environment renders: an image, or else a text."""
        return self._painter.drawing(self.get_state())

    def action_names(self) -> tuple[str, ...] | None:
        return action_names_of(self._env, self._num_actions, self._first_action)

    @property
    def environment(self) -> gymnasium.Env[Any, Any]:
        return self._env

    def close(self) -> None:
        self._painter.close()
        self._env.close()

    def stochastic_pair(self, num_steps: int, rng: np.random.Generator) -> str | None:
        """One line that names a state and action with two different results, or None where a random walk met none.

        Before each repetition every random generator in reach gets a new seed, so that any dependence on it shows.
        """
        self.reset()
        for _ in range(num_steps):
            state, observed = self.get_state(), self._observation
            action = int(rng.integers(self._num_actions))
            outcomes = []
            for seed in _PROBE_SEEDS:
                self.set_state(state)
                self._reseed(seed)
                reward, ended = self.step(action)
                outcomes.append((_canonical(self._observation), reward, ended, self._observation))
                if outcomes[-1][:3] != outcomes[0][:3]:
                    path = np.frombuffer(_path_of(state), "<u2").tolist()
                    return (
                        f"stochastic: after actions {path} (observation {_short(observed)}), action {action} gave "
                        f"{_result(outcomes[0])} and then {_result(outcomes[-1])}"
                    )
            if outcomes[-1][2]:
                self.reset()
        return None

    def _reseed(self, seed: int) -> None:
        self._env.unwrapped.np_random = np.random.Generator(np.random.PCG64(seed))
        random.seed(seed)
        np.random.seed(seed)

    def _measure_copy(self) -> None:
        if self._env.render_mode is not None:
            return  # what has drawn can perhaps not be copied
        started = time.perf_counter()
        try:
            copy.deepcopy(self._env)
        except Exception:  # an environment that cannot be copied is replayed
            return
        self._copy_seconds = time.perf_counter() - started


class SnapshotSimulator(GymnasiumSimulator):
    """An environment with its own `get_state` and `set_state`."""

    def get_state(self) -> bytes:
        unwrapped: Any = self._env.unwrapped
        return bytes(unwrapped.get_state())

    def set_state(self, state: bytes) -> None:
        if not self._path:
            self.reset()
        unwrapped: Any = self._env.unwrapped
        unwrapped.set_state(state)

    def identity(self, state: bytes) -> bytes:
        return state


def gymnasium_simulator(env_id: str, arguments: Mapping[str, Any] | None = None) -> GymnasiumSimulator:
    """The right simulator for an environment id: by its own snapshots, or by replaying and copying."""
    env = _made(env_id, arguments or {})
    has_snapshots = all(callable(getattr(env.unwrapped, name, None)) for name in ("get_state", "set_state"))
    env.close()
    return (SnapshotSimulator if has_snapshots else GymnasiumSimulator)(env_id, arguments)


def time_limit(env_id: str) -> int | None:
    """The episode length with which an environment is registered."""
    try:
        return gymnasium.spec(env_id).max_episode_steps
    except Exception as error:
        raise SimulatorError(f"{env_id}: {_first_line(error)}") from None


def identity_of(env: Any) -> bytes:
    """Attributes of an environment and its wrappers, as bytes: equal for equal states."""
    layers = []
    while True:
        layers.append({name: value for name, value in vars(env).items() if name not in _NOT_STATE})
        if env is env.unwrapped:
            return _canonical(layers)
        env = env.env


# what Gymnasium keeps besides the state: spaces, registration, wrapped environments, counters of its own checks
_NOT_STATE = {
    "env",
    "spec",
    "_saved_kwargs",
    "action_space",
    "observation_space",
    "_action_space",
    "_observation_space",
    "_metadata",
    "metadata",
    "_np_random",
    "_np_random_seed",
    "render_mode",
    "_cached_spec",
}


class _CanonicalPickler(pickle.Pickler):
    """Dumps without references (so that equal values give equal bytes) and without random generators."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.fast = True  # no memo: whether two attributes share an object does not matter

    def reducer_override(self, value: Any) -> Any:
        if value is str:
            return NotImplemented
        if isinstance(value, np.random.Generator | np.random.RandomState | random.Random):
            return str, ("random generator",)
        if isinstance(
            value, types.FunctionType | types.BuiltinFunctionType | types.MethodType | types.ModuleType | type
        ):
            return str, (getattr(value, "__qualname__", getattr(value, "__name__", "")),)
        if isinstance(value, np.ndarray):
            return str, (f"{value.dtype.str}{value.shape}{value.tobytes().hex()}",)
        return NotImplemented


def _canonical(value: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        _CanonicalPickler(buffer).dump(value)
    except Exception as error:
        raise SimulatorError(f"the state cannot be read as bytes ({_first_line(error)})") from None
    return buffer.getvalue()


def _made(env_id: str, arguments: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        # without its own time limit: the horizon of the table is the only one
        return gymnasium.make(env_id, max_episode_steps=-1, disable_env_checker=True, **arguments)
    except Exception as error:  # an unknown id, a missing package, wrong arguments: all are one line to the user
        raise SimulatorError(f"{env_id}: {_first_line(error)}") from None


def _path_of(state: bytes) -> bytes:
    if len(state) < 4 or len(state) < 4 + 2 * struct.unpack_from("<I", state)[0]:
        raise SimulatorError("not a state of this environment")
    return state[4 : 4 + 2 * struct.unpack_from("<I", state)[0]]


def _result(outcome: tuple[bytes, float, bool, Any]) -> str:
    _, reward, ended, observation = outcome
    return f"observation {_short(observation)}, reward {reward:g}" + (", end" if ended else "")


def _short(observation: Any) -> str:
    text = " ".join(str(observation).split())
    return text if len(text) <= 40 else text[:37] + "..."


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
