"""Memory and cores of this machine."""

from __future__ import annotations

import os

import psutil
import pytest

from efhorizon.io import machine


def test_memory() -> None:
    assert 0 < machine.available_memory() <= psutil.virtual_memory().total


def test_cores() -> None:
    assert machine.num_cores() >= 1
    assert all(isinstance(core, int) for core in machine.usable_cores())


def test_cores_where_the_system_does_not_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert machine.usable_cores() == []
    assert machine.num_cores() == (os.cpu_count() or 1)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.num_cores() == 1
