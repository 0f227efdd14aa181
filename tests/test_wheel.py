"""What `pip install` gets: the wheel and the sdist hold the whole package, and run from where they are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that a build reads, apart from the checkout, where builds leave folders behind."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return folder


def built(what: str, sources: Path, out: Path) -> Path:
    """A wheel or an sdist made by the project's own build backend."""
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, f"build_{what}", str(out)], cwd=sources, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


def modules_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("efhorizon/")}


def test_the_wheel_has_every_file_of_the_package(sources: Path, tmp_path: Path) -> None:
    package = ROOT / "src" / "efhorizon"
    wanted = {
        f"efhorizon/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert modules_in(built("wheel", sources, tmp_path)) == wanted


def test_a_wheel_made_from_the_sdist_is_the_same_and_runs(sources: Path, tmp_path: Path) -> None:
    sdist = built("sdist", sources, tmp_path)
    shutil.unpack_archive(sdist, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheel = built("wheel", unpacked, tmp_path)
    assert modules_in(wheel) == modules_in(built("wheel", sources, tmp_path / "again"))
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    code = "import efhorizon; print(efhorizon.__file__); from efhorizon.__main__ import main; main(['list', '--json'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(installed)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    assert "freeway_10_fs30" in done.stdout
