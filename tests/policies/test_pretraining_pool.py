"""Pretraining runs as tasks: the same networks, and a run that was lost goes on from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("procgen")

from ray_cluster import two_nodes

from efhorizon.engines.actors import LocalActors
from efhorizon.engines.choice import EngineChoice
from efhorizon.engines.worker_process import WorkerError
from efhorizon.io.array_archive import read_archive
from efhorizon.policies.pretrain import Pretrained, pretrain
from efhorizon.policies.pretraining_pool import PretrainingTask, pretrain_on, pretrain_on_ray
from efhorizon.policies.pretraining_settings import PretrainingSettings, settings_for

UPDATE = 64


def small(game: str) -> PretrainingSettings:
    return settings_for(game, num_envs=4, rollout_length=16, num_minibatches=2)


def parameters(path: Path) -> dict[str, np.ndarray]:
    return read_archive(path, "a network", 1 << 28)[0]


def same(one: Path, other: Path) -> bool:
    first, second = parameters(one), parameters(other)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "maze.npz").write_bytes(b"not ours")
    tasks = [PretrainingTask(small(game), tmp_path / f"{game}.npz", UPDATE) for game in ("maze", "leaper")]
    made: list[Pretrained] = []
    with pytest.raises(WorkerError, match=r"^1 of 2 runs failed; .*maze\.npz: .*without its checkpoint.*; the same"):
        pretrain_on(LocalActors(), tasks, made.append)
    assert [one.settings.game for one in made] == ["leaper"]
    assert (tmp_path / "maze.npz").read_bytes() == b"not ours"


@pytest.mark.slow
def test_a_cluster_trains_what_this_process_trains(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    games = ("maze", "leaper")
    for game in games:
        pretrain(small(game), tmp_path / "local" / f"{game}.npz", steps=3 * UPDATE, threads=1)
    pretrain(small("maze"), tmp_path / "ray" / "maze.npz", steps=UPDATE, threads=1)  # to go on from
    (tmp_path / "ray" / "maze.npz").unlink(missing_ok=True)
    made: list[Any] = []
    with two_nodes() as (cluster, _):
        choice = EngineChoice("ray", cluster.address, workers=2)
        tasks = [PretrainingTask(small(game), tmp_path / "ray" / f"{game}.npz", 3 * UPDATE) for game in games]
        pretrain_on_ray(tasks, choice, made.append)
    assert {one.settings.game: one.steps_made for one in made} == {"maze": 2 * UPDATE, "leaper": 3 * UPDATE}
    for game in games:
        assert same(tmp_path / "local" / f"{game}.npz", tmp_path / "ray" / f"{game}.npz")
