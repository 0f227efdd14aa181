"""docs/own-environment.md: its files and commands work as they stand on the page, from an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import efhorizon as ef
from efhorizon.suites.action_names import action_names

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "own-environment.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def write_files(folder: Path) -> None:
    """The first line of a file on the page is a comment with its name."""
    for text in blocks("python"):
        if text.startswith("# "):
            (folder / text.splitlines()[0].removeprefix("# ")).write_text(text)


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """With no PYTHONPATH but the one that these tests run with."""
    write_files(tmp_path)
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), flags=re.MULTILINE)
    assert len(commands) == 4
    typed = re.search(r"`(efhorizon verify [^`]*)`", PAGE)
    assert typed is not None
    for command, shown in [*commands, (typed[1], "exact, all 120 pairs of 30 states")]:
        program, *words = shlex.split(command)
        known = {"python": [sys.executable], "efhorizon": [sys.executable, "-m", "efhorizon"]}
        done = subprocess.run(
            [*known[program], *words],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "160"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, (command, done.stderr)
        for line in shown.splitlines():
            assert line in done.stdout, (command, done.stdout)


def test_the_snapshots_of_the_page(tmp_path: Path) -> None:
    """The two methods belong to the class of the example."""
    (methods,) = [text for text in blocks("python") if "def get_state" in text]
    space: dict[str, Any] = {"__name__": "key_grid"}
    (example,) = [text for text in blocks("python") if text.startswith("# key_grid.py")]
    exec(example, space)
    exec("class Saved(KeyGrid):\n" + textwrap.indent(methods, "    "), space)

    from efhorizon.suites.gymnasium import GYMNASIUM
    from efhorizon.suites.gymnasium_simulator import SnapshotSimulator, gymnasium_simulator

    simulator = gymnasium_simulator("Saved", thing=space["Saved"])
    assert isinstance(simulator, SnapshotSimulator)
    report = GYMNASIUM.restore_report(
        lambda: gymnasium_simulator("Saved", thing=space["Saved"]), 20, np.random.default_rng(0)
    )
    assert report.exact


def test_the_wrapper_of_the_page(tmp_path: Path) -> None:
    """It numbers the combinations of a MultiDiscrete action, and names them."""
    (wrapper,) = [text for text in blocks("python") if text.startswith("# flat_actions.py")]
    space: dict[str, Any] = {}
    exec(wrapper, space)

    class Lock(gymnasium.Env[int, Any]):
        """[1, 2] opens it, which pays 1."""

        action_space = gymnasium.spaces.MultiDiscrete([2, 3])
        observation_space = gymnasium.spaces.Discrete(1)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            return 0, {}

        def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
            opens = bool(self.action_space.contains(action)) and action.tolist() == [1, 2]
            return 0, float(opens), opens, False, {}

    mdp = ef.build(space["FlatActions"](Lock()), horizon=2, out=tmp_path)
    assert mdp.rewards.tolist() == [[0, 0, 0, 0, 0, 1]]
    assert action_names(mdp.metadata, 6)[5] == "(1, 2)"
