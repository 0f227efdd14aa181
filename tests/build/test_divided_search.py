"""Searches divided among owners: byte for byte the search of one process, whatever is lost on the way."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("minigrid")

from efhorizon.build.divided import collect
from efhorizon.build.divided_search import explore_divided
from efhorizon.build.explore import Budget, Outcome, explore, opened_search
from efhorizon.build.parcels import owners_of
from efhorizon.build.parts import PARTS, read_manifest
from efhorizon.build.search import Search
from efhorizon.build.target import catalogue_target
from efhorizon.engines.actors import ActorLostError, LocalActors, Reference
from efhorizon.engines.worker_process import WorkerError
from efhorizon.errors import EfhorizonError, StoreError

TARGET = catalogue_target("MiniGrid-DoorKey-5x5-v0", 9)
HORIZON = 9


def opened(folder: Path) -> Search:
    return opened_search(folder, TARGET.spec(), {})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("commit.json", "lock")}


def divided_search(folder: Path, owners: int = 2, actors: Any = None, **options: Any) -> Outcome:
    search = opened(folder)
    try:
        actors = actors or LocalActors()
        return explore_divided(search, HORIZON, TARGET.spec, actors, num_workers=2, num_owners=owners, **options)
    finally:
        search.close()


@pytest.fixture(scope="module")
def undivided(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("one") / "search"
    search = opened(folder)
    outcome = explore(search, HORIZON, TARGET.spec)
    assert outcome.stopped_by is None
    search.close()
    return contents(folder)


@pytest.mark.parametrize("owners", [1, 2, 5])
def test_owners_do_not_show(owners: int, tmp_path: Path, undivided: dict[str, bytes]) -> None:
    outcome = divided_search(tmp_path / "s", owners)
    assert outcome.stopped_by is None
    assert contents(tmp_path / "s") == undivided
    assert outcome.progress.num_expanded * 6 == len(undivided["transitions"]) // 4


def test_every_key_has_one_owner_by_its_top_bits() -> None:
    keys = np.random.default_rng(0).integers(0, 2**64, size=(10_000, 2), dtype=np.uint64)
    for owners in (1, 2, 5, 7):
        counts = np.bincount(owners_of(keys, owners), minlength=owners)
        assert len(counts) == owners
        assert counts.min() > 0.9 * len(keys) / owners
    order = np.argsort(keys[:, 1])
    assert (np.diff(owners_of(keys[order], 5)) >= 0).all()


class LossyActors(LocalActors):
    """Loses the result of some calls."""

    def __init__(self, lost: Callable[[int], bool]) -> None:
        self._lost, self._count = lost, 0

    def get(self, reference: Reference) -> Any:
        self._count += 1
        if self._lost(self._count):
            raise ActorLostError("the node is gone")
        return super().get(reference)

    def wait(self, references: Sequence[Reference], seconds: float) -> list[Reference]:
        return list(references)[-1:]  # the latest first: results come in any order


def test_losses_send_everybody_back_to_the_manifest(
    tmp_path: Path, undivided: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("efhorizon.build.divided_search._SECONDS_AFTER_A_LOSS", 0.0)
    said: list[str] = []
    divided_search(tmp_path / "s", 3, LossyActors(lambda count: count in (25, 70, 120)), on_message=said.append)
    assert sum("going back to layer" in line for line in said) >= 3
    assert contents(tmp_path / "s") == undivided


def test_a_cluster_that_always_fails_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efhorizon.build.divided_search._SECONDS_AFTER_A_LOSS", 0.0)
    with pytest.raises(WorkerError, match=r"^the cluster lost workers 5 times in one layer \(the node is gone\); what"):
        divided_search(tmp_path / "s", 2, LossyActors(lambda count: count > 60))
    assert read_manifest(tmp_path / "s") is not None


def test_a_killed_driver_leaves_parts_that_either_engine_continues(
    tmp_path: Path, undivided: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def kill(count: int) -> bool:
        if count > 90:
            raise KilledError
        return False

    for name in ("ray", "local"):
        with pytest.raises(KilledError):
            divided_search(tmp_path / name, 2, LossyActors(kill))
        manifest = read_manifest(tmp_path / name)
        assert manifest is not None
        assert 2 < manifest.complete_horizon < HORIZON
    divided_search(tmp_path / "ray", 5)  # the parts keep the number of owners that they have
    search = opened(tmp_path / "local")
    collect(search)
    assert search.complete_horizon == manifest.complete_horizon
    explore(search, HORIZON, TARGET.spec)
    search.close()
    assert contents(tmp_path / "ray") == contents(tmp_path / "local") == undivided


def test_a_search_of_one_process_continues_divided(tmp_path: Path, undivided: dict[str, bytes]) -> None:
    search = opened(tmp_path / "s")
    explore(search, HORIZON, TARGET.spec, budget=Budget(max_states=50))
    assert search.layer_starts[-1] < search.num_states  # stopped within a layer
    search.close()
    divided_search(tmp_path / "s", 2)
    assert contents(tmp_path / "s") == undivided


def test_a_budget_stops_at_the_last_layer(tmp_path: Path) -> None:
    outcome = divided_search(tmp_path / "s", budget=Budget(max_states=20))
    assert outcome.stopped_by == "--max-states 20"
    assert not (tmp_path / "s" / PARTS).exists()
    assert divided_search(tmp_path / "s", budget=Budget(max_memory=1 << 20)).stopped_by == "--max-memory 1 MB"


def test_out_of_disk_is_one_clear_line(tmp_path: Path, undivided: dict[str, bytes]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(EfhorizonError, match=r"cannot be written \(File too large\); what was committed is kept$"):
            divided_search(tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    divided_search(tmp_path / "s")
    assert contents(tmp_path / "s") == undivided


def test_two_builds_at_once_are_refused(tmp_path: Path) -> None:
    search = opened(tmp_path / "s")
    with pytest.raises(StoreError, match="another build is working on this search"):
        divided_search(tmp_path / "s")
    search.close()
