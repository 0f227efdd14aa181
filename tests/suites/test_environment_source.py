"""Naming an environment: files, modules, ids, classes, functions and objects; and names that fail."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

from efhorizon import SimulatorError
from efhorizon.suites.environment_source import environment_source, is_environment_name, time_limit
from efhorizon.suites.plain_values import NotPlainError, as_bytes, as_json, from_bytes, from_json

CORRIDOR = """
import gymnasium
from corridor_helper import PRIZE

class Corridor(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length=5, prize=PRIZE):
        self.length, self.prize = length, prize
        self.observation_space = gymnasium.spaces.Discrete(length)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        self.cell = max(0, self.cell + (1 if action else -1))
        at_end = self.cell == self.length - 1
        return self.cell, self.prize if at_end else 0, at_end, False, {}

def short(length=3):
    return gymnasium.wrappers.TimeLimit(Corridor(length), 7)

class Doubled(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2 * reward

gymnasium.register("Corridor-v7", entry_point=Corridor, max_episode_steps=9)
something = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A working directory with a file of the user's; nothing of it stays behind."""
    (tmp_path / "my_corridor.py").write_text(CORRIDOR)
    (tmp_path / "corridor_helper.py").write_text("PRIZE = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("my_corridor", "corridor_helper"):
        sys.modules.pop(name, None)
    gymnasium.registry.pop("Corridor-v7", None)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("my_corridor.py:Corridor", None),
        ("./my_corridor.py:Corridor", None),
        ("my_corridor:Corridor", None),
        ("my_corridor.py:short", 7),
        ("my_corridor.py:Corridor-v7", 9),
        ("my_corridor:Corridor-v7", 9),
    ],
)
def test_names(folder: Path, name: str, limit: int | None) -> None:
    source = environment_source(name)
    env = source.made()
    assert type(env.unwrapped).__name__ == "Corridor"
    assert source.name == name.removeprefix("./")
    assert source.thing is None
    assert time_limit(source) == limit
    env.reset(seed=0)
    assert not any(env.step(0)[3] for _ in range(20)), "the table's horizon is the only time limit"


def test_arguments_and_wrappers(folder: Path) -> None:
    env = environment_source(
        "my_corridor.py:Corridor", {"length": 2, "prize": 5}, ["my_corridor.py:Doubled", "my_corridor.py:Doubled"]
    ).made()
    env.reset(seed=0)
    assert env.step(1)[1] == 20


def test_a_changed_file_is_loaded_again_with_its_helpers(folder: Path) -> None:
    def prize() -> Any:
        env = environment_source("my_corridor.py:Corridor", {"length": 2}).made()
        env.reset()
        return env.step(1)[1]

    assert prize() == 1
    (folder / "corridor_helper.py").write_text("PRIZE = 2\n")
    assert prize() == 2


def test_a_file_of_a_package_imports_from_its_package(folder: Path) -> None:
    """With dots, also above its own folder, and after a change."""
    (folder / "halls" / "long").mkdir(parents=True)
    for package in ("halls", "halls/long"):
        (folder / package / "__init__.py").write_text("")
    (folder / "halls" / "prizes.py").write_text("PRIZE = 4\n")
    (folder / "halls" / "long" / "hall.py").write_text(
        CORRIDOR.replace("corridor_helper", "..prizes").split("gymnasium.register")[0]
    )

    def prize() -> Any:
        env = environment_source("halls/long/hall.py:Corridor", {"length": 2}).made()
        env.reset()
        return env.step(1)[1]

    try:
        assert prize() == 4
        (folder / "halls" / "prizes.py").write_text("PRIZE = 6\n")
        assert prize() == 6
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "halls"]:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_corridor.py", r"which environment\? type my_corridor.py:Corridor"),
        ("my_corridor.py:Nope", "'Nope' is not there, nor is it registered as an id; type my_corridor.py:Corridor"),
        ("my_corridor.py:something", "'something' is no class and no function"),
        ("my_corridor.py:Corridor-v8", "not there"),
        ("nothing.py:Corridor", "no such file"),
        ("no_such_module_here:Corridor", "no module 'no_such_module_here'.*no_such_module_here.py:MyEnv"),
        ("broken.py:Corridor", "broken.py cannot be imported: ZeroDivisionError: division by zero, broken.py line 2"),
        ("typo.py:Corridor", "typo.py cannot be imported: SyntaxError.*line 1"),
        ("Nope-v3", "Nope"),
    ],
)
def test_names_that_fail(folder: Path, name: str, said: str) -> None:
    (folder / "broken.py").write_text("x = 0\n1 / x\n")
    (folder / "typo.py").write_text("def (:\n")
    with pytest.raises(SimulatorError, match=said) as error:
        environment_source(name).made()
    assert "\n" not in str(error.value)


def test_wrappers_that_fail(folder: Path) -> None:
    with pytest.raises(SimulatorError, match="not module:Wrapper"):
        environment_source("my_corridor.py:Corridor", wrappers=["Doubled"])
    with pytest.raises(SimulatorError, match="there is no 'Tripled'"):
        environment_source("my_corridor.py:Corridor", wrappers=["my_corridor.py:Tripled"]).made()
    with pytest.raises(SimulatorError, match=r"TransformReward cannot be applied.*write a function"):
        environment_source("my_corridor.py:Corridor", wrappers=["gymnasium.wrappers:TransformReward"]).made()


class Walk(gymnasium.Env[int, int]):
    """Can be imported by its name from this module."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(4)
    max_steps = 11

    def __init__(self, length: int = 4) -> None:
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.cell = max(0, self.cell + 2 * int(action) - 1)
        return self.cell, 0.0, self.cell == self.length - 1, False, {}


def test_objects() -> None:
    assert environment_source(Walk).name == f"{__name__}:Walk"
    assert environment_source(Walk).thing is None
    here = environment_source(lambda: Walk(3))
    assert here.thing is not None
    assert time_limit(here) == 11
    walk = TimeLimit(Walk(), 6)
    source = environment_source(walk)
    assert (source.name, source.thing, time_limit(source)) == ("Walk", walk, 6)
    made = source.made()
    assert made.unwrapped is not walk.unwrapped, "the user's own environment stays as it is"
    with pytest.raises(SimulatorError, match="made already"):
        environment_source(walk, {"length": 3})
    with pytest.raises(SimulatorError, match="not 3"):
        environment_source(3)  # type: ignore[arg-type]
    with pytest.raises(SimulatorError, match=r"the argument 'length'.*give a function"):
        environment_source(Walk, {"length": object()})


def test_an_id_that_only_this_process_knows() -> None:
    class Local(Walk):
        pass

    gymnasium.register("Local-v0", entry_point=Local, max_episode_steps=8)
    try:
        source = environment_source("Local-v0")
        assert source.thing is not None
        assert time_limit(source) == 8
        assert type(source.made().unwrapped) is Local
    finally:
        del gymnasium.registry["Local-v0"]


def test_ids_of_packages_that_register_when_they_are_imported() -> None:
    pytest.importorskip("minigrid")
    assert is_environment_name("MiniGrid-Empty-5x5-v0")
    assert time_limit(environment_source("MiniGrid-Empty-5x5-v0")) == 100
    assert not is_environment_name("freeway_10_fs3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Gymnasium's, when an id is registered again
        assert not is_environment_name("MiniGrid-Nope-v0")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in gymnasium.registry if name.startswith("MiniGrid-")]:
        monkeypatch.delitem(gymnasium.registry, name)
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(SimulatorError, match=r"pip install 'efhorizon\[minigrid\]'"):
        environment_source("MiniGrid-Empty-5x5-v0").made()


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 2.5, float("inf"), "text", b"raw", [1, (2, 3)], {"a": {1: 2}}, {"__tuple__": [1]}, {1, 2}, ()],
)
def test_plain_values_come_back(value: Any) -> None:
    assert from_json(as_json(value)) == value
    assert type(from_json(as_json(value))) is type(value)
    assert from_bytes(as_bytes(value)) == value


def test_arrays_come_back() -> None:
    import numpy as np

    for array in (np.arange(6, dtype=np.int16).reshape(2, 3), np.array(2.5), np.zeros((0, 2), np.float32)):
        found = from_bytes(as_bytes(array))
        assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())
    assert type(from_bytes(as_bytes(np.float32(0.1)))) is np.float32
    with pytest.raises(NotPlainError, match="object is not a plain value"):
        as_bytes([object()])
