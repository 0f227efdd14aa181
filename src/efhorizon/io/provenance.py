"""Where a table comes from: everything on which its simulator's behaviour depends, and a short name for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from efhorizon.io.behaviour import version_name
from efhorizon.io.sources import code_digests, package_versions, source_digests
from efhorizon.suites import registry
from efhorizon.suites.simulator import Simulator
from efhorizon.suites.specification import SimulatorSpec


def simulator_provenance(spec: SimulatorSpec, simulator: Simulator) -> dict[str, Any]:
    """Suite, arguments, packages, behaviour version and ROM of a simulator that `spec` made.

    Of an environment that the user wrote also `source`, a digest for each of its files; and if it was given as an
    object in Python, `start`, the state in which it starts: no name tells how it was made.
    """
    suite = registry.suite(spec.suite)
    objects = getattr(simulator, "source_objects", ())
    packages = {name: metadata.version(name) for name in suite.packages}
    provenance: dict[str, Any] = {
        "suite": spec.suite,
        "arguments": dict(spec.arguments),
        "replay": spec.replay,
        "packages": package_versions(objects) | packages,
        "code": version_name(suite.name, suite.behaviour_of(spec.arguments)),
        "rom_md5": getattr(simulator, "rom_md5", None),
    }
    source = source_digests(objects) | (code_digests(objects) if spec.in_process else {})
    if source:
        provenance["source"] = source
    if spec.in_process:
        simulator.reset()
        provenance["start"] = hashlib.sha256(simulator.identity(simulator.get_state())).hexdigest()[:16]
    return provenance


def provenance_digest(provenance: Mapping[str, Any]) -> str:
    """A short name for one provenance."""
    return hashlib.sha256(json.dumps(provenance, sort_keys=True).encode()).hexdigest()[:12]


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two provenances, in a few words each."""
    found = []
    for part in ("source", "packages"):
        then, present = before.get(part) or {}, now.get(part) or {}
        found += [name for name in sorted({*then, *present}) if then.get(name) != present.get(name)]
    words = {
        "arguments": "its arguments",
        "code": "the version of efhorizon",
        "replay": "how its states are restored",
        "rom_md5": "the ROM",
        "start": "its start state",
    }
    return found + [text for part, text in words.items() if before.get(part) != now.get(part)]
