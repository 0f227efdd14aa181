"""Any deterministic Gymnasium environment as a simulator.

What identifies a state, the first of these that an environment allows (see docs/own-environment.md):

1. by its own `get_state()` and `set_state(state)`, where they restore everything;
2. by its attributes and those of its wrappers (`state_identity`);
3. by the actions that led to them: then no two ways lead to the same state.

How they are reached again: by `set_state` in the first case; else by replaying the actions from reset, or from a deep
copy of an environment that stands in the state already, where that is exact and faster. Nothing is ever unpickled.
"""

from __future__ import annotations

import math
import random
import struct
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.suites.environment_copies import Copies, NoCopies, exact_copies
from efhorizon.suites.environment_names import action_names_of
from efhorizon.suites.environment_source import EnvironmentSource, close_quietly, first_line
from efhorizon.suites.observation_layout import layout_of_space, screen_of
from efhorizon.suites.plain_values import NotPlainError, as_bytes, from_bytes
from efhorizon.suites.rendering import Drawing, Painter
from efhorizon.suites.simulator import Screen, SimulatorError, Transition
from efhorizon.suites.state_identity import (
    TRANSPARENT,
    Generators,
    Identities,
    UnreadableStateError,
    has_snapshots,
    layers,
    value_bytes,
)

SEED = 0  # environments with a random start state are taken at this seed, unless another is given
_FIRST_STEPS = 6  # that are played twice to see which attributes are not decided by reset and actions


class GymnasiumSimulator:
    """A Gymnasium environment with a discrete action space, deterministic after its reset."""

    def __init__(
        self,
        env_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        wrappers: Sequence[str] = (),
        seed: int = SEED,
        fixed_noise: bool = False,
        thing: Any = None,
        render_mode: str | None = None,
    ) -> None:
        """`arguments` as JSON; `thing` is an environment, or what makes one, that has no name to import it by."""
        self._source = EnvironmentSource(env_id, dict(arguments or {}), tuple(wrappers), thing)
        self.seed, self.fixed_noise = seed, fixed_noise
        self._env = self._source.made(render_mode)
        space = self._env.action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise SimulatorError(
                f"{env_id}: the action space must be Discrete, got {space}; a wrapper can choose some of its actions"
            )
        self._first_action, self._num_actions = int(space.start), int(space.n)
        self.layout = layout_of_space(self._env.observation_space)
        self._painter = Painter(self._env.metadata.get("render_modes"), self.twin)
        self.path: list[int] = []
        self.observation: Any = None
        self._generators = Generators()
        self._step_seconds = 0.0
        self._copies: Copies = NoCopies()
        self.unreadable: str | None = None  # why only the actions that led to a state identify it
        try:
            self._identities = self._chosen_identities()
            self._copies = self._exact_copies()
            self.reset()
        except EfhorizonError:
            raise
        except Exception as error:
            raise failure(error, env_id) from None

    def twin(self, render_mode: str) -> GymnasiumSimulator:
        """Another simulator of the same environment, which draws in this way."""
        source = self._source
        return type(self)(
            source.name,
            source.arguments,
            wrappers=source.wrappers,
            seed=self.seed,
            fixed_noise=self.fixed_noise,
            thing=source.thing,
            render_mode=render_mode,
        )

    @property
    def num_actions(self) -> int:
        return self._num_actions

    @property
    def is_told_by_history(self) -> bool:
        """Whether only the actions that led to a state identify it."""
        return self.unreadable is not None

    @property
    def identities(self) -> Identities | None:
        """How the attributes of the environment and its wrappers identify a state, if they do."""
        return self._identities

    def attributes(self) -> bytes:
        """The attributes that identify the current state; nothing where something else identifies it."""
        return b"" if self._identities is None else self._identities.of(self._env)

    @property
    def source_objects(self) -> tuple[Any, ...]:
        """Classes and functions whose source decides what this environment does."""
        kinds = [kind for layer in layers(self._env) for kind in type(layer).__mro__[:-1]]
        return (*dict.fromkeys(kinds), *self._source.objects())

    def reset(self) -> None:
        self.observation, _ = self._env.reset(seed=self.seed)
        self.path = []

    def step(self, action: int) -> Transition:
        started = time.perf_counter()
        try:
            self.observation, reward, terminated, truncated, _ = self._env.step(self._first_action + action)
        except EfhorizonError:
            raise
        except Exception as error:
            raise failure(error, self._told(action)) from None
        self._step_seconds = 0.9 * self._step_seconds + 0.1 * (time.perf_counter() - started)
        paid = _number(reward)
        if not math.isfinite(paid):
            shown = " ".join(str(reward).split())
            raise SimulatorError(f"{self._told(action)}: the reward is {shown:.40}, which is not a number")
        self.path.append(action)
        return Transition(paid, bool(terminated or truncated))

    def _told(self, action: int) -> str:
        """An action and how its state was reached, for people."""
        return f"{self._source.name}: action {action} after actions {self.path}"

    def get_state(self) -> bytes:
        path = np.array(self.path, "<u2").tobytes()
        identity = path if self._identities is None else self.attributes()
        return struct.pack("<I", len(self.path)) + path + identity

    def set_state(self, state: bytes) -> None:
        path = _path_of(state)
        nearest = self._copies.nearest(path)
        if nearest is None:
            self.reset()
        else:
            start, self._env, self.observation = nearest
            self.path = np.frombuffer(start, "<u2").tolist()
        for action in np.frombuffer(path, "<u2").tolist()[len(self.path) :]:
            self.step(action)
        if nearest is None or nearest[0] != path:
            self._copies.save(path, self._env, self.observation, self._step_seconds * (len(path) // 2 + 1))

    def identity(self, state: bytes) -> bytes:
        return state[4 + len(_path_of(state)) :]

    def screen(self) -> Screen:
        """The observation: an image as it is, anything else as bytes in a row [1, n, 1]."""
        return screen_of(self.layout, self.observation)

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
        if self._source.thing is not self._env:  # the user's own environment is not ours to close
            close_quietly(self._env)

    def go_with_other_noise(self, state: bytes, seed: int) -> None:
        """Go to a state and change every random generator that is no part of it."""
        self.set_state(state)
        if not self.fixed_noise:
            self._generators.reseed(self._env, seed)
        random.seed(seed)
        np.random.seed(seed)

    def _chosen_identities(self) -> Identities | None:
        """How attributes identify states; None where they cannot be read.

        Attributes that differ after the same reset and the same actions are decided by neither: counters of episodes,
        times of day. They are left out.
        """
        for by_get_state in (False, True):
            identities = Identities(with_generators=self.fixed_noise, by_get_state=by_get_state)
            try:
                runs = [self._first_parts(identities) for _ in range(2)]
            except (UnreadableStateError, NotPlainError) as error:
                self.unreadable = self.unreadable or str(error)
                continue
            differing = {
                place
                for one, other in zip(*runs, strict=False)
                for place in one.keys() | other.keys()
                if one.get(place) != other.get(place)
            }
            self.unreadable = None
            return Identities(
                with_generators=self.fixed_noise, by_get_state=by_get_state, left_out=frozenset(differing)
            )
        return None

    def _first_parts(self, identities: Identities) -> list[dict[tuple[int, str], bytes]]:
        """The attributes after reset and after each of the first steps."""
        self.reset()
        found = [identities.parts(self._env)]
        for step in range(_FIRST_STEPS):
            if self.step(step % self._num_actions).terminated:
                break
            found.append(identities.parts(self._env))
        return found

    def _exact_copies(self) -> Copies:
        """How to come back to a state faster than by replaying, where there is an exact way."""
        if self._env.render_mode is not None:
            return NoCopies()  # what has drawn can perhaps not be copied
        actions = [step % self._num_actions for step in range(_FIRST_STEPS)]

        def reset() -> Any:
            self.reset()
            return self.observation

        def played(env: gymnasium.Env[Any, Any]) -> Any:
            """What is seen, and what identifies the state: a function in a copy may still look at the original."""
            seen = self.played(env, actions)
            return seen, None if self._identities is None else self._identities.of(env)

        return exact_copies(self._env, reset, played)

    def played(self, env: gymnasium.Env[Any, Any], actions: Sequence[int]) -> list[tuple[bytes, float, bool]]:
        """What some actions show, up to the end of the episode."""
        seen = []
        for action in actions:
            observation, reward, terminated, truncated, _ = env.step(self._first_action + action)
            seen.append((value_bytes(observation), float(reward), bool(terminated or truncated)))
            if seen[-1][2]:
                break
        return seen


class SnapshotSimulator(GymnasiumSimulator):
    """An environment with its own `get_state` and `set_state`."""

    def get_state(self) -> bytes:
        return as_bytes(_snapshot_layer(self._env).get_state())

    def set_state(self, state: bytes) -> None:
        _snapshot_layer(self._env).set_state(from_bytes(state))

    def identity(self, state: bytes) -> bytes:
        return state

    def go_with_other_noise(self, state: bytes, seed: int) -> None:
        """Generators that the snapshot restores are part of the state, so they are changed before."""
        self._generators.reseed(self._env, seed)
        random.seed(seed)
        np.random.seed(seed)
        self.set_state(state)

    def _told(self, action: int) -> str:
        return f"{self._source.name}: action {action}"  # how a restored state was reached is not known

    def _chosen_identities(self) -> Identities | None:
        self.reset()
        return None

    def _exact_copies(self) -> Copies:
        return NoCopies()


def gymnasium_simulator(
    env_id: str, arguments: Mapping[str, Any] | None = None, *, own_snapshots: bool = True, **more: Any
) -> GymnasiumSimulator:
    """The right simulator for an environment: by its own snapshots, or by replaying and copying."""
    if own_snapshots:
        source = EnvironmentSource(env_id, dict(arguments or {}), tuple(more.get("wrappers", ())), more.get("thing"))
        env = source.made()
        try:
            usable = _uses_snapshots(env, more.get("seed", SEED))
        except Exception as error:
            raise failure(error, env_id) from None
        finally:
            if source.thing is not env:
                close_quietly(env)
        if usable:
            return SnapshotSimulator(env_id, arguments, **more)
    return GymnasiumSimulator(env_id, arguments, **more)


def failure(error: BaseException, name: str = "the environment") -> SimulatorError:
    """An error of the user's environment in one line, with its place."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "efhorizon" not in Path(frame.filename).parts
    ]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    reason = first_line(error)
    hint = ""
    if isinstance(error, TypeError) and "seed" in reason:
        hint = "; reset must be reset(self, *, seed=None, options=None)"
    elif isinstance(error, TypeError | ValueError) and "unpack" in reason:
        hint = "; reset must return (observation, info), step (observation, reward, terminated, truncated, info)"
    return SimulatorError(f"{name} failed: {type(error).__name__}: {reason}{place}{hint}")


def _uses_snapshots(env: Any, seed: int) -> bool:
    """Whether an environment has snapshots of plain values, under wrappers that keep nothing."""
    for layer in layers(env):
        if has_snapshots(layer):
            env.reset(seed=seed)
            try:
                as_bytes(layer.get_state())
            except NotPlainError:
                return False
            return True
        if not isinstance(layer, TRANSPARENT):
            return False
    return False


def _snapshot_layer(env: Any) -> Any:
    return next(layer for layer in layers(env) if has_snapshots(layer))


def _number(reward: Any) -> float:
    """A reward as a number; NaN where it is none."""
    try:
        return float(reward.item() if isinstance(reward, np.ndarray) else reward)
    except (TypeError, ValueError):
        return math.nan


def _path_of(state: bytes) -> bytes:
    if len(state) < 4 or len(state) < 4 + 2 * struct.unpack_from("<I", state)[0]:
        raise SimulatorError("not a state of this environment")
    return state[4 : 4 + 2 * struct.unpack_from("<I", state)[0]]
