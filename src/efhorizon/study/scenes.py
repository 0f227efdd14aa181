"""What a person would like to see of an MDP: an optimal episode as one sheet of frames, and single states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.mdp import TabularMDP
from efhorizon.planning.earliest import earliest_actions
from efhorizon.planning.optimal import OptimalValues
from efhorizon.planning.timeline import Timeline
from efhorizon.suites.drawing import picture

MAX_FRAMES = 200
MAX_FRAME_WIDTH = 160  # pixels, the width of an Atari screen
_COLUMNS = 16


@dataclass(frozen=True)
class OptimalEpisode:
    """One episode: the state in which each action was taken, and what it paid."""

    states: tuple[int, ...]
    actions: tuple[int, ...]
    rewards: tuple[float, ...]


@dataclass(frozen=True)
class SpriteSheet:
    """Frames of one size, row by row."""

    image: NDArray[np.uint8]  # [H, W, 3 or 1]
    frames: int
    columns: int
    width: int  # of a frame
    height: int


def optimal_episode(timeline: Timeline, optimal: OptimalValues) -> OptimalEpisode:
    """An optimal episode that is paid as early as can be."""
    mdp = timeline.mdp
    choice = earliest_actions(timeline, optimal).argmax(axis=1)
    pair, states, actions, rewards = 0, [], [], []
    while pair >= 0:
        state, action = int(timeline.states[pair]), int(choice[pair])
        states.append(state)
        actions.append(action)
        rewards.append(float(mdp.reward_values[mdp.reward_codes[state, action]]))
        pair = int(timeline.successors[pair, action])
    return OptimalEpisode(tuple(states), tuple(actions), tuple(rewards))


def sprite_sheet(mdp: TabularMDP, states: tuple[int, ...]) -> SpriteSheet:
    """The pictures of some states, the first ones where they are too many, small enough for a web page."""
    frames = [shrunk(picture(mdp, state)) for state in states[:MAX_FRAMES]]
    height, width, channels = frames[0].shape
    columns = min(_COLUMNS, len(frames))
    lines = -(-len(frames) // columns)
    image = np.zeros((lines * height, columns * width, channels), np.uint8)
    for number, frame in enumerate(frames):
        top, left = number // columns * height, number % columns * width
        image[top : top + height, left : left + width] = frame
    return SpriteSheet(image, len(frames), columns, width, height)


def shrunk(image: NDArray[np.uint8], max_width: int = MAX_FRAME_WIDTH) -> NDArray[np.uint8]:
    """Every n-th pixel, for the least n that makes the image narrow enough: no new colours, so it packs well."""
    step = -(-image.shape[1] // max_width)
    return image[::step, ::step]
