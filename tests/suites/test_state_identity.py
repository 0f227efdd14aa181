"""Which states are one: equal values are, whatever the process; what may behave differently is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from efhorizon import SimulatorError
from efhorizon.suites.environment_chance import chance_notices
from efhorizon.suites.gymnasium import GYMNASIUM
from efhorizon.suites.gymnasium_simulator import GymnasiumSimulator, SnapshotSimulator, gymnasium_simulator
from efhorizon.suites.simulator import StochasticError
from efhorizon.suites.state_identity import Generators, Identities, value_bytes


class Thing:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Holder(gymnasium.Env[Any, Any]):
    """Holds whatever it is given."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def identity(**attributes: Any) -> bytes:
    return Identities().of(Holder(**attributes))


def test_equal_values_are_one_state() -> None:
    text = "".join(["a", "b"])
    assert identity(x=(1, 2), y=(1, 2)) == identity(**dict.fromkeys("xy", (1, 2)))
    assert identity(x=text, y="ab") == identity(x="ab", y="ab")
    assert identity(x={3, 1, 2}) == identity(x={2, 3, 1})
    assert identity(x=np.arange(3)) == identity(x=np.arange(3))
    assert identity(x=deque([1, Thing(a=1)])) == identity(x=deque([1, Thing(a=1)]))
    assert identity(x=1, rng=np.random.default_rng(0)) == identity(x=1, rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"x": 1}, {"x": 1.0}),
        ({"x": 1}, {"x": True}),
        ({"x": [1, 2]}, {"x": (1, 2)}),
        ({"x": np.zeros(2)}, {"x": np.zeros(2, np.float32)}),
        ({"x": np.array([1, 2])}, {"x": np.array([[1, 2]])}),
        ({"x": Thing(a=1)}, {"x": Thing(a=2)}),
        ({"x": Thing(a=Thing(b=[1]))}, {"x": Thing(a=Thing(b=[2]))}),
        ({"x": deque([1])}, {"x": deque([2])}),
        ({"x": iter([1, 2])}, {"x": iter([1, 3])}),
        ({"env": 1}, {"env": 2}),  # of an environment that is no wrapper
    ],
)
def test_different_values_are_two_states(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert identity(**one) != identity(**other)


def test_which_object_it_is_matters() -> None:
    """A key that is carried, and another that only looks like it."""
    first, second = Thing(colour="red"), Thing(colour="red")
    assert identity(keys=[first, second], carried=first) != identity(keys=[first, second], carried=second)
    hands = [[1], [1]]
    assert identity(hands=hands, now=hands[0]) != identity(hands=hands, now=hands[1])


def test_generators_belong_to_the_state_on_request() -> None:
    noise = Identities(with_generators=True)
    one, other = (Holder(rng=np.random.default_rng(seed)) for seed in (0, 1))
    assert noise.of(one) != noise.of(other)
    before = noise.of(one)
    one.rng.random()
    assert noise.of(one) != before


def test_large_attributes_are_seen_to_change() -> None:
    table = {state: [(0.5, state + 1, 0.0)] for state in range(500)}
    env, identities = Holder(table=table, x=1), Identities()
    before = identities.of(env)
    assert identities.of(env) == before == Identities().of(env)
    table[300][0] = (0.5, 7, 0.0)
    assert identities.of(env) != before
    assert identities.of(env) == Identities().of(env)


def test_cycles_and_functions_can_be_written() -> None:
    one = Thing(name="one")
    one.friend = Thing(friend=one)
    assert identity(x=one, method=one.__init__, function=len) == identity(x=one, method=one.__init__, function=len)


def test_every_process_gives_the_same_bytes() -> None:
    code = (
        "from efhorizon.suites.state_identity import value_bytes;"
        "print(value_bytes([{'north', 'south', 'east'}, frozenset('abc'), {'k': (1, 2.5)}]).hex())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


class Base(gymnasium.Env[Any, Any]):
    """A walk over eight cells; subclasses change one thing each."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action: Any) -> Any:
        self.cell = max(0, self.cell + 2 * int(action) - 1)
        return self.cell, 0.0, self.cell == 7, False, {}


class Counting(Base):
    """Counts its episodes, and keeps the time of day."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        import time

        self.episodes += 1
        self.started = time.perf_counter()
        return super().reset(seed=seed)


def test_what_reset_and_actions_do_not_decide_is_left_out() -> None:
    simulator = GymnasiumSimulator("Counting", thing=Counting)
    start = simulator.identity(simulator.get_state())
    for _ in range(3):
        simulator.reset()
    assert simulator.identity(simulator.get_state()) == start
    simulator.step(1)
    assert simulator.identity(simulator.get_state()) != start


class Sealed(Base):
    """Holds something that cannot be read, as LunarLander holds its world."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.engine = (cell for cell in range(100))
        return super().reset(seed=seed)


def test_states_that_cannot_be_read_are_told_apart_by_their_actions() -> None:
    simulator = GymnasiumSimulator("Sealed", thing=Sealed)
    assert simulator.is_told_by_history
    identities = set()
    for path in ((), (1,), (0, 1), (1, 1, 0)):  # all but the first stand in cell 1
        simulator.reset()
        for action in path:
            simulator.step(action)
        identities.add(simulator.identity(simulator.get_state()))
    assert len(identities) == 4
    state = simulator.get_state()
    simulator.step(1)
    simulator.set_state(state)
    assert simulator.step(1) == (0.0, False)
    assert "cannot be compared (the attribute 'engine'" in next(chance_notices(simulator, np.random.default_rng(0)))


class Saving(Sealed):
    """And can be saved nevertheless, as numbers."""

    def get_state(self) -> Any:
        return np.array([self.cell, 3])

    def set_state(self, state: Any) -> None:
        self.cell = int(state[0])


class Forgetful(Base):
    """Leaves out of its snapshots what decides its reward."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.last = 0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = super().step(action)
        reward, self.last = float(self.last != action), int(action)
        return observation, reward, terminated, truncated, info

    def get_state(self) -> Any:
        return self.cell

    def set_state(self, state: Any) -> None:
        self.cell = state


def restore_report(thing: Any) -> Any:
    def make() -> GymnasiumSimulator:
        return gymnasium_simulator("it", thing=thing)

    return GYMNASIUM.restore_report(make, 20, np.random.default_rng(0))


def test_snapshots_of_any_plain_value() -> None:
    simulator = gymnasium_simulator("Saving", thing=Saving)
    assert isinstance(simulator, SnapshotSimulator)
    assert restore_report(Saving).exact
    simulator.step(1)
    state = simulator.get_state()
    simulator.step(1)
    assert simulator.get_state() != state
    simulator.set_state(state)
    assert simulator.get_state() == state


def test_snapshots_identify_states_under_a_wrapper() -> None:
    """The wrapper keeps something, so they do not restore states; the engine cannot be read, so attributes do not."""

    def wrapped() -> Any:
        return gymnasium.wrappers.FlattenObservation(Saving())

    simulator = gymnasium_simulator("wrapped", thing=wrapped)
    assert not isinstance(simulator, SnapshotSimulator)
    assert not simulator.is_told_by_history
    assert restore_report(wrapped).notices == ()


def test_snapshots_under_a_wrapper_that_keeps_something() -> None:
    def stacked() -> Any:
        return gymnasium.wrappers.TimeAwareObservation(TimeLimited(Saving()))

    class TimeLimited(gymnasium.Wrapper[Any, Any, Any, Any]):
        spec = None

    simulator = gymnasium_simulator("stacked", thing=lambda: TimeLimited(Saving()))
    assert not isinstance(simulator, SnapshotSimulator)
    assert not simulator.is_told_by_history


def test_snapshots_that_leave_something_out_are_not_used() -> None:
    report = restore_report(Forgetful)
    assert not report.exact
    assert report.difference.startswith("its set_state does not restore everything, after actions [")
    simulator = GYMNASIUM.replaying_simulator(env_id="it", thing=Forgetful)
    assert isinstance(simulator, GymnasiumSimulator)
    assert not isinstance(simulator, SnapshotSimulator)


class OwnGenerator(Base):
    """Chance by a generator that is not Gymnasium's."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.rng = np.random.default_rng(seed)
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        return super().step(action if self.rng.random() < 0.7 else 1 - action)


class NestedGenerator(Base):
    """Its generator is inside an object, and its noise is rare."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.weather = [Thing(rng=np.random.default_rng(seed))]
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        return super().step(1 - action if self.weather[0].rng.random() < 0.05 else action)


class OneArray(OwnGenerator):
    """Shows its cell in the same array each time."""

    observation_space: Any = gymnasium.spaces.Box(-1, 8, (1,), np.int64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.shown = np.zeros(1, np.int64)
        super().reset(seed=seed)
        return self.shown, {}

    def step(self, action: Any) -> Any:
        self.shown[0], *rest = super().step(action)
        return self.shown, *rest


class Unseeded(Base):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = int(np.random.randint(5))
        return self.cell, {}


class RandomStart(Base):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(6))
        return self.cell, {}


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (OwnGenerator, "stochastic: after actions .*--fixed-noise"),
        (NestedGenerator, "stochastic: after actions .*--fixed-noise"),
        (OneArray, r"gave observation \[(.)\], reward 0 and then observation \[(?!\1)"),
        (Unseeded, "two resets with seed 0 gave"),
    ],
)
def test_chance_is_refused(thing: Any, said: str) -> None:
    with pytest.raises(StochasticError, match=said):
        restore_report(thing)


def test_a_random_start_is_said() -> None:
    (notice,) = restore_report(RandomStart).notices
    assert notice == "its start is random, and this is the start of seed 0; for others add --seed 1,2,3"
    assert restore_report(Base).notices == ()
    assert restore_report(Counting).notices == ()  # what it counts is no part of its start


def test_an_observation_that_is_overwritten_comes_back_with_its_state() -> None:
    class Still(OneArray):
        def step(self, action: Any) -> Any:
            self.shown[0], *rest = Base.step(self, action)
            return self.shown, *rest

    simulator = GymnasiumSimulator("Still", thing=Still)
    simulator._step_seconds = 1.0  # so slow that it is worth copying
    simulator.step(1)
    state, shown = simulator.get_state(), simulator.screen().tolist()
    for _ in range(3):
        simulator.set_state(state)
        assert simulator.screen().tolist() == shown
        simulator._step_seconds = 1.0
        simulator.step(1)


def test_large_attributes_are_not_searched_for_generators_again() -> None:
    env, found = Holder(table=list(range(400)), objects=[Thing(rng=np.random.default_rng(0))]), Generators()
    assert list(found.of(env)) == [env.objects[0].rng]
    env.table = [np.random.default_rng(1)]
    assert list(found.of(env)) == [env.objects[0].rng]
    before = env.objects[0].rng.bit_generator.state
    found.reseed(env, 7)
    assert env.objects[0].rng.bit_generator.state == np.random.PCG64(7).state != before


class OldStyle(Base):
    def reset(self) -> Any:  # type: ignore[override]
        return 0


class Failing(Base):
    def step(self, action: Any) -> Any:
        raise KeyError("door")


class Spaceless(gymnasium.Env[Any, Any]):
    pass


class Short(Base):
    def step(self, action: Any) -> Any:
        return 0, 0.0, False, {}


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (OldStyle, r"failed: TypeError.*seed=None"),
        (Failing, r"failed: KeyError: 'door' \(test_state_identity.py, line \d+\)"),
        (Short, r"failed: ValueError.*terminated, truncated, info"),
        (Spaceless, "it has no action_space"),
        (lambda: 3, "made int, which is not a gymnasium.Env"),
    ],
)
def test_an_environment_that_fails_is_one_line(thing: Callable[..., Any], said: str) -> None:
    with pytest.raises(SimulatorError, match=said):
        gymnasium_simulator("it", thing=thing)


def test_observations_as_bytes() -> None:
    assert value_bytes({"a": np.arange(2)}) == value_bytes({"a": np.arange(2)})
    assert value_bytes({"a": np.arange(2)}) != value_bytes({"a": np.arange(3)})


def test_this_file_is_where_the_errors_are() -> None:
    assert Path(__file__).name == "test_state_identity.py"
