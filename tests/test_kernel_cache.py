"""Machine code on disk: after a change in any kernel, nothing old runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

INNER = """
from efhorizon.compiled import compiled
from toy.constants import FACTOR

@compiled
def scaled(x: int) -> int:
    return {sign}x * FACTOR
"""
OUTER = """
from efhorizon.compiled import compiled
from toy.inner import scaled

@compiled
def twice(x: int) -> int:
    return 2 * scaled(x)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "constants.py").write_text("FACTOR = 10\n")
    (folder / "inner.py").write_text(INNER.format(sign=""))
    (folder / "outer.py").write_text(OUTER)
    return folder


def run(package: Path, code: str = "print(twice(3), twice.stats.cache_hits)", **variables: str) -> str:
    path = os.pathsep.join([str(package.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", f"from toy.outer import twice; {code}"],
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().replace("Counter({", "").split()[0]


def folders(package: Path) -> list[Path]:
    return sorted((package / "__pycache__/kernels").glob("toy.outer-*"))


def test_a_change_in_a_kernel_that_another_one_calls(package: Path) -> None:
    assert run(package) == "60"
    (package / "inner.py").write_text(INNER.format(sign="-"))
    assert run(package) == "-60"
    assert len(folders(package)) == 2


def test_a_change_of_a_constant_from_a_third_module(package: Path) -> None:
    assert run(package) == "60"
    (package / "constants.py").write_text("FACTOR = 11\n")
    assert run(package) == "66"


def test_a_change_of_a_constant_that_is_taken_from_its_module(package: Path) -> None:
    inner = INNER.format(sign="").replace("from toy.constants import FACTOR", "from toy import constants")
    (package / "inner.py").write_text(inner.replace("FACTOR", "constants.FACTOR"))
    assert run(package) == "60"
    (package / "constants.py").write_text("FACTOR = 11\n")
    assert run(package) == "66"


def test_code_that_did_not_change_is_not_compiled_again(package: Path) -> None:
    hits = "twice(3); print(sum(twice.stats.cache_hits.values()))"
    assert run(package, hits) == "0"
    assert run(package, hits) == "1"
    (package / "unrelated.py").write_text("x = 1\n")
    (package / "__init__.py").write_text("import toy.unrelated\n")
    assert run(package, hits) == "1"


def test_only_the_folders_used_last_are_kept(package: Path) -> None:
    for factor in range(6):
        (package / "constants.py").write_text(f"FACTOR = {factor}\n")
        assert run(package) == str(6 * factor)
    assert len(folders(package)) == 4


def test_a_package_that_cannot_be_written_to(package: Path, tmp_path: Path) -> None:
    (package / "__pycache__").write_text("a file, so no folder can be made in it")
    assert run(package, HOME=str(tmp_path / "home")) == "60"
    assert len(list((tmp_path / "home/.cache/efhorizon").glob("kernels/toy.*/toy_*/*.nbi"))) == 2


def test_without_any_place_nothing_is_kept(package: Path, tmp_path: Path) -> None:
    (package / "__pycache__").write_text("a file")
    (tmp_path / "home").write_text("a file")
    assert run(package, HOME=str(tmp_path / "home")) == "60"
