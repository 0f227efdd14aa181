"""Keys of searches and tables stay what they were: one environment of each suite, with fixed package versions."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest

from efhorizon.build.target import catalogue_target, gymnasium_target
from efhorizon.io.provenance import provenance_digest, simulator_provenance
from efhorizon.suites.specification import SimulatorSpec


class Simulator:
    """All that provenance asks of one."""

    rom_md5 = "0123456789abcdef0123456789abcdef"


SPECIFICATIONS = {
    "freeway_10_fs30": catalogue_target("freeway_10_fs30").spec,
    "skiing_10_fs30": catalogue_target("skiing_10_fs30").spec,
    "maze_easy_l0_30_fs1": catalogue_target("maze_easy_l0_30_fs1").spec,
    "MiniGrid-DoorKey-5x5-v0": catalogue_target("MiniGrid-DoorKey-5x5-v0").spec,
    "MiniGrid-DoorKey-5x5-DistanceShaped-v0": catalogue_target("MiniGrid-DoorKey-5x5-DistanceShaped-v0").spec,
    "FrozenLake-v1": gymnasium_target("FrozenLake-v1", {"is_slippery": False}).spec,
    "replayed": catalogue_target("freeway_10_fs30").spec.replayed(),
}
DIGESTS = {  # computed before suites were plug-ins
    "freeway_10_fs30": "24787006bbe1",
    "skiing_10_fs30": "daf95fdb7097",
    "maze_easy_l0_30_fs1": "18db87d13131",
    "MiniGrid-DoorKey-5x5-v0": "cbe454000dc3",
    "MiniGrid-DoorKey-5x5-DistanceShaped-v0": "3df9a4838c08",
    "FrozenLake-v1": "584794adaaa2",  # the second version of the suite
    "replayed": "b11a631d405f",
}


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_digests(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda package: f"{package} 1.0")
    simulator: Any = Simulator()
    assert provenance_digest(simulator_provenance(SPECIFICATIONS[name], simulator)) == DIGESTS[name]


def test_provenance_of_a_gridworld() -> None:
    spec = SPECIFICATIONS["MiniGrid-DoorKey-5x5-DistanceShaped-v0"]
    assert isinstance(spec, SimulatorSpec)
    simulator: Any = object()
    assert simulator_provenance(spec, simulator) == {
        "suite": "minigrid",
        "arguments": {"env_id": "MiniGrid-DoorKey-5x5-v0", "shaping": "Distance"},
        "replay": False,
        "packages": {"minigrid": metadata.version("minigrid"), "gymnasium": metadata.version("gymnasium")},
        "code": "9aad1e7164361471",
        "rom_md5": None,
    }


def test_metadata_of_targets() -> None:
    """Part of stored tables, key by key."""
    shaped = catalogue_target("MiniGrid-DoorKey-5x5-DistanceShaped-v0", 50)
    assert (shaped.id, shaped.search_name) == (
        "MiniGrid-DoorKey-5x5-DistanceShaped-v0-T50",
        "MiniGrid-DoorKey-5x5-DistanceShaped-v0",
    )
    assert shaped.metadata == {
        "suite": "minigrid",
        "game": "MiniGrid-DoorKey-5x5-v0",
        "frameskip": 1,
        "reward_factor": 1.0,
        "unshaped": "MiniGrid-DoorKey-5x5-v0",
        "shaping": "Distance",
        "difficulty": None,
        "level": None,
        "catalogue_name": "MiniGrid-DoorKey-5x5-DistanceShaped-v0",
    }
    pong = catalogue_target("pong_10_fs30", 15)
    assert (pong.id, pong.search_name, pong.metadata["catalogue_name"]) == ("pong_15_fs30", "pong_fs30", "pong_10_fs30")
    lake = gymnasium_target("FrozenLake-v1", {"is_slippery": False})
    assert (lake.id, lake.search_name) == ("FrozenLake-v1-is_slippery=False-T100", "FrozenLake-v1-is_slippery=False")
    assert lake.metadata == {"suite": "gymnasium", "game": "FrozenLake-v1", "frameskip": 1, "reward_factor": 1.0}
