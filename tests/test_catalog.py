"""The catalogue: its names and counts, and its numbers against the suites themselves."""

from __future__ import annotations

import dataclasses
import re

import pytest

from efhorizon import catalog
from efhorizon.catalog import UnknownNameError, entries, entry
from efhorizon.suites import atari, minigrid, procgen
from efhorizon.suites.entry import Entry


def test_counts() -> None:
    atari, procgen, minigrid = (entries(suite) for suite in catalog.suite_names())
    assert len(atari) == 56 * 8 + 1
    assert len(procgen) == 15 * 4 * 8 + 7 * 8
    assert sum(item.shaping is None for item in minigrid) == 46 + 3  # three have more than a million states
    assert sum(item.shaping is not None for item in minigrid) == 85
    assert entries() == (*atari, *procgen, *minigrid)
    assert len({item.name for item in entries()}) == len({item.gym_id for item in entries()}) == len(entries())


@pytest.mark.parametrize(
    "expected",
    [
        Entry("pong_50_fs30", "atari", "pong", 50, 30, 6),
        Entry("montezuma_revenge_15_fs24", "atari", "montezuma_revenge", 15, 24, 18, reward_factor=100.0),
        Entry("seaquest_10_fs30", "atari", "seaquest", 10, 30, 18, reward_factor=20.0),
        Entry("maze_easy_l0_30_fs1", "procgen", "maze", 30, 1, 9, difficulty="easy", level=0),
        Entry("ninja_exploration_l0_10_fs8", "procgen", "ninja", 10, 8, 13, difficulty="exploration", level=0),
        Entry("bossfight_hard_l0_200_fs8", "procgen", "bossfight", 200, 8, 10, difficulty="hard", level=0),
        Entry("MiniGrid-KeyCorridorS3R1-v0", "minigrid", "MiniGrid-KeyCorridorS3R1-v0", 100, 1, 6),
        Entry(
            "MiniGrid-Empty-16x16-DistanceShaped-v0",
            "minigrid",
            "MiniGrid-Empty-16x16-v0",
            100,
            1,
            3,
            unshaped="MiniGrid-Empty-16x16-v0",
            shaping="Distance",
        ),
        Entry(
            "MiniGrid-UnlockPickup-OpenDoorsPickupShaped-v0",
            "minigrid",
            "MiniGrid-UnlockPickup-v0",
            100,
            1,
            6,
            unshaped="MiniGrid-UnlockPickup-v0",
            shaping="OpenDoorsPickup",
        ),
    ],
)
def test_published_names(expected: Entry) -> None:
    assert entry(expected.name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "montezuma_revenge_20_fs30",
        "pong_15_fs30",
        "pong_50_fs24",
        "maze_hard_l1_30_fs1",
        "maze_easy_l3_30_fs1",
        "bigfish_exploration_l0_10_fs8",
        "MiniGrid-Dynamic-Obstacles-5x5-v0",
        "MiniGrid-Fetch-5x5-N2-v0",
        "MiniGrid-LavaGapS5-LavaShaped-v0",
        "MiniGrid-Empty-5x5-PickupShaped-v0",
        "MiniGrid-DoorKey-5x5-DistancePickupShaped-v0",
    ],
)
def test_names_that_do_not_exist(name: str) -> None:
    with pytest.raises(UnknownNameError):
        entry(name)


def test_names_have_the_published_form() -> None:
    forms = {
        "atari": r"[a-z_]+_\d+_fs(30|24)",
        "procgen": r"[a-z]+_(easy|hard|exploration)_l[012]_\d+_fs[1268]",
        "minigrid": r"MiniGrid-\w+(-\w+)*-v[01]",
    }
    for item in entries():
        assert re.fullmatch(forms[item.suite], item.name), item.name
        assert item.gym_id.removeprefix("BRIDGE/").removesuffix("-v0") == item.name.removesuffix("-v0")
        assert re.search(r"[^/]-v\d$", item.gym_id)
        assert not re.search(r"-v\d-v\d", item.gym_id)


def test_shaped_entries_know_their_original() -> None:
    shaped = [item for item in entries() if item.shaping is not None]
    for item in shaped:
        original = entry(str(item.unshaped))
        assert original.unshaped is None
        assert original.shaping is None
        assert dataclasses.replace(item, name=original.name, unshaped=None, shaping=None) == original
    assert {item.suite for item in shaped} == {"minigrid"}


def test_unknown_name_is_one_line_with_the_closest_names() -> None:
    with pytest.raises(UnknownNameError) as caught:
        entry("Pong_51_fs30")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("no environment is called 'Pong_51_fs30'; closest: pong_50_fs30")
    with pytest.raises(UnknownNameError, match=r"closest: \w+"):
        entry("???")


def test_reward_factors_are_the_papers() -> None:
    factors = {game: factor for game, (_, factor, _) in atari.GAMES.items() if factor != 1}
    assert len(factors) == 30
    assert (factors["alien"], factors["assault"], factors["battle_zone"], factors["beam_rider"]) == (10, 21, 1000, 44)
    assert all(item.reward_factor == 1 for item in entries() if item.suite != "atari")


def test_atari_action_counts_are_the_emulators() -> None:
    ale_py = pytest.importorskip("ale_py")
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    counts = {}
    for game in atari.GAMES:
        ale = ale_py.ALEInterface()
        ale.loadROM(ale_py.roms.get_rom_path(game))
        counts[game] = len(ale.getMinimalActionSet())
    assert counts == {game: count for game, (count, _, _) in atari.GAMES.items()}


@pytest.mark.filterwarnings("ignore")
def test_exploration_levels_are_procgens() -> None:
    procgen_env = pytest.importorskip("procgen.env")
    assert set(procgen_env.ENV_NAMES) - set(procgen.GAMES) == {"caveflyer"}
    exploring = {game for game, known in procgen.GAMES.items() if known.can_explore}
    assert exploring == set(procgen_env.EXPLORATION_LEVEL_SEEDS) - {"caveflyer"}


@pytest.mark.filterwarnings("ignore")
def test_gridworlds_are_registered_by_minigrid() -> None:
    pytest.importorskip("minigrid")
    gymnasium = pytest.importorskip("gymnasium")
    assert set(minigrid.GRIDWORLDS) <= set(gymnasium.registry)
