"""Any Gymnasium environment with discrete actions as a stage, with or without chance.

An episode starts from a reset with a seed of its own where the start is random, unless that is fixed. A place is
reached again by a snapshot of the emulator, by a deep copy, or by replaying the actions from the reset: the first of
these that was seen to be exact. After each return the random generators in reach get new seeds, so that rollouts meet
fresh noise. An Atari emulator's own generator of sticky actions cannot be seeded within an episode; it just goes on.

Where a place cannot be kept and steps are random, the same actions lead elsewhere each time. Then rollouts average
over where they lead: what is estimated is the value of a sequence of actions, not of a state (`open-loop`).
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from efhorizon.diagnose.stage import Chance, Played, Return
from efhorizon.suites.environment_source import STICKY, EnvironmentSource, close_quietly
from efhorizon.suites.gymnasium_simulator import failure
from efhorizon.suites.simulator import SimulatorError
from efhorizon.suites.state_identity import TRANSPARENT, Generators, layers, value_bytes

_PROBE_SEEDS = (11, 12, 13, 14)
_PROBE_STEPS = 60
_PROBES = 3  # action sequences

_CONSTANT_NAMES = ("spec", "action_space", "observation_space", "_action_space", "_observation_space", "metadata")
_TOY_TEXT, _CONSTANT_IN_TOY_TEXT = "gymnasium.envs.toy_text.", ("P", "desc", "initial_state_distrib", "locs")

_Seen = list[tuple[bytes, float, bool]]


class GymnasiumStage:
    """One environment, its mark, and how to come back to it."""

    def __init__(
        self, source: EnvironmentSource, *, fixed_start: int | None = None, render_mode: str | None = None
    ) -> None:
        """`fixed_start` is the seed of every reset; without it, each episode has a seed of its own."""
        self._name = source.name
        self._owned = source.thing is None or not isinstance(source.thing, gymnasium.Env)
        self._env: Any = source.made(render_mode)
        space = self._env.action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise SimulatorError(
                f"{source.name}: the action space must be Discrete, got {space}; "
                "a wrapper can choose some of its actions"
            )
        self._first_action, self.num_actions = int(space.start), int(space.n)
        self.steps_played = 0
        self._ale = _emulator(self._env)
        self._generators = Generators()
        self._path: list[int] = []
        self._kept: Any = None  # a copy or an emulator state at the mark
        self._ends_at_mark = False
        self._fixed = 0 if fixed_start is None else fixed_start
        try:
            self.chance: Chance = self._found_chance(fixed_start is not None)
            self.how: Return = self._found_return()
        except SimulatorError:
            raise
        except Exception as error:
            raise failure(error, source.name) from None
        self.steps_played = 0

    def begin(self, rng: np.random.Generator) -> None:
        self._seed = self._fixed if self.chance == "none" else int(rng.integers(2**31))
        self._reset(self._seed)
        if self.chance == "steps" and self._fixed_start:
            self._renew(rng)
        self._path, self._ends_at_mark = [], False
        self._mark()

    def restore(self, rng: np.random.Generator) -> None:
        if self.how == "snapshots":
            self._ale.restoreState(self._kept)
        elif self.how == "copies":
            self._env = _copied(self._kept)
        else:
            self._reset(int(rng.integers(2**31)) if self.how == "open-loop" and not self._fixed_start else self._seed)
            if self.how == "open-loop":
                self._renew(rng)
            self._ends_at_mark = self.play(self._path).ended if self._path else False
        self._renew(rng)

    def play(self, actions: Sequence[int]) -> Played:
        if self._ends_at_mark:
            return Played(0.0, 0, True, 0)
        step, offset = self._env.step, self._first_action
        total, first, number, ended = 0.0, 0, 0, False
        try:
            for action in actions:
                _, reward, terminated, truncated, _ = step(action + offset)
                number += 1
                if reward:
                    total += float(reward)
                    first = first or number
                if terminated or truncated:
                    ended = True
                    break
        except Exception as error:
            raise failure(error, self._name) from None
        self.steps_played += number
        if not np.isfinite(total):
            raise SimulatorError(f"{self._name}: a reward is {total}, which is not a number")
        return Played(total, number, ended, first)

    def advance(self, action: int, rng: np.random.Generator) -> Played:
        self.restore(rng)
        played = self.play([action])
        self._path.append(action)
        if not played.ended:
            self._mark()
        return played

    def go_on(self, action: int, rng: np.random.Generator) -> Played:
        """As `advance`, without coming back to the mark first: for those who never left it."""
        self._renew(rng)
        return self.play([action])

    def picture(self) -> NDArray[np.uint8] | None:
        with contextlib.suppress(Exception):
            if self._ale is not None:
                return np.asarray(self._ale.getScreenRGB(), np.uint8)
            drawn = self._env.render()
            if isinstance(drawn, np.ndarray) and drawn.ndim == 3:
                return drawn.astype(np.uint8)
        return None

    def close(self) -> None:
        if self._owned:
            close_quietly(self._env)

    def _reset(self, seed: int) -> None:
        self._env.reset(seed=seed)

    def _mark(self) -> None:
        if self.how == "snapshots":
            self._kept = self._ale.cloneState(include_rng=self.chance != "steps")
        elif self.how == "copies":
            self._kept = _copied(self._env)

    def _renew(self, rng: np.random.Generator) -> None:
        """Fresh noise from here on."""
        if self.chance != "steps":
            return
        seed = int(rng.integers(2**31))
        self._generators.reseed(self._env, seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)

    def _found_chance(self, fixed_start: bool) -> Chance:
        self._fixed_start = fixed_start
        if self._ale is not None and self._ale.getFloat(STICKY) > 0:
            return "steps"  # which no reseeding shows, since the emulator's generator is out of reach
        sequences = np.random.default_rng(0).integers(self.num_actions, size=(_PROBES, _PROBE_STEPS)).tolist()
        for actions in sequences:
            one, other = (self._shown(self._fixed, actions, noise) for noise in _PROBE_SEEDS[:2])
            if one != other or one != self._shown(self._fixed, actions, None):
                return "steps"
        if not fixed_start:
            for actions in sequences:
                shown = [self._shown(seed, actions, None) for seed in _PROBE_SEEDS]
                if any(each[0] != shown[0][0] or each != shown[0] for each in shown):
                    return "start"
        return "none"

    def _shown(self, seed: int, actions: Sequence[int], noise: int | None) -> _Seen:
        """All that some actions show after a reset; with other noise in the steps if that is given."""
        observation, _ = self._env.reset(seed=seed)
        if noise is not None:
            self.chance = "steps"
            self._renew(np.random.default_rng(noise))
        return [(value_bytes(observation), 0.0, False), *self._seen(self._env, actions)]

    def _seen(self, env: Any, actions: Sequence[int]) -> _Seen:
        found: _Seen = []
        for action in actions:
            observation, reward, terminated, truncated, _ = env.step(action + self._first_action)
            found.append((value_bytes(observation), float(reward), bool(terminated or truncated)))
            if found[-1][2]:
                break
        return found

    def _found_return(self) -> Return:
        """The quickest exact way back."""
        if self._ale is not None:
            return "snapshots"
        if self._copies_are_exact():
            return "copies"
        return "open-loop" if self.chance == "steps" else "replay"

    def _copies_are_exact(self) -> bool:
        """Whether deep copies go on as the environment does; those that share something with it do not."""
        before, after = np.random.default_rng(1).integers(self.num_actions, size=(2, 12)).tolist()
        self._env.reset(seed=self._fixed)
        if self._seen(self._env, before[:2])[-1][2]:
            self._env.reset(seed=self._fixed)
        original, shown = self._env, []
        try:
            kept = _copied(original)
            for env in (_copied(kept), original, _copied(kept)):
                self._env = env
                self._renew(np.random.default_rng(3))
                shown.append(self._seen(env, after))
        except Exception:  # cannot be copied, whatever the reason
            return False
        finally:
            self._env = original
        return shown[0] == shown[1] == shown[2]


def _copied(env: Any) -> Any:
    """A deep copy that shares what never changes: a table of all transitions is most of a small environment."""
    shared: dict[int, Any] = {}
    for layer in layers(env):
        in_toy_text = type(layer).__module__.startswith(_TOY_TEXT)
        names = (*_CONSTANT_NAMES, *(_CONSTANT_IN_TOY_TEXT if in_toy_text else ()))
        held = vars(layer)
        shared.update((id(held[name]), held[name]) for name in names if held.get(name) is not None)
    return copy.deepcopy(env, shared)


def _emulator(env: Any) -> Any:
    """The Atari emulator under an environment, if nothing else in it changes."""
    *above, innermost = layers(env)
    ale = getattr(innermost, "ale", None)
    if type(ale).__name__ != "ALEInterface" or not all(isinstance(layer, TRANSPARENT) for layer in above):
        return None
    return ale
