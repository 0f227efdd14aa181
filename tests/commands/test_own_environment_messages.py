"""What the command line says of an environment that does not work: one line, with what to type or where to look."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gymnasium
import pytest

from efhorizon.commands import main

CORRIDORS = """
import gymnasium
from gymnasium import spaces


class Corridor(gymnasium.Env):
    def __init__(self, length=4):
        self.length = length
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Discrete(length)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        self.cell = max(0, self.cell + 2 * int(action) - 1)
        done = self.cell == self.length - 1
        return self.cell, float(done), done, False, {}


class Forbids(Corridor):
    def step(self, action):
        if self.cell == 2 and action == 0:
            raise ValueError("no way back")
        return super().step(action)


class Unpaid(Corridor):
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, None, *rest


class Older(Corridor):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class Snapshots(Forbids):
    def get_state(self):
        return self.cell

    def set_state(self, state):
        self.cell = state


class Unclosed(Corridor):
    def close(self):
        raise RuntimeError("it cannot be closed")


class Talks(Corridor):
    def step(self, action):
        print("stepping")
        return super().step(action)


class Wraps(gymnasium.RewardWrapper):
    pass


class Remembers(Corridor):
    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        return (super().reset(seed=seed)[0] + self.episodes) % 4, {}


def factory(length, *, kind):
    return kind(length)
"""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("my_own.py:Corridor", 1, "my_own.py:Corridor: it has no time limit; say how long an episode is"),
        ("my_own.py:Corridor:factory --horizon 3", 1, "my_own.py:Corridor:factory: "),  # :factory: is no emoji
        ("my_own.py:factory --horizon 3", 1, "argument: 'kind'; give it with --env-arg KEY=VALUE"),
        ("my_own.py:Forbids --horizon 6", 1, "action 0 after actions ["),
        ("my_own.py:Forbids --horizon 6", 1, "failed: ValueError: no way back (my_own.py, line "),
        ("my_own.py:Snapshots --horizon 6", 1, "Snapshots: action 0 failed: ValueError: no way back"),
        ("my_own.py:Unpaid --horizon 6", 1, "action 0 after actions []: the reward is None, which is not a number"),
        ("my_own.py:Older --horizon 6", 1, "reset must return (observation, info)"),
        ("my_own.py:Wraps --horizon 6", 1, "name what it wraps, and add --wrapper my_own.py:Wraps"),
        ("my_own.py:Remembers --horizon 6", 1, "keep nothing of earlier episodes"),
        ("Taxi-v3", 2, "no environment is called 'Taxi-v3'; closest: Taxi-v4"),
        ("freeway_10_fs30 --env-arg a=1", 2, "freeway_10_fs30 is a name of the catalogue, which takes none"),
    ],
)
def test_one_line_that_helps(
    words: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "my_own.py").write_text(CORRIDORS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    if "factory" in words:
        words = words.replace("--horizon", "--env-arg length=3 --horizon")
    assert main(["build", *words.split(), "--workers", "1"]) == code
    (error,) = capsys.readouterr().err.strip().splitlines()
    assert said in error


def test_what_an_environment_prints_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process and in the workers. That it cannot be closed does not matter either."""
    (tmp_path / "talking.py").write_text(CORRIDORS + "\n\nclass Both(Talks, Unclosed):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["build", "talking.py:Both", "--horizon", "4", "--workers", "2", "--json"]) == 0
    shown = capfd.readouterr()
    assert json.loads(shown.out)["num_states"] == 3
    assert "stepping" in shown.err


def test_names_with_colons_print_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    from efhorizon.commands._terminal import say, show

    say("my_own.py:factory: no such thing")
    show(["my_own.py:factory: no such thing"])
    shown = capsys.readouterr()
    assert shown.out == shown.err == "my_own.py:factory: no such thing\n"


def test_box2d_is_an_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(gymnasium.envs, "box2d", None, raising=False)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    assert main(["build", "LunarLander-v3", "--horizon", "2", "--workers", "1"]) == 1
    assert "pip install 'efhorizon[box2d]'" in capsys.readouterr().err
