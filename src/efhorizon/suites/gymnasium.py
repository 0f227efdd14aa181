"""Any deterministic Gymnasium environment as a simulator.

How states are told apart, the first of these that an environment allows (see docs/own-environment.md):

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.suites.environment_copies import Copies, NoCopies, exact_copies
from efhorizon.suites.environment_names import action_names_of
from efhorizon.suites.environment_source import STICKY, EnvironmentSource, first_line
from efhorizon.suites.observation_layout import METADATA, layout_as_json, layout_of_space, screen_of, stored_layout
from efhorizon.suites.observation_reader import is_image
from efhorizon.suites.plain_values import NotPlainError, as_bytes, from_bytes
from efhorizon.suites.rendering import Drawing, Painter
from efhorizon.suites.replay import RestoreReport, restore_is_exact
from efhorizon.suites.simulator import Screen, Simulator, SimulatorError, StochasticError, Transition
from efhorizon.suites.state_identity import (
    TRANSPARENT,
    Identities,
    UnreadableStateError,
    generators,
    has_snapshots,
    layers,
    value_bytes,
)
from efhorizon.suites.suite import ACTION_NAMES, Mark, NetworkKind, Suite

BEHAVIOUR = 2  # raise it when the same inputs give another result: see io/behaviour.py

SEED = 0  # environments with a random start state are taken at this seed, unless another is given
_PROBE_SEEDS = (1, 2, 3, 4)
_PROBE_STEPS = 50
_RESTORED_ROLLOUTS, _RESTORED_STEPS = 5, 30
_FIRST_STEPS = 6  # that are played twice to see which attributes are not decided by reset and actions
_ADVICE = (
    "a table needs an environment that is deterministic after its reset: turn its chance off, as with --env-arg "
    "is_slippery=False, or add --fixed-noise to study it with the random numbers of one seed"
)


class Gymnasium(Suite):
    """Anything that Gymnasium can make; these environments are not in the catalogue."""

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

    def replaying_simulator(self, **arguments: Any) -> Simulator:
        """Without the environment's own snapshots, which leave something out."""
        return gymnasium_simulator(**arguments, own_snapshots=False)

    def told_by(self, simulator: Any) -> Mapping[str, Any]:
        """The layout of its observations, and the names of its actions where it tells them."""
        names = simulator.action_names()
        return {METADATA: layout_as_json(simulator.layout)} | ({} if names is None else {ACTION_NAMES: list(names)})

    def network_of(self, metadata: Mapping[str, Any]) -> NetworkKind:
        layout = stored_layout(metadata)
        return "image" if layout is not None and is_image(layout) else "dense"

    def trusted_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those of a file, which cannot name a module to import: that must come from the user."""
        env_id, given = arguments.get("env_id"), arguments.get("arguments")
        seed, wrappers = arguments.get("seed", SEED), arguments.get("wrappers", [])
        if (
            not isinstance(env_id, str)
            or not isinstance(given, Mapping | None)
            or not isinstance(wrappers, list)
            or not isinstance(seed, int)
            or arguments.keys() - {"env_id", "arguments", "seed", "wrappers", "fixed_noise"}
        ):
            raise SimulatorError("the file does not say how its environment is made, so it was not verified")
        if ":" in env_id or env_id.endswith(".py") or wrappers or _is_unregistered(env_id):
            typed = " ".join([f"--env {env_id}", *(f"--wrapper {wrapper}" for wrapper in wrappers)])
            raise SimulatorError(
                f"the file names {env_id!r}, which would import a module, so it was not verified; "
                f"if you trust it, type that yourself: {typed}"
            )
        return arguments

    def restore_report(self, make: Callable[[], Simulator], horizon: int, rng: np.random.Generator) -> RestoreReport:
        """Whether the environment is deterministic, and whether its own snapshots, if it has any, are complete."""
        simulator = make()
        assert isinstance(simulator, GymnasiumSimulator)
        if isinstance(simulator, SnapshotSimulator):
            report = restore_is_exact(make, _RESTORED_ROLLOUTS, min(_RESTORED_STEPS, horizon), rng)
            if not report.exact:
                simulator.close()
                where = f"after actions {list(report.actions)}: {report.difference}"
                return RestoreReport(False, report.actions, f"its set_state does not restore everything, {where}")
        global_generators = random.getstate(), np.random.get_state()
        try:
            notices = tuple(simulator.notices(rng))
        except EfhorizonError:
            raise
        except Exception as error:
            raise failure(error) from None
        finally:
            random.setstate(global_generators[0])
            np.random.set_state(global_generators[1])
            simulator.close()
        return RestoreReport(True, notices=notices)


GYMNASIUM = Gymnasium()


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
        self._seed, self._fixed_noise = seed, fixed_noise
        self._env = self._source.made(render_mode)
        space = self._env.action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise SimulatorError(
                f"{env_id}: the action space must be Discrete, got {space}; a wrapper can choose some of its actions"
            )
        self._first_action, self._num_actions = int(space.start), int(space.n)
        self.layout = layout_of_space(self._env.observation_space)
        self._painter = Painter(self._env.metadata.get("render_modes"), self.twin)
        self._path: list[int] = []
        self._observation: Any = None
        self._step_seconds = 0.0
        self._copies: Copies = NoCopies()
        self._unreadable: str | None = None  # why states are told apart by the actions that led to them
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
            seed=self._seed,
            fixed_noise=self._fixed_noise,
            thing=source.thing,
            render_mode=render_mode,
        )

    @property
    def num_actions(self) -> int:
        return self._num_actions

    @property
    def is_told_by_history(self) -> bool:
        """Whether states are told apart by the actions that led to them."""
        return self._unreadable is not None

    @property
    def source_objects(self) -> tuple[Any, ...]:
        """Classes and functions whose source decides what this environment does."""
        kinds = [kind for layer in layers(self._env) for kind in type(layer).__mro__[:-1]]
        return (*dict.fromkeys(kinds), *self._source.objects())

    def reset(self) -> None:
        self._observation, _ = self._env.reset(seed=self._seed)
        self._path = []

    def step(self, action: int) -> Transition:
        started = time.perf_counter()
        self._observation, reward, terminated, truncated, _ = self._env.step(self._first_action + action)
        self._path.append(action)
        self._step_seconds = 0.9 * self._step_seconds + 0.1 * (time.perf_counter() - started)
        if not math.isfinite(reward):
            raise SimulatorError(f"after actions {self._path} the reward is {reward}, which is not a number")
        return Transition(float(reward), bool(terminated or truncated))

    def get_state(self) -> bytes:
        path = np.array(self._path, "<u2").tobytes()
        identity = path if self._identities is None else self._identities.of(self._env)
        return struct.pack("<I", len(self._path)) + path + identity

    def set_state(self, state: bytes) -> None:
        path = _path_of(state)
        nearest = self._copies.nearest(path)
        if nearest is None:
            self.reset()
        else:
            start, self._env, self._observation = nearest
            self._path = np.frombuffer(start, "<u2").tolist()
        for action in np.frombuffer(path, "<u2").tolist()[len(self._path) :]:
            self.step(action)
        if nearest is None or nearest[0] != path:
            self._copies.save(path, self._env, self._observation, self._step_seconds * (len(path) // 2 + 1))

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
        if self._source.thing is not self._env:  # the user's own environment is not ours to close
            self._env.close()

    # --- what an environment is like

    def notices(self, rng: np.random.Generator) -> Iterator[str]:
        """What the user should know, one line each; raises `StochasticError` where no exact table can be made."""
        self._check_sticky_actions()
        self._check_reset()
        found = self.stochastic_pair(_PROBE_STEPS, rng)
        if found and not self.is_told_by_history:
            raise StochasticError(found, _ADVICE)
        if self.is_told_by_history:
            yield (
                f"its states cannot be compared ({self._unreadable}), so every sequence of actions counts as a state "
                "of its own: keep the horizon short, or give the environment get_state() and set_state()"
            )
        if self._has_random_start():
            if self._seed == SEED:
                yield f"its start is random, and this is the start of seed {SEED}; for others add --seed 1,2,3"
        elif not found and not self._fixed_noise and self._depends_on_seed(rng):
            found = "hidden noise"
        if found or self._fixed_noise:
            yield (
                f"it draws random numbers in its steps: this table has those of seed {self._seed}, so the same actions "
                "always meet the same chance, and what is found holds for this one sequence of numbers"
            )

    def chance(self, rng: np.random.Generator) -> str | None:
        """One line that shows by which chance the same actions can go differently, if they can."""
        try:
            self._check_sticky_actions()
            self._check_reset()
        except StochasticError as error:
            return error.found
        return self.stochastic_pair(_PROBE_STEPS, rng)

    def stochastic_pair(self, num_steps: int, rng: np.random.Generator) -> str | None:
        """One line that names a state and action with two different results, or None where a random walk met none.

        Before each repetition every random generator in reach gets a new seed, so that any dependence on it shows.
        """
        self.reset()
        for _ in range(num_steps):
            state, observed = self.get_state(), self._observation
            path = list(self._path)
            action = int(rng.integers(self._num_actions))
            outcomes = []
            for seed in _PROBE_SEEDS:
                self._go_with_other_noise(state, seed)
                reward, ended = self.step(action)
                outcomes.append((value_bytes(self._observation), reward, ended, self._observation))
                if outcomes[-1][:3] != outcomes[0][:3]:
                    return (
                        f"stochastic: after actions {path} (observation {_short(observed)}), action {action} gave "
                        f"{_result(outcomes[0])} and then {_result(outcomes[-1])}"
                    )
            self._path = [*path, action]
            if outcomes[-1][2]:
                self.reset()
        return None

    def _go_with_other_noise(self, state: bytes, seed: int) -> None:
        """Go to a state and change every random generator that is no part of it."""
        self.set_state(state)
        if not self._fixed_noise:
            _reseed(self._env, seed)
        random.seed(seed)
        np.random.seed(seed)

    def _check_sticky_actions(self) -> None:
        """An emulator does not tell which action sticks, so such states could not be told apart."""
        ale: Any = getattr(self._env.unwrapped, "ale", None)
        if type(ale).__name__ == "ALEInterface" and ale.getFloat(STICKY) > 0:
            raise StochasticError("stochastic: its actions are sticky", f"add --env-arg {STICKY}=0")

    def _check_reset(self) -> None:
        """The same seed must give the same start."""
        starts = []
        for seed in _PROBE_SEEDS[:2]:
            random.seed(seed)
            np.random.seed(seed)
            self.reset()
            identity = b"" if self._identities is None else self._identities.of(self._env)
            starts.append((value_bytes(self._observation), identity, self._observation))
        if starts[0][:2] != starts[1][:2]:
            raise StochasticError(
                f"stochastic: two resets with seed {self._seed} gave {_short(starts[0][2])} and {_short(starts[1][2])}",
                "let reset() call super().reset(seed=seed) and draw from self.np_random",
            )

    def _has_random_start(self) -> bool:
        """Whether another seed gives another start."""
        starts = set()
        identities = Identities(with_emulator_noise=False)
        for seed in (self._seed, *(self._seed + other for other in _PROBE_SEEDS)):
            self._observation, _ = self._env.reset(seed=seed)
            identity = b"" if self._identities is None else identities.of(self._env)
            starts.add((value_bytes(self._observation), identity))
        self.reset()
        return len(starts) > 1

    def _depends_on_seed(self, rng: np.random.Generator) -> bool:
        """Whether the same actions from the same start go otherwise with another seed: noise that we cannot reach."""
        actions = rng.integers(self._num_actions, size=_PROBE_STEPS).tolist()
        rollouts = []
        for seed in (self._seed, *(self._seed + other for other in _PROBE_SEEDS)):
            self._observation, _ = self._env.reset(seed=seed)
            rollouts.append(self._played(self._env, actions))
        self.reset()
        return any(rollout != rollouts[0] for rollout in rollouts)

    def _chosen_identities(self) -> Identities | None:
        """How to tell states apart by attributes; None where they cannot be read.

        Attributes that differ after the same reset and the same actions are decided by neither: counters of episodes,
        times of day. They are left out.
        """
        for by_get_state in (False, True):
            identities = Identities(with_generators=self._fixed_noise, by_get_state=by_get_state)
            try:
                runs = [self._first_parts(identities) for _ in range(2)]
            except (UnreadableStateError, NotPlainError) as error:
                self._unreadable = self._unreadable or str(error)
                continue
            differing = {
                place
                for one, other in zip(*runs, strict=False)
                for place in one.keys() | other.keys()
                if one.get(place) != other.get(place)
            }
            self._unreadable = None
            return Identities(
                with_generators=self._fixed_noise, by_get_state=by_get_state, left_out=frozenset(differing)
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
            return self._observation

        return exact_copies(self._env, reset, lambda env: self._played(env, actions))

    def _played(self, env: gymnasium.Env[Any, Any], actions: Sequence[int]) -> list[tuple[bytes, float, bool]]:
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

    def _go_with_other_noise(self, state: bytes, seed: int) -> None:
        """Generators that the snapshot restores are part of the state, so they are changed before."""
        _reseed(self._env, seed)
        random.seed(seed)
        np.random.seed(seed)
        self.set_state(state)

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
                env.close()
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
    elif isinstance(error, ValueError) and "unpack" in reason:
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


def _is_unregistered(env_id: str) -> bool:
    """Whether an id is none that Gymnasium or efhorizon registers by itself."""
    return env_id not in gymnasium.registry and not env_id.startswith(("MiniGrid-", "BabyAI-", "ALE/"))


def _reseed(env: Any, seed: int) -> None:
    """Give every random generator of an environment another state."""
    for generator in generators(env):
        if isinstance(generator, random.Random | np.random.RandomState):
            generator.seed(seed)
        elif isinstance(generator, np.random.Generator):
            source = generator.bit_generator
            source.state = type(source)(seed).state


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
