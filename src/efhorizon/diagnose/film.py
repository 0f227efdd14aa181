"""The film of a path: pictures of the states that greedy play met, as one sheet.

The path is played once more, on an environment that draws. Where steps are random it meets the same noise again, as
long as that comes from generators that can be seeded; if the rewards differ, there is no film.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.diagnose.diagnosis import Diagnosis, ForK
from efhorizon.diagnose.episodes import PATH, stream
from efhorizon.diagnose.subject import Subject
from efhorizon.errors import EfhorizonError
from efhorizon.io.png import encoded_png

COLUMNS, MOST_FRAMES, WIDEST = 10, 100, 160  # frames in a row, frames, pixels


class Film(NamedTuple):
    """A sheet of frames of one size, row by row."""

    png: bytes
    frames: int
    columns: int
    width: int  # of a frame
    height: int


def film(subject: Subject, found: Diagnosis) -> Film | None:
    """The film of the path that is shown; None where nothing can be drawn."""
    shown = shown_path(found)
    if shown is None:
        return None
    frames = _frames(subject, found, shown)
    if not frames:
        return None
    height, width, channels = frames[0].shape
    columns = min(COLUMNS, len(frames))
    sheet = np.zeros((-(-len(frames) // columns) * height, columns * width, channels), np.uint8)
    for number, frame in enumerate(frames):
        top, left = number // columns * height, number % columns * width
        sheet[top : top + height, left : left + width] = frame[:height, :width]
    return Film(encoded_png(sheet), len(frames), columns, width, height)


def shown_path(found: Diagnosis) -> ForK | None:
    """The k whose path is shown: that of the least timesteps, else the first that has one."""
    best = found.best_k
    if best is not None and best.decisions:
        return best
    return next((each for each in found.by_k.values() if each.decisions), None)


def _frames(subject: Subject, found: Diagnosis, shown: ForK) -> list[NDArray[np.uint8]]:
    try:
        stage = subject.spec("rgb_array")
    except EfhorizonError:  # it draws nothing
        return []
    rng, frames, rewards = stream(found.seed, PATH, shown.k, shown.pass_number), [], []
    try:
        stage.begin(rng)
        for decision in shown.decisions[: MOST_FRAMES - 1]:
            frames.append(stage.picture())
            rewards.append(stage.go_on(decision.action, rng).total)
        frames.append(stage.picture())
    except EfhorizonError:
        return []
    finally:
        stage.close()
    if any(frame is None for frame in frames) or rewards != list(shown.rewards[: len(rewards)]):
        return []
    return [_shrunk(frame) for frame in frames if frame is not None]


def _shrunk(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Every n-th pixel, so that the picture is narrow enough."""
    step = -(-picture.shape[1] // WIDEST)
    return picture[::step, ::step]
