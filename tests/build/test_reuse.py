"""Nothing old is silently reused: an environment that has changed gives another table, or says what to type."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from efhorizon.build.pipeline import BuildResult, Options, build
from efhorizon.build.reuse import ChangedEnvironmentError
from efhorizon.build.target import gymnasium_target
from efhorizon.io.sources import source_digests

GRID = '''
"""A file of the user's."""

import json
from pathlib import Path

import gymnasium

from grid_rules import moved


class Grid(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(5)

    def __init__(self):
        self.prizes = json.loads(Path("prizes.json").read_text())

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        self.cell = moved(self.cell, action)
        at_goal = self.cell == 4
        return self.cell, 1 + self.prizes["goal"] if at_goal else 0, at_goal, False, {}
'''
RULES = "def moved(cell, action):\n    return max(0, cell + (1 if action else -1))\n"


class Grid(gymnasium.Env[Any, Any]):
    """The same, here in memory."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(50)

    def __init__(self, prize: float = 1.0) -> None:
        self.prize, self.cell = prize, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        self.cell = max(0, self.cell + 2 * int(action) - 1)
        return self.cell, float(self.cell == 4) * self.prize, self.cell == 4, False, {}


PRIZES = {"goal": 1.0}


class Outside(Grid):
    """What it pays is neither in its source nor in its attributes."""

    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return (observation, reward * PRIZES["goal"], *rest)


def built(thing: Any, out: Path, **options: Any) -> BuildResult:
    return build(gymnasium_target(thing, horizon=8), Options(out=out, **options))


def largest_reward(result: BuildResult) -> float:
    assert result.mdp is not None
    return float(np.max(result.mdp.rewards))


def test_every_change_of_a_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reward in the file, a module beside it, and data that no source shows; all in one process."""

    def build_it(**options: Any) -> BuildResult:
        return built("changing_grid.py:Grid", tmp_path / "tables", verify_episodes=0, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "changing_grid.py").write_text(GRID)
    (tmp_path / "grid_rules.py").write_text(RULES)
    (tmp_path / "prizes.json").write_text('{"goal": 0}')
    assert (largest_reward(build_it()), build_it().outcome.progress.num_pairs) == (1, 0)

    (tmp_path / "changing_grid.py").write_text(GRID.replace("1 + self.prizes", "2 + self.prizes"))
    changed = build_it()
    assert (largest_reward(changed), changed.outcome.progress.num_pairs) == (2, 8)
    name = "changing_grid_Grid-T8"
    assert changed.notices == (f"{name}: changing_grid.py changed since this table was built, so it is built again",)

    (tmp_path / "grid_rules.py").write_text(RULES.replace("cell + (1", "cell + (2"))
    moved = build_it()
    assert moved.mdp is not None
    assert moved.mdp.num_states > 4
    assert moved.notices == (f"{name}: grid_rules.py changed since this table was built, so it is built again",)

    (tmp_path / "prizes.json").write_text('{"goal": 5}')
    with pytest.raises(ChangedEnvironmentError, match=r"does not do what it did when it was searched.*add --rebuild"):
        build_it()
    assert largest_reward(build_it(rebuild=True)) == 7


def test_a_comment_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "quiet_env.py"
    monkeypatch.syspath_prepend(tmp_path)
    digests = []
    for text in ("def make():\n    return 1\n", "# a comment\ndef make():\n    '''Why.'''\n    return 1\n"):
        file.write_text(text)
        sys.modules.pop("quiet_env", None)
        digests.append(source_digests([__import__("quiet_env").make]))
    del sys.modules["quiet_env"]
    assert len(digests[0]) == 1
    assert digests[0] == digests[1]


def test_objects_in_python(tmp_path: Path) -> None:
    """An environment that was made, and functions that make one, in this process."""
    first = built(Grid(), tmp_path)
    assert largest_reward(first) == 1
    assert first.id == "Grid-T8"
    assert built(Grid(), tmp_path).outcome.progress.num_pairs == 0
    double = built(Grid(2.0), tmp_path)
    assert largest_reward(double) == 2
    assert double.notices == ("Grid-T8: its start state changed since this table was built, so it is built again",)
    assert largest_reward(built(lambda: Grid(3.0), tmp_path)) == 3


def test_what_changed_outside_is_found_by_replaying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert largest_reward(built(Outside(), tmp_path)) == 1
    monkeypatch.setitem(PRIZES, "goal", 4.0)
    with pytest.raises(ChangedEnvironmentError, match=r"after actions \[1, 1, 1, 1\] the reward is 4, and was 1"):
        built(Outside(), tmp_path)
    assert largest_reward(built(Outside(), tmp_path, rebuild=True)) == 4


def test_a_table_without_its_search_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    built(Outside(), tmp_path)
    shutil.rmtree(tmp_path / "searches")
    monkeypatch.setitem(PRIZES, "goal", 4.0)
    assert largest_reward(built(Outside(), tmp_path)) == 4


class Anywhere(Grid):
    """Starts somewhere."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(4))
        return self.cell, {}


def test_seeds_are_several_tables(tmp_path: Path) -> None:
    targets = [gymnasium_target(Anywhere(), horizon=6, seed=seed) for seed in (0, 1)]
    assert [target.id for target in targets] == ["Anywhere-T6", "Anywhere-seed1-T6"]
    first, other = (build(target, Options(out=tmp_path)) for target in targets)
    assert first.mdp is not None
    assert other.mdp is not None
    assert ("seed" in first.mdp.metadata, other.mdp.metadata["seed"]) == (False, 1)
    assert first.mdp.fingerprint() != other.mdp.fingerprint()
    assert first.notices[0].endswith("this is the start of seed 0; for others add --seed 1,2,3")
    assert other.notices == ()
