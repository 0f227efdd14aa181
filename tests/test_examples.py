"""Every script of examples/ runs by itself in an empty folder, is short, and prints what its first lines promise."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
MAX_LINES = 40


def output(script: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{script}.py"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(pattern, text)]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_short_and_say_what_they_show(script: str) -> None:
    text = (EXAMPLES / f"{script}.py").read_text()
    assert len(text.splitlines()) <= MAX_LINES
    assert re.search(r"\b[Pp]rints\b", ast.get_docstring(ast.parse(text)) or "")
    assert f"test_{script}" in globals()  # its output is checked below


def test_own_mdp(tmp_path: Path) -> None:
    said = output("own_mdp", tmp_path)
    assert "H = 6.81 (exact): k = 4, m = 7, 7,168 timesteps" in said
    assert 8**2 * 2**4 * 7 == 7168  # T^2 A^k m


def test_own_environment(tmp_path: Path) -> None:
    assert output("own_environment", tmp_path) == "9 states, H = 3.00 (exact), 3,200 timesteps\n"


def test_own_environment_from_the_shell(tmp_path: Path) -> None:
    """The two commands of its first lines, in another process and another folder than the module's."""
    python_path = os.pathsep.join([str(EXAMPLES), *filter(None, [os.environ.get("PYTHONPATH")])])
    said = ""
    for words in (
        "build --env own_environment:Corridor-v0 --horizon 20",
        "analyze own_environment_Corridor-v0-T20",
    ):
        assert words in (EXAMPLES / "own_environment.py").read_text()
        done = subprocess.run(
            [Path(sys.executable).with_name("efhorizon"), *words.split()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": python_path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        said += done.stdout
    assert "Effective horizon = 3.00 of 20" in said


def test_reward_shaping(tmp_path: Path) -> None:
    said = output("reward_shaping", tmp_path)
    corridor, shaped_corridor, lock, shaped_lock = numbers(r"H = ([\d.]+)", said)
    assert shaped_corridor < corridor
    assert shaped_lock > lock


def test_gorp_runs(tmp_path: Path) -> None:
    enough, one_less = numbers(r": ([\d.]+) of the runs", output("gorp_runs", tmp_path))
    assert one_less < 0.5 <= enough


def test_sb3_regret(tmp_path: Path) -> None:
    """Stable-Baselines3 imports the old `gym` if it is installed, which complains on stderr."""
    pytest.importorskip("stable_baselines3")
    script = EXAMPLES / "sb3_regret.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, last, learnt = numbers(r"(\d\.\d{3})", done.stdout)
    assert last < first
    assert learnt == 0.0


def test_own_bound(tmp_path: Path) -> None:
    said = output("own_bound", tmp_path)
    assert said.splitlines()[-1].split() == ["waiting", "for", "a", "lucky", "episode", f"{8 * 3**8:,}"]
    assert "effective horizon, GORP" in said


def test_published_study(tmp_path: Path) -> None:
    if not (EXAMPLES.parent / "data" / "study").exists():
        pytest.skip("no study is committed yet (data/study)")
    said = output("published_study", tmp_path)
    assert "PPO solved 37 of 46 gridworlds; Spearman 0.87" in said
    assert "DQN solved 35 of 46 gridworlds; Spearman 0.83" in said
    page = (EXAMPLES.parent / "docs" / "study.md").read_text()
    assert "0.87" in page
    assert "0.83" in page
