"""From recordings to samples: steps, episodes, labels, and observations that are those of the live environment."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from recorded_play import ROWS, pictures, write

from efhorizon import catalog
from efhorizon.errors import StoreError
from efhorizon.policies.actions import ALE_ACTIONS, ale_numbers, nearest_actions, switches
from efhorizon.policies.live import LiveGame, PlayedStep
from efhorizon.policies.record import record
from efhorizon.policies.recordings import Label, Recording, read_recording, written_recording
from efhorizon.policies.samples import UnusableRecordingError, observed_picture, recorded_entry, samples
from efhorizon.suites.atari_simulator import AtariSimulator
from efhorizon.suites.entry import Entry

FREEWAY = ("NOOP", "UP", "DOWN")


class Sequence:
    """A player with a fixed sequence of actions that remembers what it saw."""

    def __init__(self, actions: list[int]) -> None:
        self.actions, self.seen = actions, list[np.ndarray]()

    def begin(self, game: LiveGame) -> None:
        self._left = iter(self.actions)

    def action(self, game: LiveGame) -> int | None:
        self.seen.append(game.observation)
        return next(self._left, None)

    def took(self, action: int, step: PlayedStep) -> None:
        pass


@pytest.fixture(scope="module")
def freeway() -> Entry:
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    return recorded_entry("freeway_10_fs30")


def recorded(folder: Path, labels: list[Label]) -> Recording:
    with written_recording(folder, "x") as add:
        for label, picture in zip(labels, pictures(len(labels)), strict=True):
            add(label, picture)
    return read_recording(folder / "x.txt")


def test_the_eighteen_actions_are_those_of_ale() -> None:
    ale_py = pytest.importorskip("ale_py")
    assert [action.name for action in ale_py.Action][:18] == list(ALE_ACTIONS)
    assert len(ALE_ACTIONS) == len(set(map(switches, ALE_ACTIONS)))  # no two press the same


def test_actions_that_a_game_does_not_have() -> None:
    expected = {
        "NOOP": "NOOP", "FIRE": "NOOP", "UP": "UP", "RIGHT": "NOOP", "LEFT": "NOOP", "DOWN": "DOWN",
        "UPRIGHT": "UP", "UPLEFT": "UP", "DOWNRIGHT": "DOWN", "DOWNLEFT": "DOWN",
        "UPFIRE": "UP", "RIGHTFIRE": "NOOP", "LEFTFIRE": "NOOP", "DOWNFIRE": "DOWN",
        "UPRIGHTFIRE": "UP", "UPLEFTFIRE": "UP", "DOWNRIGHTFIRE": "DOWN", "DOWNLEFTFIRE": "DOWN",
    }  # fmt: skip
    assert {name: FREEWAY[to] for name, to in zip(ALE_ACTIONS, nearest_actions(FREEWAY), strict=True)} == expected
    pong = ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")
    nearest = dict(zip(ALE_ACTIONS, (pong[number] for number in nearest_actions(pong)), strict=True))
    assert (nearest["UPRIGHTFIRE"], nearest["UPLEFT"], nearest["DOWNFIRE"]) == ("RIGHTFIRE", "LEFT", "FIRE")
    assert nearest_actions(ALE_ACTIONS).tolist() == list(range(18))


@pytest.mark.parametrize("game", ["freeway", "pong", "qbert", "montezuma_revenge"])
def test_recorded_numbers_are_those_that_ale_plays(game: str) -> None:
    pytest.importorskip("ale_py")
    entry = recorded_entry(game)
    assert ale_numbers(entry) == AtariSimulator(game, 1)._actions
    assert all(
        nearest_actions([ALE_ACTIONS[n] for n in ale_numbers(entry)])[ale_numbers(entry)] == range(entry.num_actions)
    )


def test_names_of_environments_and_games() -> None:
    assert recorded_entry("freeway_20_fs30").horizon == 20
    assert recorded_entry("freeway").frameskip == 30  # the published one, as of montezuma_revenge
    assert recorded_entry("montezuma_revenge").frameskip == 24
    assert recorded_entry("pong_77_fs5").frameskip == 5
    with pytest.raises(catalog.UnknownNameError, match="no_such_game"):
        recorded_entry("no_such_game")


def test_every_action_within_a_step_is_a_label(tmp_path: Path, freeway: Entry) -> None:
    actions = [2, 2, 0, 5, 10, None, None, None, 1]  # UPFIRE and FIRE are not Freeway's
    recording = recorded(tmp_path, [Label(f"x_{n}", action) for n, action in enumerate(actions)])
    found = samples(freeway, [recording], frameskip=3)
    assert found.label_counts.tolist() == [[1, 2, 0], [0, 1, 1], [1, 0, 0]]
    assert (found.num_rows, found.num_frames, found.num_unlabelled, found.num_episodes) == (9, 9, 3, 1)
    assert found.replaced == {"UPFIRE": 1, "FIRE": 1}
    observed = observed_picture(freeway)
    shown = [observed(picture) for picture in pictures(9)]
    stacks = found.observations.frames[found.observations.stacks[found.observation]]  # [N, K, H, W, 1]
    for step, frames in enumerate([(0, 0, 0, 0), (0, 0, 0, 3), (0, 0, 3, 6)]):
        np.testing.assert_array_equal(stacks[step], [shown[frame] for frame in frames])
    # without a label in it, the second step is no sample, but the third one still shows its frame
    empty = recorded(tmp_path / "b", [Label(f"x_{n}", None if 3 <= n < 6 else 2) for n in range(9)])
    found = samples(freeway, [empty], frameskip=3)
    assert found.label_counts.tolist() == [[0, 3, 0]] * 2
    stacks = found.observations.frames[found.observations.stacks[found.observation]]
    np.testing.assert_array_equal(stacks[1], [shown[frame] for frame in (0, 0, 3, 6)])


def test_a_step_does_not_cross_episodes(tmp_path: Path, freeway: Entry) -> None:
    episodes = [None, None, None, 0, 0, 1, 1, 1, None]
    recording = recorded(tmp_path, [Label(f"x_{n}", 2, episode) for n, episode in enumerate(episodes)])
    found = samples(freeway, [recording], frameskip=2)
    assert found.label_counts.sum(axis=1).tolist() == [2, 1, 2, 2, 1, 1]
    assert found.num_episodes == 4
    assert found.stretch.tolist() == [0, 0, 1, 2, 2, 3]
    for step in (0, 2, 3, 5):  # the first frame of an episode is repeated
        assert len(set(found.observations.stacks[found.observation[step]])) == 1


def test_held_out_are_whole_stretches(tmp_path: Path, freeway: Entry, rng: np.random.Generator) -> None:
    recording = recorded(tmp_path, [Label(f"x_{n}", 2) for n in range(230)])
    found = samples(freeway, [recording], frameskip=1)
    assert np.bincount(found.stretch).tolist() == [20] * 11 + [10]
    held_out = found.held_out(0.25, rng)
    assert np.unique(found.stretch[held_out]).size == 3
    assert not np.isin(found.stretch[~held_out], found.stretch[held_out]).any()
    total = found.counts(held_out) + found.counts(~held_out)
    np.testing.assert_array_equal(total, found.counts())
    assert total.sum() == 230
    assert not found.held_out(0.05, rng).any()


@pytest.mark.parametrize(("game", "frameskip"), [("freeway", 30), ("qbert", 3), ("ms_pacman", 4), ("skiing", 5)])
def test_recorded_observations_are_the_live_ones(
    tmp_path: Path, rng: np.random.Generator, game: str, frameskip: int
) -> None:
    """Every pixel of every stack, and every reward, through PNG and archive."""
    pytest.importorskip("ale_py")
    entry = recorded_entry(f"{game}_6_fs{frameskip}")
    player = Sequence(rng.integers(entry.num_actions, size=6).tolist())
    recording, episodes = record(entry, player, tmp_path, game, episodes=2)
    found = samples(entry, [recording])
    assert found.num_rows == found.num_frames == 12 * frameskip == sum(episode.frames for episode in episodes)
    stacks = found.observations.frames[found.observations.stacks[found.observation]][..., 0]  # [N, K, H, W]
    np.testing.assert_array_equal(np.moveaxis(stacks, 1, -1), player.seen)
    assert found.label_counts.argmax(axis=1).tolist() == player.actions * 2
    assert (found.label_counts.max(axis=1) == frameskip).all()
    assert sum(label.reward or 0 for label in recording.labels) == sum(each.total_reward for each in episodes)
    for one, other in pairwise(recording.labels):
        assert one.episode != other.episode or other.score == (one.score or 0) + (one.reward or 0)


def test_procgen_is_recorded_step_by_step(tmp_path: Path, rng: np.random.Generator) -> None:
    pytest.importorskip("procgen")
    entry = recorded_entry("maze_easy_l0_10_fs1")
    player = Sequence(rng.integers(entry.num_actions, size=10).tolist())
    recording, _ = record(entry, player, tmp_path, "maze", episodes=1)
    found = samples(entry, [recording])
    assert [label.action for label in recording.labels] == player.actions
    stacks = found.observations.frames[found.observations.stacks[found.observation]]  # [N, 1, H, W, 3]
    np.testing.assert_array_equal(stacks[:, 0], player.seen)
    with written_recording(tmp_path, "bad") as add:
        add(Label("x", entry.num_actions), player.seen[0])
    with pytest.raises(StoreError, match=f"bad.txt: action {entry.num_actions} .* out of range"):
        samples(entry, [read_recording(tmp_path / "bad.txt")])


def test_minigrid_is_recorded_but_not_cloned(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    entry = recorded_entry("MiniGrid-Empty-5x5-v0")
    recording, (episode,) = record(entry, Sequence([2, 2, 1, 2, 2]), tmp_path, "grid", episodes=1)
    assert (episode.total_reward, episode.steps) == (1.0, 5)
    assert [label.action for label in recording.labels] == [2, 2, 1, 2, 2]
    assert len(list(recording.frames())) == 5
    with pytest.raises(UnusableRecordingError, match="MiniGrid-Empty-5x5-v0: agents do not see pictures"):
        samples(entry, [recording])


def test_recordings_that_do_not_fit(tmp_path: Path, freeway: Entry) -> None:
    with pytest.raises(StoreError, match="action 18 of frame 'x_1' is out of range"):
        samples(freeway, [recorded(tmp_path, [Label("x_1", 18)])])
    with pytest.raises(UnusableRecordingError, match="no action"):
        samples(freeway, [recorded(tmp_path / "a", [Label("x_1", None)])])
    with written_recording(tmp_path / "b", "x") as add:
        add(Label("x_1", 2), pictures(1, (84, 84))[0])
    with pytest.raises(StoreError, match=r"x\.tar\.bz2: frames have 84 x 84 pixels, but freeway has 160 x 210"):
        samples(freeway, [read_recording(tmp_path / "b" / "x.txt")])
    found = samples(freeway, [read_recording(write(tmp_path / "c", ROWS))])
    assert found.label_counts.tolist() == [[1, 2, 0]]
