"""Which simulator a table comes from: a small value that can be pickled to workers and written into provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.gymnasium import GYMNASIUM
from efhorizon.suites.replay import ReplaySimulator
from efhorizon.suites.simulator import Simulator


@dataclass(frozen=True)
class SimulatorSpec:
    """How to make a simulator; calling it makes one."""

    suite: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    replay: bool = False  # reach states by replaying actions from reset, where restoring is inexact

    def __call__(self) -> Simulator:
        simulator = registry.suite(self.suite).simulator(**self.arguments)
        return ReplaySimulator(simulator) if self.replay else simulator

    def replayed(self) -> SimulatorSpec:
        return replace(self, replay=True)


def spec_of(entry: Entry) -> SimulatorSpec:
    """The simulator of a catalogue entry."""
    return SimulatorSpec(entry.suite, registry.suite(entry.suite).arguments(entry))


def gymnasium_spec(env_id: str, arguments: Mapping[str, Any] | None = None) -> SimulatorSpec:
    """The simulator of any registered Gymnasium environment."""
    return SimulatorSpec(GYMNASIUM.name, {"env_id": env_id, "arguments": dict(arguments or {})})
