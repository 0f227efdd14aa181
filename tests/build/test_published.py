"""Tables built here against those that the authors published: the same numbers of states and the same graphs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from efhorizon.build.explore import explore, opened_search
from efhorizon.build.pipeline import Options, build
from efhorizon.build.published import published_table
from efhorizon.build.search_records import COMMIT, CONFIG, FILES
from efhorizon.build.table import table
from efhorizon.build.target import catalogue_target
from efhorizon.errors import StoreError
from efhorizon.suites.drawing import picture

# name: states as searched, merged by the paper's rule, merged ignoring screens, and the published graph
PUBLISHED = {
    "freeway_10_fs30": (399, 197, 33, "925253bb0f2cc9c7dd29dfda77580d4cf3f2dccafe5adec84d01b299ddbc753f"),
    "maze_easy_l0_30_fs1": (2227, 243, 134, "fa9f1f77d161a792c06cc64803675ce403b444e208b3c60491e37b2fc18b7002"),
    "MiniGrid-KeyCorridorS3R1-v0": (168, 168, 168, "a1defee7a61868865504e1664121e2fb634537e2e998b01ede11ec4a8877a59d"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables_are_rebuilt(name: str, tmp_path: Path) -> None:
    raw, merged, ignoring_screens, fingerprint = PUBLISHED[name]
    mdp = build(catalogue_target(name), Options(out=tmp_path, num_workers=2)).mdp
    assert mdp is not None
    assert mdp.metadata["num_states_raw"] == raw
    assert mdp.num_states == merged
    assert mdp.fingerprint() == fingerprint
    assert mdp.metadata["verification"]["verified"]
    assert not mdp.metadata["degenerate"]

    again = build(catalogue_target(name), Options(out=tmp_path, num_workers=2, ignore_screens=True))
    assert again.mdp is not None
    assert again.mdp.num_states == ignoring_screens
    assert again.outcome.progress.num_pairs == 0


def test_states_reached_by_replaying_give_the_same_table(tmp_path: Path) -> None:
    target = catalogue_target("freeway_10_fs30", 4)
    fingerprints = []
    for folder, spec in ((tmp_path / "restored", target.spec), (tmp_path / "replayed", target.spec.replayed())):
        search = opened_search(folder, spec(), {})
        explore(search, 4, spec)
        fingerprints.append(table(search, 4).fingerprint())
        search.close()
    assert fingerprints[0] == fingerprints[1]


def test_a_damaged_search_is_not_built_from(tmp_path: Path, rng: np.random.Generator) -> None:
    """A flipped bit in any of its files: one line that says what to do, and the table that is there stays."""
    target, options = catalogue_target("MiniGrid-Empty-5x5-v0"), Options(out=tmp_path, num_workers=1, verify_episodes=4)
    built = build(target, options)
    assert built.path is not None
    shutil.rmtree(built.path)
    (search,) = (tmp_path / "searches").iterdir()
    for name in (CONFIG, COMMIT, *FILES):
        intact = (search / name).read_bytes()
        for _ in range(2):
            content = bytearray(intact)
            content[rng.integers(len(content))] ^= 1 << rng.integers(8)
            (search / name).write_bytes(content)
            with pytest.raises(StoreError, match=f"{name}: .*: delete {search} and run the same command again"):
                build(target, options)
            assert not built.path.exists()
        (search / name).write_bytes(intact)
    assert built.mdp is not None
    again = build(target, options)
    assert again.mdp is not None
    assert again.mdp.fingerprint() == built.mdp.fingerprint()
    assert again.outcome.progress.num_pairs == 0


def test_a_shorter_horizon_emulates_nothing_and_a_longer_one_goes_on(tmp_path: Path) -> None:
    options = Options(out=tmp_path, num_workers=2)
    longer = build(catalogue_target("freeway_10_fs30", 8), options)
    shorter = build(catalogue_target("freeway_10_fs30", 5), options)
    assert shorter.outcome.progress.num_pairs == 0
    further = build(catalogue_target("freeway_10_fs30"), options)
    assert longer.outcome.progress.num_pairs + further.outcome.progress.num_pairs == 3 * 399
    assert further.mdp is not None
    assert further.mdp.fingerprint() == PUBLISHED["freeway_10_fs30"][3]


def test_identical_builds_give_identical_bytes(tmp_path: Path) -> None:
    contents = []
    for folder in ("one", "two"):
        path = build(catalogue_target("MiniGrid-Empty-5x5-v0"), Options(out=tmp_path / folder)).path
        assert path is not None
        contents.append({file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()})
    assert contents[0] == contents[1]


def test_screens_of_games_are_exported_as_pictures(tmp_path: Path) -> None:
    mdp = build(catalogue_target("freeway_10_fs30", 3), Options(out=tmp_path)).mdp
    assert mdp is not None
    assert mdp.screens is not None
    assert mdp.screens.shape[1:] == (210, 160, 1)
    pictures = published_table(mdp, with_screens=True, with_states=True, on_message=pytest.fail)
    assert pictures.screens is not None
    assert pictures.screens.shape[1:] == (210, 160, 3)
    assert (pictures.screen(0) == picture(mdp, 0)).all()
