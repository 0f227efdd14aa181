"""What pyproject.toml asks for: current Pythons, numpy 1.26 or 2, Procgen and Box2D from packages that have wheels."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

PROJECT: dict[str, Any] = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11", "3.12", "3.13")


@pytest.mark.parametrize("numpy", ["1.26.4", "2.0.0", "2.5.4"])
def test_the_core_takes_numpy_of_both_kinds(numpy: str) -> None:
    core = {found.name: found.specifier for found in map(Requirement, PROJECT["dependencies"])}
    assert core["numpy"].contains(numpy)


@pytest.mark.parametrize("python", PYTHONS)
def test_procgen_has_a_wheel_for_every_python(python: str) -> None:
    """procgen-mirror has none for 3.13, and asks for numpy < 2."""
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    asked = [Requirement(text) for text in PROJECT["optional-dependencies"]["procgen"]]
    here = {"python_version": python}
    chosen = [found.name for found in asked if found.marker is None or found.marker.evaluate(here)]
    assert chosen == ["procgen-gym" if python == "3.13" else "procgen-mirror"]


def test_box2d_comes_with_a_wheel() -> None:
    """Before 1.2.3, the extra of Gymnasium's compiled box2d-py."""
    (asked,) = map(Requirement, PROJECT["optional-dependencies"]["box2d"])
    assert (asked.name, asked.extras) == ("gymnasium", {"box2d"})
    assert not asked.specifier.contains("1.2.0")
    assert asked.specifier.contains("1.4.0")
