"""Searches on a real Ray cluster of two nodes: the same tables, whatever is lost on the way."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from ray_cluster import two_nodes
from ray_losses import built, on_ray, with_a_node_lost, with_the_driver_killed

from efhorizon.build.explore import Progress
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
    return built(catalogue_target(name, horizon), out, engine or EngineChoice())[0].fingerprint()


def test_two_nodes_build_the_same_table(tmp_path: Path) -> None:
    local = fingerprint(*SMALL, tmp_path / "local")
    with two_nodes() as (cluster, _):
        ray = on_ray(cluster.address)
        assert fingerprint(*SMALL, tmp_path / "ray", ray) == local


@pytest.mark.slow
@pytest.mark.parametrize(("name", "horizon"), PUBLISHED)
def test_owners_do_not_show_in_tables(name: str, horizon: int, tmp_path: Path) -> None:
    local = fingerprint(name, horizon, tmp_path / "local")
    with two_nodes() as (cluster, _):
        for owners in (1, 2, 5):
            ray = on_ray(cluster.address, owners)
            assert fingerprint(name, horizon, tmp_path / f"owners{owners}", ray) == local


@pytest.mark.slow
def test_a_node_may_be_lost_in_the_middle_of_a_layer(tmp_path: Path) -> None:
    name, horizon = "MiniGrid-KeyCorridorS3R3-v0", 26
    local = fingerprint(name, horizon, tmp_path / "local")
    mdp, _ = with_a_node_lost(catalogue_target(name, horizon), tmp_path / "ray", depth=20)
    assert mdp.fingerprint() == local


@pytest.mark.slow
def test_a_worker_may_be_killed_in_the_middle_of_a_layer(tmp_path: Path) -> None:
    """`kill -9` of one actor's process, as a system that is out of memory does it."""
    name, horizon = "MiniGrid-KeyCorridorS3R2-v0", 40
    local = fingerprint(name, horizon, tmp_path / "local")
    with two_nodes() as (cluster, _):
        killed: list[int] = []

        def on_progress(progress: Progress) -> None:
            if killed or progress.depth < 12:
                return
            for process in psutil.process_iter(["cmdline"]):
                if is_actor_of(process, os.getpid()):
                    process.kill()
                    killed.append(process.pid)
                    return

        mdp, said = built(catalogue_target(name, horizon), tmp_path / "ray", on_ray(cluster.address), on_progress)
    assert killed
    assert said
    assert mdp.fingerprint() == local


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
    printed = with_the_driver_killed(name, horizon, tmp_path, depth=18)
    assert printed["fingerprint"] == local
    assert printed["complete"]


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
