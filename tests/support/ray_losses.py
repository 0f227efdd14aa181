"""Builds on two nodes of which something is lost on the way: for tests and `benchmarks/ray_owners.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray_cluster import two_nodes

from efhorizon.build.explore import Progress
from efhorizon.build.parts import read_manifest
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import Target
from efhorizon.engines.choice import EngineChoice
from efhorizon.mdp import TabularMDP

WORKERS = OWNERS = 2


def built(
    target: Target, out: Path, engine: EngineChoice, on_progress: Callable[[Progress], None] = lambda _: None
) -> tuple[TabularMDP, str]:
    """The table, not verified, and what was said about going back after a loss; empty if nothing was lost."""
    said: list[str] = []
    options = Options(out=out, verify_episodes=0, num_workers=WORKERS, engine=engine)
    result = build(target, options, on_progress=on_progress, on_message=said.append)
    assert result.mdp is not None
    return result.mdp, next((line for line in said if "going back to layer" in line), "")


def on_ray(address: str, owners: int = OWNERS) -> EngineChoice:
    return EngineChoice("ray", address, owners=owners, workers=WORKERS)


def with_a_node_lost(target: Target, out: Path, depth: int) -> tuple[TabularMDP, str]:
    """The second node is removed in the middle of the first layer from `depth` on."""
    removed: list[int] = []
    with two_nodes() as (cluster, second):

        def on_progress(progress: Progress) -> None:
            starts = progress.layer_starts
            if not removed and progress.depth >= depth and starts[-2] < progress.num_expanded < starts[-1]:
                removed.append(progress.depth)
                cluster.remove_node(second)

        mdp, said = built(target, out, on_ray(cluster.address), on_progress)
    assert removed, f"no layer from {depth} on was met half-way"
    assert said, "the loss was not noticed"
    return mdp, said


def with_the_driver_killed(name: str, horizon: int, out: Path, depth: int) -> dict[str, Any]:
    """`kill -9` of the command once `depth` layers are complete, and the same command again: what it prints."""
    with two_nodes() as (cluster, _):
        command = [sys.executable, "-m", "efhorizon", "build", name, "--horizon", str(horizon), "--out", "tables"]
        command += ["--engine", "ray", "--address", cluster.address, "--owners", str(OWNERS)]
        command += ["--workers", str(WORKERS), "--episodes", "0", "--json"]
        driver = subprocess.Popen(command, cwd=out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while driver.poll() is None and _complete_layers(out / "tables") < depth:
            time.sleep(0.05)
        assert driver.poll() is None, "the driver ended before it could be killed"
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        done = subprocess.run(command, cwd=out, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _complete_layers(tables: Path) -> int:
    manifests = [read_manifest(folder) for folder in (tables / "searches").glob("*")]
    return max((manifest.complete_horizon for manifest in manifests if manifest is not None), default=0)
