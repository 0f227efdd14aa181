"""A person at the keyboard: keys are posted to a window that nobody sees."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from efhorizon.policies.keyboard import KeyboardPlayer, actions_of_keys, pressed_action
from efhorizon.policies.live import LiveGame, RecordingError, frame_by_frame
from efhorizon.policies.record import played, record
from efhorizon.policies.samples import recorded_entry
from efhorizon.suites.procgen import ACTION_NAMES


@pytest.fixture
def pygame(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    found = pytest.importorskip("pygame")
    yield found
    found.quit()


def test_keys_of_each_suite() -> None:
    pytest.importorskip("ale_py")
    freeway = actions_of_keys(recorded_entry("freeway"))
    assert [pressed_action(keys, freeway) for keys in ([], ["up"], ["up", "right"], ["space"], ["down"])] == [
        0,
        1,
        1,
        0,
        2,
    ]
    assert pressed_action(["up", "down"], freeway) == 0
    assert pressed_action(["x"], freeway) is None
    maze = actions_of_keys(recorded_entry("maze_easy_l0_10_fs1"))
    for keys, name in ([["left", "up"], "left up"], [["right"], "right"], [["space"], "nothing"]):
        assert ACTION_NAMES[maze[frozenset(keys)]] == name
    door = actions_of_keys(recorded_entry("MiniGrid-DoorKey-5x5-v0"))
    assert [door[frozenset((key,))] for key in ("left", "right", "up", "p", "d", "space", "5")] == [0, 1, 2, 3, 4, 5, 5]


def test_atari_is_played_frame_by_frame(pygame: Any, tmp_path: Path) -> None:
    """Up is held for three frames, then tapped within one; a key without meaning does nothing; escape ends it all."""
    pytest.importorskip("ale_py")
    entry = frame_by_frame(recorded_entry("freeway_10_fs30"))
    down, up = pygame.KEYDOWN, pygame.KEYUP
    script = [
        [(down, pygame.K_UP)],
        [],
        [],
        [(up, pygame.K_UP)],
        [(down, pygame.K_DOWN), (up, pygame.K_DOWN)],
        [(down, pygame.K_x)],
        [(up, pygame.K_x), (down, pygame.K_ESCAPE)],
    ]

    class Scripted(KeyboardPlayer):
        def action(self, game: LiveGame) -> int | None:
            for kind, key in script.pop(0):
                pygame.event.post(pygame.event.Event(kind, key=key))
            return super().action(game)

    player = Scripted(entry, speed=1000)
    recording, (episode,) = record(entry, player, tmp_path, "me", episodes=5)
    player.close()
    assert [label.action for label in recording.labels] == [2, 2, 2, 0, 5, 0]  # ALE's numbers
    assert (episode.steps, episode.frames) == (6, 6)
    assert len(list(recording.frames())) == 6


def test_minigrid_waits_for_a_key(pygame: Any) -> None:
    pytest.importorskip("minigrid")
    entry = recorded_entry("MiniGrid-Empty-5x5-v0")
    player, game = KeyboardPlayer(entry), LiveGame(entry)
    player.begin(game)
    keys = [pygame.K_UP, pygame.K_x, pygame.K_UP, pygame.K_RIGHT, pygame.K_UP, pygame.K_UP]
    for key in keys:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
        pygame.event.post(pygame.event.Event(pygame.KEYUP, key=key))
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    episodes = list(played(game, player, 2))
    assert [(episode.total_reward, episode.steps) for episode in episodes] == [(1.0, 5)]


def test_without_pygame_or_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minigrid")
    pytest.importorskip("pygame")
    entry = recorded_entry("MiniGrid-Empty-5x5-v0")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform == "linux":
        with pytest.raises(RecordingError, match="needs a screen, and there is none"):
            KeyboardPlayer(entry)
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(RecordingError, match="needs 'pygame', which is not installed"):
        KeyboardPlayer(entry)
