"""CONTRIBUTING.md: every worked example is run as it stands on the page, and the map shows the present folders."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE))


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", SECTIONS[section], flags=re.DOTALL | re.MULTILINE)


def written(section: str, folder: Path) -> list[Path]:
    """The files of a section; the first line of each block is a comment with its name."""
    files = []
    for text in [*blocks(section, "python"), *blocks(section, "toml")]:
        file = folder / text.splitlines()[0].removeprefix("# ")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        files.append(file)
    return files


def installed(folder: Path) -> None:
    """What `pip install .` would leave beside the package: its name, version and entry points."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def follow(section: str, folder: Path, *, python_path: Path) -> None:
    """Type the commands of a section, and find in the output of each the lines shown below it."""
    (text,) = blocks(section, "console")
    path = os.pathsep.join([str(python_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "160"}
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, flags=re.MULTILINE):
        program, *words = shlex.split(command)
        known = {"python": sys.executable, "efhorizon": str(Path(sys.executable).with_name("efhorizon"))}
        done = subprocess.run(
            [known[program], *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, (command, done.stderr)
        for line in shown.splitlines():
            assert line in done.stdout, (command, done.stdout)


def test_add_a_bound(tmp_path: Path) -> None:
    written("Add a bound", tmp_path)
    installed(tmp_path)
    follow("Add a bound", tmp_path, python_path=tmp_path)


def test_add_an_agent(tmp_path: Path) -> None:
    written("Add an agent", tmp_path)
    follow("Add an agent", tmp_path, python_path=tmp_path)


def test_add_a_suite(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    written("Add a suite", tmp_path)
    installed(tmp_path)
    follow("Add a suite", tmp_path, python_path=tmp_path)


def test_add_a_command(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    written("Add a command", tmp_path)
    follow("Add a command", tmp_path, python_path=tmp_path / "src")


def test_every_block_of_python_is_run() -> None:
    assert {name for name in SECTIONS if blocks(name, "python")} == {
        "Add a bound",
        "Add an agent",
        "Add a suite",
        "Add a command",
    }


@pytest.mark.parametrize("section", ["Add a bound", "Add an agent", "Add a suite", "Add a command"])
def test_examples_pass_the_linter(section: str, tmp_path: Path) -> None:
    files = [file for file in written(section, tmp_path) if file.suffix == ".py"]
    for words in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--config", str(ROOT / "pyproject.toml")]
        ruff += ["--config", 'lint.isort.known-first-party = ["efhorizon"]', *map(str, files)]
        done = subprocess.run(ruff, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_the_map_shows_the_folders_that_there_are() -> None:
    shown = re.findall(r"^\| `(\w+)/`", SECTIONS["A map of the code"], re.MULTILINE)
    package = ROOT / "src" / "efhorizon"
    assert set(shown) == {path.parent.name for path in package.glob("*/__init__.py")}
