"""Which simulator a table comes from: a small value that can be pickled to workers and written into provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module, metadata
from typing import Any

from efhorizon import catalog
from efhorizon.io.behaviour import version_name
from efhorizon.suites.simulator import Simulator, SimulatorError

# suite -> module of its simulator, and packages that it runs on
_MODULES = {
    "atari": "efhorizon.suites.atari",
    "procgen": "efhorizon.suites.procgen",
    "minigrid": "efhorizon.suites.minigrid",
    "gymnasium": "efhorizon.suites.gymnasium",
}
_PACKAGES = {
    "atari": ("ale-py",),
    "procgen": ("procgen-mirror",),
    "minigrid": ("minigrid", "gymnasium"),
    "gymnasium": ("gymnasium",),
}


@dataclass(frozen=True)
class SimulatorSpec:
    """How to make a simulator; calling it makes one."""

    suite: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    replay: bool = False  # reach states by replaying actions from reset, where restoring is inexact

    def __call__(self) -> Simulator:
        simulator = self._made()
        if self.replay:
            from efhorizon.suites.replay import ReplaySimulator

            return ReplaySimulator(simulator)
        return simulator

    def replayed(self) -> SimulatorSpec:
        return replace(self, replay=True)

    def provenance(self, simulator: Simulator) -> dict[str, Any]:
        """Everything on which the simulator's behaviour depends."""
        return {
            "suite": self.suite,
            "arguments": dict(self.arguments),
            "replay": self.replay,
            "packages": {name: metadata.version(name) for name in _PACKAGES[self.suite]},
            "code": version_name(self.suite, import_module(_MODULES[self.suite]).BEHAVIOUR),
            "rom_md5": getattr(simulator, "rom_md5", None),
        }

    def _made(self) -> Simulator:
        if self.suite == "atari":
            from efhorizon.suites.atari import AtariSimulator

            return AtariSimulator(**self.arguments)
        if self.suite == "procgen":
            from efhorizon.suites.procgen import ProcgenSimulator

            return ProcgenSimulator(**self.arguments)
        if self.suite == "minigrid":
            from efhorizon.suites.minigrid import MiniGridSimulator

            return MiniGridSimulator(**self.arguments)
        if self.suite == "gymnasium":
            from efhorizon.suites.gymnasium import gymnasium_simulator

            return gymnasium_simulator(**self.arguments)
        raise SimulatorError(f"unknown suite {self.suite!r}")


def spec_of(entry: catalog.Entry) -> SimulatorSpec:
    """The simulator of a catalogue entry."""
    if entry.suite == "atari":
        # Skiing alone plays on after its last step, so its states depend on the horizon
        final = {"final_noops_after": entry.horizon} if entry.game == "skiing" else {}
        return SimulatorSpec("atari", {"game": entry.game, "frameskip": entry.frameskip, **final})
    if entry.suite == "procgen":
        return SimulatorSpec(
            "procgen",
            {
                "game": entry.game,
                "difficulty": entry.difficulty,
                "level": entry.level,
                "frameskip": entry.frameskip,
                "num_actions": entry.num_actions,
            },
        )
    return SimulatorSpec("minigrid", {"env_id": entry.game, "shaping": entry.shaping})


def gymnasium_spec(env_id: str, arguments: Mapping[str, Any] | None = None) -> SimulatorSpec:
    """The simulator of any registered Gymnasium environment."""
    return SimulatorSpec("gymnasium", {"env_id": env_id, "arguments": dict(arguments or {})})


def spec_digest(provenance: Mapping[str, Any]) -> str:
    """A short name for one provenance."""
    return hashlib.sha256(json.dumps(provenance, sort_keys=True).encode()).hexdigest()[:12]
