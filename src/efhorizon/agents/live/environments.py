"""Live environments as GORP needs them: stand at the end of the actions so far, step away, come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from efhorizon import catalog
from efhorizon.build.target import table_name
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.environment_chance import chance
from efhorizon.suites.environment_source import (
    EnvironmentSource,
    environment_source,
    is_environment_name,
    time_limit,
)
from efhorizon.suites.gymnasium_simulator import GymnasiumSimulator
from efhorizon.suites.simulator import Simulator, SimulatorError, StochasticError
from efhorizon.suites.specification import gymnasium_spec, spec_of

SEED = 0  # environments with a random start state are taken at this seed

# Wrappers that change nothing which the rest of an episode depends on; GORP counts the time itself.
_TRANSPARENT = (OrderEnforcing, PassiveEnvChecker, TimeLimit)


class LiveEnvironment(Protocol):
    """An environment that stands at the end of a growing sequence of actions."""

    id: str
    horizon: int
    num_actions: int
    steps_played: int

    def restore(self) -> None:
        """Go back to the end of the sequence."""
        ...

    def step(self, action: int) -> tuple[Any, float, bool]:
        """Observation (None where there is none), reward, and whether the episode ended."""
        ...

    def advance(self, action: int) -> tuple[float, bool]:
        """Make an action part of the sequence; its reward, and whether the episode ended."""
        ...


class SnapshotEnvironment:
    """A simulator, put back by its snapshots; by replaying actions once it says that a state cannot be restored."""

    def __init__(self, name: str, simulator: Simulator, horizon: int) -> None:
        self.id, self.horizon, self.num_actions = name, horizon, simulator.num_actions
        self.steps_played = 0
        self._simulator = simulator
        self._path: list[int] = []
        simulator.reset()
        self._snapshot: bytes | None = simulator.get_state()

    def restore(self) -> None:
        if self._snapshot is not None:
            try:
                self._simulator.set_state(self._snapshot)
                return
            except SimulatorError:
                self._snapshot = None
        self._simulator.reset()
        for action in self._path:
            self.step(action)

    def step(self, action: int) -> tuple[Any, float, bool]:
        self.steps_played += 1
        reward, ended = self._simulator.step(action)
        return None, reward, ended

    def advance(self, action: int) -> tuple[float, bool]:
        self.restore()
        _, reward, ended = self.step(action)
        self._path.append(action)
        self._snapshot = None if ended else self._simulator.get_state()
        return reward, ended


class GymnasiumEnvironment:
    """A Gymnasium environment with discrete actions: snapshots of `env.unwrapped` where it has them, else replays.

    Snapshots are used only under wrappers that keep nothing which an episode depends on: a snapshot would not restore
    what any other wrapper keeps.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], horizon: int | None = None, name: str | None = None) -> None:
        space = env.action_space
        self.id = name or (env.spec.id if env.spec is not None else type(env.unwrapped).__name__)
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise SimulatorError(f"{self.id}: the action space must be Discrete, got {space}")
        self.horizon = _horizon(env, horizon)
        self.num_actions, self._first_action = int(space.n), int(space.start)
        self.steps_played = 0
        self._has_snapshots = _has_snapshots(env)
        inner: Any = env.unwrapped if self._has_snapshots else env
        self._env = inner
        self._path: list[int] = []
        env.reset(seed=SEED)
        self._snapshot = self._env.get_state() if self._has_snapshots else None

    def restore(self) -> None:
        if self._has_snapshots:
            self._env.set_state(self._snapshot)
            return
        self._env.reset(seed=SEED)
        for number, action in enumerate(self._path):
            if self.step(action)[2]:
                raise SimulatorError(
                    f"{self.id}: the episode ended while replaying, at step {number + 1}: not deterministic"
                )

    def step(self, action: int) -> tuple[Any, float, bool]:
        self.steps_played += 1
        observation, reward, terminated, truncated, _ = self._env.step(self._first_action + action)
        return observation, float(reward), bool(terminated or truncated)

    def advance(self, action: int) -> tuple[float, bool]:
        self.restore()
        _, reward, ended = self.step(action)
        self._path.append(action)
        if self._has_snapshots:
            self._snapshot = self._env.get_state()
        return reward, ended


def live_environment(
    environment: str | gymnasium.Env[Any, Any] | Simulator,
    *,
    horizon: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    wrappers: Sequence[str] = (),
) -> LiveEnvironment:
    """A live environment from a catalogue name, another name that a suite understands, a Gymnasium id, or an object.

    Atari understands `{game}_{T}_fs{F}` with any T and F; the bare name of a game means the full-length game, with
    horizon 27,000 and frameskip 4. Always one life and no sticky actions. `arguments` and `wrappers` are those of an
    environment that Gymnasium makes, which is then meant even if the catalogue has its name too.
    """
    if horizon is not None and horizon < 1:
        raise SimulatorError(f"the horizon must be at least 1, got {horizon}")
    if isinstance(environment, gymnasium.Env):
        _check_chance(environment_source(environment))
        return GymnasiumEnvironment(environment, horizon)
    if not isinstance(environment, str):
        if horizon is None:
            raise SimulatorError("a simulator has no horizon; give one")
        return SnapshotEnvironment(type(environment).__name__, environment, horizon)
    entry = catalog.find(environment) or _unlisted_entry(environment)
    if entry is not None and not arguments and not wrappers:
        entry = entry.with_horizon(entry.horizon if horizon is None else horizon)
        return SnapshotEnvironment(entry.name, spec_of(entry)(), entry.horizon)
    return _named_environment(environment, horizon, arguments or {}, wrappers)


def _named_environment(
    name: str, horizon: int | None, arguments: Mapping[str, Any], wrappers: Sequence[str]
) -> LiveEnvironment:
    """An environment that Gymnasium can make; see `environment_source` for its name."""
    if not is_environment_name(name):
        raise SimulatorError(f"{name}: neither in the catalogue nor a Gymnasium environment, nor file.py:Class")
    source = environment_source(name, arguments, wrappers)
    limit = time_limit(source) if horizon is None else horizon
    if limit is None:
        raise SimulatorError(f"{name}: it has no time limit; say how long an episode is, as with --horizon 50")
    env = source.made()
    _require_discrete(env, name)
    _check_chance(source)
    return GymnasiumEnvironment(env, limit, name=table_name(source) if arguments or wrappers else source.name)


def _check_chance(source: EnvironmentSource) -> None:
    """Refuse an environment with chance: every rollout would meet the same one, the first that a seed gives."""
    simulator = gymnasium_spec(source)()
    assert isinstance(simulator, GymnasiumSimulator)
    try:
        found = chance(simulator, np.random.default_rng(0))
    finally:
        simulator.close()
    if found:
        raise StochasticError(
            f"{source.name}: {found}",
            "GORP needs a deterministic environment, so turn the chance off (--env-arg is_slippery=False, say), or "
            f"build a table with that of one seed (efhorizon build {source.name} --fixed-noise) and run GORP on that",
        )


def _require_discrete(env: gymnasium.Env[Any, Any], name: str) -> None:
    if not isinstance(env.action_space, gymnasium.spaces.Discrete):
        raise SimulatorError(f"{name}: the action space must be Discrete, got {env.action_space}")


def _unlisted_entry(name: str) -> Entry | None:
    found = (suite.unlisted_entry(name) for suite in registry.suites())
    return next((entry for entry in found if entry is not None), None)


def _has_snapshots(env: gymnasium.Env[Any, Any]) -> bool:
    if not all(callable(getattr(env.unwrapped, name, None)) for name in ("get_state", "set_state")):
        return False
    layer: Any = env
    while layer is not env.unwrapped:
        if not isinstance(layer, _TRANSPARENT):
            return False
        layer = layer.env
    return True


def _horizon(env: gymnasium.Env[Any, Any], given: int | None) -> int:
    if given is not None:
        return given
    own = getattr(getattr(env.unwrapped, "entry", None), "horizon", None)
    limit = own or (env.spec.max_episode_steps if env.spec is not None else None)
    if limit is None:
        raise SimulatorError("the environment is registered without an episode length; give a horizon")
    return int(limit)
