"""ALE's eighteen joystick actions, and which action of a game stands for each of them.

A game's minimal action set leaves out what makes no difference to it. People press those keys all the same. An action
that the game does not have is taken as the one that presses most of the same switches (up, down, left, right, fire)
and no other; among equals, as the one with the lowest number. In Freeway (NOOP, UP, DOWN), UPRIGHT is UP, and FIRE is
NOOP.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.simulator import SimulatorError

ATARI = "atari"
_DIRECTIONS = ("UP", "RIGHT", "LEFT", "DOWN", "UPRIGHT", "UPLEFT", "DOWNRIGHT", "DOWNLEFT")
ALE_ACTIONS = ("NOOP", "FIRE", *_DIRECTIONS, *(f"{direction}FIRE" for direction in _DIRECTIONS))
_SWITCHES = ("UP", "DOWN", "LEFT", "RIGHT", "FIRE")


def switches(action: str) -> frozenset[str]:
    """What an action presses."""
    return frozenset(switch for switch in _SWITCHES if switch in action)


def minimal_set(entry: Entry) -> tuple[str, ...]:
    """The names of an Atari game's own actions, in the order of their numbers."""
    names = tuple(registry.suite(entry.suite).action_names(entry.game))
    if len(names) != entry.num_actions:
        raise SimulatorError(f"{entry.game}: its actions are not known: are ale-py and the ROM installed?")
    return names


def ale_numbers(entry: Entry) -> list[int]:
    """How ALE numbers each action of an entry; in other suites, actions keep their number."""
    if entry.suite != ATARI:
        return list(range(entry.num_actions))
    return [ALE_ACTIONS.index(name) for name in minimal_set(entry)]


def nearest_actions(minimal: Sequence[str]) -> NDArray[np.int64]:
    """For each of ALE's actions the number of the game's action that stands for it, [18]."""
    pressed = [switches(name) for name in minimal]
    nearest = []
    for action in ALE_ACTIONS:
        allowed = [number for number, keys in enumerate(pressed) if keys <= switches(action)]
        nearest.append(min(allowed, key=lambda number: (-len(pressed[number]), ALE_ACTIONS.index(minimal[number]))))
    return np.array(nearest)
