"""Where a table comes from: everything on which its simulator's behaviour depends, and a short name for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from efhorizon.io.behaviour import version_name
from efhorizon.suites import registry
from efhorizon.suites.simulator import Simulator
from efhorizon.suites.specification import SimulatorSpec


def simulator_provenance(spec: SimulatorSpec, simulator: Simulator) -> dict[str, Any]:
    """Suite, arguments, packages, behaviour version and ROM of a simulator that `spec` made."""
    suite = registry.suite(spec.suite)
    return {
        "suite": spec.suite,
        "arguments": dict(spec.arguments),
        "replay": spec.replay,
        "packages": {name: metadata.version(name) for name in suite.packages},
        "code": version_name(suite.name, suite.behaviour_of(spec.arguments)),
        "rom_md5": getattr(simulator, "rom_md5", None),
    }


def provenance_digest(provenance: Mapping[str, Any]) -> str:
    """A short name for one provenance."""
    return hashlib.sha256(json.dumps(provenance, sort_keys=True).encode()).hexdigest()[:12]
