"""A person at the keyboard, in a small window.

    Atari      arrows and space (fire), 20 frames a second, as Atari-HEAD was played
    Procgen    arrows and the letters of the game's special keys, 15 steps a second; without a key, nothing is done
    MiniGrid   arrows turn and walk, space toggles, p picks up, d drops; the game waits for a key
    others     the number of an action; the game waits for a key

Escape or closing the window ends the session; what was played until then is kept. The window needs `pygame`, which
minigrid brings along, and a screen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from efhorizon.policies.actions import ALE_ACTIONS, ATARI, minimal_set, nearest_actions, switches
from efhorizon.policies.live import LiveGame, PlayedStep, RecordingError
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry

ATARI_SPEED, OTHER_SPEED = 20, 15  # frames a second
_WINDOW_HEIGHT = 630  # pixels, roughly: three times Atari's
_OPPOSITE = (("up", "down"), ("left", "right"))
_ARROWS = frozenset(("up", "down", "left", "right"))
_KEYS_OF_NAMES = {"forward": ("up",), "pickup": ("p",), "drop": ("d",), "toggle": ("space",), "nothing": ("space",)}
_NEEDS = "playing at the keyboard needs"
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")  # one of them says where the screen is on Linux

Keys = frozenset[str]


def actions_of_keys(entry: Entry) -> dict[Keys, int]:
    """Which action each set of pressed keys is."""
    found: dict[Keys, int] = {}
    if entry.suite == ATARI:
        nearest = nearest_actions(minimal_set(entry))
        for number, name in enumerate(ALE_ACTIONS):
            keys = (switch.lower().replace("fire", "space") for switch in switches(name))
            found[frozenset(keys)] = int(nearest[number])
        return found
    names = registry.suite(entry.suite).action_names(entry.game)[: entry.num_actions]
    for number, name in enumerate(names):
        words = name.lower().split()
        if name in _KEYS_OF_NAMES or _ARROWS.issuperset(words) or (len(words) == 1 and len(words[0]) == 1):
            found[frozenset(_KEYS_OF_NAMES.get(name, words))] = number
    for number in range(min(10, entry.num_actions)):
        found[frozenset(str(number))] = number
    return found


def pressed_action(pressed: Sequence[str], actions: dict[Keys, int]) -> int | None:
    """The action of these keys; opposite arrows cancel each other. None where they mean nothing."""
    keys = set(pressed)
    for pair in _OPPOSITE:
        if keys.issuperset(pair):
            keys.difference_update(pair)
    return actions.get(frozenset(keys), actions.get(frozenset(pressed[-1:])) if pressed else None)


class KeyboardPlayer:
    """Someone who looks at a window and presses keys."""

    def __init__(self, entry: Entry, *, speed: int | None = None) -> None:
        self._pygame = _pygame()
        self._actions = actions_of_keys(entry)
        self._waits = registry.suite(entry.suite).network(entry.game) == "dense"
        self._idle = self._actions.get(frozenset(), self._actions.get(frozenset(("space",)), 0))
        self._speed = speed or (ATARI_SPEED if entry.suite == ATARI else OTHER_SPEED)
        self._clock = self._pygame.time.Clock()
        self._window: Any = None
        self._title = entry.name
        self._held: list[str] = []  # keys, the last pressed last
        self._stopped = False

    def begin(self, game: LiveGame) -> None:
        self._held.clear()
        self._draw(game)

    def action(self, game: LiveGame) -> int | None:
        self._draw(game)
        if self._waits:
            return self._awaited()
        self._clock.tick(self._speed)
        tapped = self._events(self._pygame.event.get())
        pressed = list(dict.fromkeys([*self._held, *tapped]))
        found = pressed_action(pressed, self._actions)
        return None if self._stopped else self._idle if found is None else found

    def took(self, action: int, step: PlayedStep) -> None:
        """Nothing to remember: the window shows it."""

    def close(self) -> None:
        self._pygame.quit()

    def _awaited(self) -> int | None:
        """The action of the next key that means something."""
        while not self._stopped:
            for key in self._events([self._pygame.event.wait()]):
                found = pressed_action([key], self._actions)
                if found is not None:
                    return found
        return None

    def _events(self, events: Sequence[Any]) -> list[str]:
        """Follow what is pressed and released; the keys that were pressed just now."""
        pygame, tapped = self._pygame, list[str]()
        for event in events:
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                self._stopped = True
            elif event.type in (pygame.KEYDOWN, pygame.KEYUP):
                key = pygame.key.name(event.key)
                if key in self._held:
                    self._held.remove(key)
                if event.type == pygame.KEYDOWN:
                    self._held.append(key)
                    tapped.append(key)
        return tapped

    def _draw(self, game: LiveGame) -> None:
        picture = game.picture
        height, width = picture.shape[:2]
        scale = max(1, _WINDOW_HEIGHT // height)
        size = (width * scale, height * scale)
        if self._window is None:
            self._window = self._pygame.display.set_mode(size)
            self._pygame.display.set_caption(self._title)
        shown = self._pygame.image.frombuffer(picture.tobytes(), (width, height), "RGB")
        self._window.blit(self._pygame.transform.scale(shown, size), (0, 0))
        self._pygame.display.flip()


def _pygame() -> Any:
    """pygame with a screen to draw on."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        pygame: Any = import_module("pygame")
    except ImportError:
        raise RecordingError(f"{_NEEDS} 'pygame', which is not installed: pip install pygame") from None
    # SDL would look further and print what it finds
    if sys.platform.startswith("linux") and not any(name in os.environ for name in _SCREENS):
        raise RecordingError(f"{_NEEDS} a screen, and there is none ({', '.join(_SCREENS[:2])} are not set)")
    try:
        pygame.display.init()
    except pygame.error as error:
        raise RecordingError(f"{_NEEDS} a screen, and there is none ({error})") from None
    return pygame
