"""A diagnosis on a real Ray cluster of two nodes is the local one, also if a node is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ray_cluster import two_nodes

from efhorizon.diagnose.diagnosing import diagnosed
from efhorizon.diagnose.subject import subject_of
from efhorizon.diagnose.survey import Settings
from efhorizon.engines.choice import EngineChoice

pytest.importorskip("ray")


def test_two_nodes_find_what_one_process_finds(tmp_path: Path) -> None:
    subject = subject_of("FrozenLake-v1", horizon=12)
    settings = Settings(horizon=12, seed=4, max_k=1, max_steps=6_000)
    expected = {**diagnosed(subject, settings).as_json(), "seconds": 0}
    with two_nodes() as (cluster, second):
        removed = []

        def on_progress(findings: object, doing: str) -> None:
            if doing.startswith("GORP") and not removed:
                removed.append(doing)
                cluster.remove_node(second)

        found = diagnosed(
            subject,
            settings,
            engine=EngineChoice("ray", cluster.address, workers=2),
            log_path=tmp_path / "log.jsonl",
            on_progress=on_progress,
        )
    assert removed
    assert json.dumps({**found.as_json(), "seconds": 0}) == json.dumps(expected)
