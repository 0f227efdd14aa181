"""Searches on a real Ray cluster of two nodes: the same tables, whatever is lost on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from ray_cluster import two_nodes

from efhorizon.build.parts import read_manifest
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.engines.choice import EngineChoice
from efhorizon.errors import EfhorizonError
from efhorizon.study.plan import Plan
from efhorizon.study.results import Results
from efhorizon.study.stages import Watcher, study
from efhorizon.study.tasks import RunPlan

pytest.importorskip("ray")
SMALL = ("MiniGrid-DoorKey-5x5-v0", 8)
PUBLISHED = (("pong_30_fs30", 20), ("MiniGrid-KeyCorridorS3R3-v0", 28), ("maze_easy_l0_30_fs1", 12))


def fingerprint(name: str, horizon: int, out: Path, engine: EngineChoice | None = None) -> str:
    options = Options(out=out, verify_episodes=0, engine=engine or EngineChoice())
    result = build(catalogue_target(name, horizon), options)
    assert result.mdp is not None
    return result.mdp.fingerprint()


def test_two_nodes_build_the_same_table(tmp_path: Path) -> None:
    local = fingerprint(*SMALL, tmp_path / "local")
    with two_nodes() as (cluster, _):
        ray = EngineChoice("ray", cluster.address, owners=2, workers=2)
        assert fingerprint(*SMALL, tmp_path / "ray", ray) == local


@pytest.mark.slow
@pytest.mark.parametrize(("name", "horizon"), PUBLISHED)
def test_owners_do_not_show_in_tables(name: str, horizon: int, tmp_path: Path) -> None:
    local = fingerprint(name, horizon, tmp_path / "local")
    with two_nodes() as (cluster, _):
        for owners in (1, 2, 5):
            ray = EngineChoice("ray", cluster.address, owners=owners, workers=2)
            assert fingerprint(name, horizon, tmp_path / f"owners{owners}", ray) == local


@pytest.mark.slow
def test_a_node_may_be_lost_in_the_middle_of_a_layer(tmp_path: Path) -> None:
    name, horizon = "MiniGrid-KeyCorridorS3R3-v0", 26
    local = fingerprint(name, horizon, tmp_path / "local")
    with two_nodes() as (cluster, second):
        removed: list[int] = []
        lost: list[str] = []

        def on_progress(progress: object) -> None:
            depth, num_expanded = progress.depth, progress.num_expanded  # type: ignore[attr-defined]
            starts = progress.layer_starts  # type: ignore[attr-defined]
            if not removed and depth >= 20 and starts[-2] < num_expanded < starts[-1]:
                removed.append(depth)
                cluster.remove_node(second)

        engine = EngineChoice("ray", cluster.address, owners=2, workers=2)
        options = Options(out=tmp_path / "ray", verify_episodes=0, engine=engine)
        result = build(catalogue_target(name, horizon), options, on_progress=on_progress, on_message=lost.append)
    assert removed
    assert any("going back to layer" in line for line in lost)
    assert result.mdp is not None
    assert result.mdp.fingerprint() == local


@pytest.mark.slow
def test_a_worker_may_be_killed_in_the_middle_of_a_layer(tmp_path: Path) -> None:
    """`kill -9` of one actor's process, as a system that is out of memory does it."""
    name, horizon = "MiniGrid-KeyCorridorS3R2-v0", 40
    local = fingerprint(name, horizon, tmp_path / "local")
    with two_nodes() as (cluster, _):
        killed: list[int] = []
        lost: list[str] = []

        def on_progress(progress: object) -> None:
            if killed or progress.depth < 12:  # type: ignore[attr-defined]
                return
            for process in psutil.process_iter(["cmdline"]):
                if is_actor_of(process, os.getpid()):
                    process.kill()
                    killed.append(process.pid)
                    return

        engine = EngineChoice("ray", cluster.address, owners=2, workers=2)
        options = Options(out=tmp_path / "ray", verify_episodes=0, engine=engine)
        result = build(catalogue_target(name, horizon), options, on_progress=on_progress, on_message=lost.append)
    assert killed
    assert any("going back to layer" in line for line in lost)
    assert result.mdp is not None
    assert result.mdp.fingerprint() == local


def is_actor_of(process: psutil.Process, driver: int) -> bool:
    """An actor's process of a cluster that was started here: other clusters of this machine are left alone."""
    try:
        here = {parent.pid for parent in process.parents()}
        return driver in here and any("_RemoteDoer" in word for word in process.cmdline())
    except psutil.Error:
        return False


@pytest.mark.slow
def test_a_driver_that_was_killed_continues(tmp_path: Path) -> None:
    name, horizon = "MiniGrid-KeyCorridorS3R3-v0", 26
    local = fingerprint(name, horizon, tmp_path / "local")
    with two_nodes() as (cluster, _):
        command = [sys.executable, "-m", "efhorizon", "build", name, "--horizon", str(horizon), "--out", "tables"]
        command += ["--engine", "ray", "--address", cluster.address, "--owners", "2", "--workers", "2", "--json"]
        driver = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        reached = 0
        until = time.monotonic() + 240
        while reached < 18 and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
            for folder in (tmp_path / "tables" / "searches").glob("*"):
                manifest = read_manifest(folder)
                reached = 0 if manifest is None else manifest.complete_horizon
        assert driver.poll() is None
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["fingerprint"] == local
    assert json.loads(done.stdout)["complete"]


@pytest.mark.slow
def test_an_address_without_a_cluster_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EfhorizonError, match=r"^no Ray cluster at 127\.0\.0\.1:1: "):
        fingerprint(*SMALL, tmp_path, EngineChoice("ray", "127.0.0.1:1"))


@pytest.mark.slow
def test_a_study_gives_the_same_rows_though_a_node_is_lost(tmp_path: Path) -> None:
    names = (
        "MiniGrid-Empty-5x5-v0", "MiniGrid-Empty-6x6-v0", "MiniGrid-LavaGapS5-v0", "MiniGrid-LavaGapS6-v0",
        "MiniGrid-LavaGapS7-v0", "MiniGrid-DistShift1-v0", "MiniGrid-DistShift2-v0", "MiniGrid-MemoryS7-v0",
        "MiniGrid-KeyCorridorS3R1-v0", "MiniGrid-SimpleCrossingS9N3-v0",
    )  # fmt: skip
    runs = (RunPlan("gorp", "k1", num_seeds=1, max_steps=100_000),)

    def rows(plan: Plan, watcher: Watcher | None = None) -> dict[tuple[str, str, str], object]:
        result = study(plan, watcher)
        assert result.num_complete == len(names), [outcome for outcome in result.outcomes if outcome.is_lost]
        found = Results(plan.out)
        made = {
            (row.id, row.algorithm, row.setting): (row.sample_complexity, row.best_return, row.learning_curve)
            for row in found.rows()
        }
        analyses = {name: analysis.table.fingerprint for name, analysis in found.analyses().items()}
        return {**made, **{(name, "analysis", ""): value for name, value in analyses.items()}}

    class Losing(Watcher):
        """Takes the second node away in the middle of the builds."""

        num_outcomes = 0

        def outcome(self, outcome: object) -> None:
            self.num_outcomes += 1
            if self.num_outcomes == 3:
                cluster.remove_node(second)

    expected = rows(Plan(tmp_path / "local", names, runs))
    with two_nodes() as (cluster, second):
        engine = EngineChoice("ray", cluster.address, workers=2)
        assert rows(Plan(tmp_path / "ray", names, runs, engine=engine), Losing()) == expected
    assert len(expected) == 2 * len(names)
