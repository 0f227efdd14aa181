"""Which simulator a table comes from: a small value that can be pickled to workers and written into provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.environment_source import EnvironmentSource
from efhorizon.suites.gymnasium import GYMNASIUM
from efhorizon.suites.gymnasium_simulator import SEED
from efhorizon.suites.simulator import Simulator


@dataclass(frozen=True)
class SimulatorSpec:
    """How to make a simulator; calling it makes one."""

    suite: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    replay: bool = False  # reach states by replaying actions from reset, where restoring is inexact
    things: Mapping[str, Any] = field(default_factory=dict)  # more arguments, which cannot leave this process

    def __call__(self) -> Simulator:
        suite = registry.suite(self.suite)
        make = suite.replaying_simulator if self.replay else suite.simulator
        return make(**self.arguments, **self.things)

    @property
    def in_process(self) -> bool:
        """Whether simulators can be made in this process only."""
        return bool(self.things)

    def replayed(self) -> SimulatorSpec:
        return replace(self, replay=True)


def spec_of(entry: Entry) -> SimulatorSpec:
    """The simulator of a catalogue entry."""
    return SimulatorSpec(entry.suite, registry.suite(entry.suite).arguments(entry))


def gymnasium_spec(source: EnvironmentSource, *, seed: int = SEED, fixed_noise: bool = False) -> SimulatorSpec:
    """The simulator of any Gymnasium environment."""
    arguments: dict[str, Any] = {"env_id": source.name, "arguments": dict(source.arguments)}
    if source.wrappers:
        arguments["wrappers"] = list(source.wrappers)
    if seed != SEED:
        arguments["seed"] = seed
    if fixed_noise:
        arguments["fixed_noise"] = True
    return SimulatorSpec(GYMNASIUM.name, arguments, things={} if source.thing is None else {"thing": source.thing})
