"""Suites of other packages: found by their entry points, left out with one line where they cannot be used."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from efhorizon import catalog
from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.suites import registry
from efhorizon.suites.drawing import drawn
from efhorizon.suites.entry import Entry
from efhorizon.suites.registry import BUILT_IN, SuiteWarning
from efhorizon.suites.specification import SimulatorSpec
from efhorizon.suites.suite import Suite


class Plugin(Suite):
    """One made for a test."""

    def __init__(self, name: str = "plugin", names: tuple[str, ...] = ("Plugin-v0",), suite: str | None = None) -> None:
        self.name, self.title, self._names, self._suite = name, name.title(), names, suite or name

    def entries(self) -> Iterator[Entry]:
        for name in self._names:
            yield Entry(name, self._suite, "game", 5, 1, 2)


class Failing(Plugin):
    def entries(self) -> Iterator[Entry]:
        raise ValueError("no facts\nand more")


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module whose attributes are offered as suites, each by an entry point of its name."""
    module = types.ModuleType("plugins_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "_added", {})

    def points() -> tuple[EntryPoint, ...]:
        names = [name for name in vars(module) if not name.startswith("_")]
        return tuple(EntryPoint(name, f"{module.__name__}:{name}", registry.GROUP) for name in names)

    monkeypatch.setattr(registry, "_entry_points", points)
    return module


def test_a_suite_is_added(plugins: Any) -> None:
    plugins.mine = Plugin()
    assert registry.suites() == (*BUILT_IN, plugins.mine)
    assert registry.suite("plugin") is plugins.mine
    assert catalog.suite_names() == ("atari", "procgen", "minigrid", "plugin")
    assert [entry.name for entry in catalog.entries("plugin")] == ["Plugin-v0"]
    assert catalog.entries()[-1] is catalog.entry("Plugin-v0")


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (Plugin, "TypeError: its entry point is <class .*Plugin'>, not an instance of"),
        (Plugin("minigrid"), "TypeError: there is a suite called 'minigrid' already"),
        (Plugin(suite="other"), "TypeError: Entry.* is not an entry of the suite 'plugin'"),
        (Failing(), "ValueError: no facts$"),
    ],
)
def test_a_broken_one_is_left_out_with_one_line(plugin: object, reason: str, plugins: Any) -> None:
    plugins.broken, plugins.whole = plugin, Plugin("whole", ("Whole-v0",))
    with pytest.warns(SuiteWarning, match=f"the suite 'broken' of plugins_of_a_test is left out: {reason}") as caught:
        assert registry.suites() == (*BUILT_IN, plugins.whole)
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert registry.suites() == (*BUILT_IN, plugins.whole)  # and says so once
    assert catalog.entry("Whole-v0").suite == "whole"


def test_the_first_of_two_with_one_name_counts(plugins: Any) -> None:
    plugins.one, plugins.two = Plugin(), Plugin(names=())
    with pytest.warns(SuiteWarning, match="'two' .*there is a suite called 'plugin' already"):
        assert registry.suite("plugin") is plugins.one


def test_no_entry_takes_the_name_of_another(plugins: Any) -> None:
    plugins.mine = Plugin(names=("pong_10_fs30", "Plugin-v0"))
    with pytest.warns(SuiteWarning, match="'pong_10_fs30' of the suite 'plugin' is left out: 'atari' has that name"):
        assert catalog.entry("pong_10_fs30").suite == "atari"
    assert catalog.entry("Plugin-v0").suite == "plugin"


def test_a_plugin_that_is_still_being_imported_is_taken_up_later(plugins: Any) -> None:
    plugins.mine = Plugin()
    plugins.__spec__ = types.SimpleNamespace(_initializing=True)
    assert registry.suites() == BUILT_IN
    plugins.__spec__ = None
    assert registry.suites() == (*BUILT_IN, plugins.mine)


def test_a_suite_that_is_not_installed_can_be_spoken_about() -> None:
    lost = registry.suite("lost")
    assert (lost.name, lost.title, lost.network("game"), lost.discount) == ("lost", "lost", "image", 1.0)
    assert lost.action_names("game") == ()
    with pytest.raises(EfhorizonError, match="unknown suite 'lost': is the package that adds it installed"):
        SimulatorSpec("lost")()
    with pytest.raises(InvalidTableError, match=r"stored as .cells. cannot be drawn: .* adds lost installed"):
        drawn(None, {"suite": "lost", "screen_format": "cells"})  # type: ignore[arg-type]


def test_importing_the_registry_imports_no_simulator() -> None:
    program = (
        "import sys, efhorizon; efhorizon.entries()\n"
        "print([name for name in ('ale_py', 'procgen', 'minigrid', 'torch', 'cv2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
