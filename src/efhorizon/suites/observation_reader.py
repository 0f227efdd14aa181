"""What a network reads of the observations of any Gymnasium space: one vector of float32, or an image.

    numbers   floats as they are; integers divided by the largest that occurs in the table, so they lie in [-1, 1]
    choices   one-hot; where there are more than 1,024 values, one-hot over those that occur in the table
    words     one-hot over the texts that occur in the table
    images    an array of bytes whose sides have at least 36 pixels is an image for the CNN; with a side of more than
              128 pixels it is shrunk by averaging blocks. Smaller ones are integers like all others

What occurs in a table is taken from its screens, so a reader belongs to one table. It reads an observation of the live
environment (`observation_layout.screen_of`) just as it reads a stored one: the numbers are the same.

Legend: U observations of the table, B observations, n bytes of one, D columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.suites.observation_layout import (
    Choices,
    Layout,
    Leaf,
    Numbers,
    Words,
    colours_last,
    is_array_of_bytes,
    leaves,
)
from efhorizon.suites.simulator import Screen

MOST_CHOICES = 1_024  # that are one-hot whether they occur or not
MOST_VALUES = 8_192  # that may occur: each is a column of the network's input
MOST_BYTES = 2 << 30  # of all vectors of a table
LEAST_IMAGE_SIDE = 36  # the smallest that the three layers of the Nature CNN take
LARGEST_IMAGE_SIDE = 128

Stored = NDArray[np.uint8]  # [B, n]
Columns = NDArray[np.float32]  # [B, D]


class ObservationReader:
    """Reads the observations of one table."""

    def __init__(self, layout: Layout, screens: NDArray[np.uint8]) -> None:
        """`screens` [U, H, W, C] are all that the table has."""
        self.is_image = is_image(layout)
        self._leaves = leaves(layout)
        if screens[0].size < max(1, self._leaves[-1].stop if self._leaves else 0):
            raise InvalidTableError(f"its screens of {screens[0].size} bytes are smaller than its observations")
        if not self.is_image:
            rows = screens.reshape(len(screens), -1)
            self._columns = [self._reading(leaf, _own(rows, leaf)) for leaf in self._leaves]
            width = self._flat(rows[:1]).shape[1]
            if 4 * width * len(rows) > MOST_BYTES:
                raise InvalidTableError(
                    f"{len(rows):,} observations of {width:,} numbers are more than a network can read here (2 GB)"
                )

    def images(self, screens: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """What the CNN sees of screens [B, H, W, C], where observations are images."""
        return np.stack([image_for_network(screen) for screen in screens])

    def vectors(self, screens: NDArray[np.uint8]) -> Columns:
        """What a dense network sees of screens [B, H, W, C]: [B, D]."""
        return self._flat(screens.reshape(len(screens), -1))

    def _flat(self, rows: Stored) -> Columns:
        parts = [read(_own(rows, leaf)) for leaf, read in zip(self._leaves, self._columns, strict=True)]
        found: Columns = np.concatenate([*parts, np.zeros((len(rows), 0), np.float32)], axis=1)
        if not np.isfinite(found).all():
            raise InvalidTableError("its observations hold infinity or NaN, which a network cannot read")
        found += np.float32(0)  # -0.0 becomes 0.0
        return found

    def _reading(self, leaf: Leaf, stored: Stored) -> Callable[[Stored], Columns]:
        if isinstance(leaf.layout, Words):
            return self._vocabulary(leaf, stored)
        if isinstance(leaf.layout, Choices):
            return self._one_hot(leaf, stored, leaf.layout)
        return _numbers(stored, leaf.layout)

    def _one_hot(self, leaf: Leaf, stored: Stored, layout: Choices) -> Callable[[Stored], Columns]:
        known = _as_numbers(stored, layout.dtype)
        values = [_values(leaf, known[:, at], count) for at, count in enumerate(layout.counts)]

        def read(rows: Stored) -> Columns:
            given = _as_numbers(rows, layout.dtype)
            parts = [given[:, [at]] == own for at, own in enumerate(values)]
            found: Columns = np.concatenate([*parts, np.zeros((len(rows), 0))], axis=1).astype(np.float32)
            return found

        return read

    def _vocabulary(self, leaf: Leaf, stored: Stored) -> Callable[[Stored], Columns]:
        texts = np.unique(stored, axis=0)
        if len(texts) > MOST_VALUES:
            raise InvalidTableError(
                f"{leaf.name or 'the observation'}: {len(texts):,} texts are more than {MOST_VALUES:,}"
            )

        def read(rows: Stored) -> Columns:
            found: Columns = np.stack([(rows == text).all(axis=1) for text in texts], axis=1).astype(np.float32)
            return found

        return read


def reading_notes(layout: Layout) -> list[str]:
    """What people should know about how observations are read."""
    found = []
    for leaf in leaves(layout):
        counts = leaf.layout.counts if isinstance(leaf.layout, Choices) else []
        if max(counts, default=0) > MOST_CHOICES:
            part = f"{leaf.name} of an observation" if leaf.name else "an observation"
            found.append(f"{part} has {max(counts):,} possible values; agents see those that occur as one-hot vectors")
    return found


def is_image(layout: Layout) -> bool:
    """Whether networks see an image: bytes [H, W, C] (or [C, H, W]) that are large enough for the CNN."""
    if not is_array_of_bytes(layout):
        return False
    assert isinstance(layout, Numbers)
    shape = tuple(layout.shape) if len(layout.shape) == 3 else (*layout.shape, 1)
    height, width = colours_last(np.empty(shape, np.uint8)).shape[:2]
    return min(height, width) >= LEAST_IMAGE_SIDE


def image_for_network(screen: Screen) -> Screen:
    """The image that the CNN sees [H, W, C]: means of square blocks where the screen is large."""
    image = colours_last(screen)
    height, width, channels = image.shape
    block = min(-(-max(height, width) // LARGEST_IMAGE_SIDE), min(height, width) // LEAST_IMAGE_SIDE)
    if block <= 1:
        return np.ascontiguousarray(image)
    rows, columns = height // block, width // block
    blocks = image[: rows * block, : columns * block].reshape(rows, block, columns, block, channels)
    shrunk: Screen = np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)
    return shrunk


def _values(leaf: Leaf, known: NDArray[Any], count: int) -> NDArray[Any]:
    """The values that have a column: all where they are few and nothing else occurs; otherwise those that occur."""
    if count <= MOST_CHOICES and int(known.max(initial=0)) < count:
        return np.arange(count, dtype=known.dtype)
    values: NDArray[Any] = np.unique(known)
    if len(values) > MOST_VALUES:
        raise InvalidTableError(
            f"{leaf.name or 'the observation'}: {len(values):,} values occur, and a network takes at most "
            f"{MOST_VALUES:,} as one-hot vectors"
        )
    return values


def _numbers(stored: Stored, layout: Numbers) -> Callable[[Stored], Columns]:
    dtype, scale = np.dtype(layout.dtype), np.float64(1)
    if dtype.kind in "iu":
        known = _as_numbers(stored, dtype).astype(np.float64)
        scale = np.float64(max(1.0, float(np.abs(known).max(initial=0))))

    def read(rows: Stored) -> Columns:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            return (_as_numbers(rows, dtype).astype(np.float64) / scale).astype(np.float32)

    return read


def _as_numbers(rows: Stored, dtype: Any) -> NDArray[Any]:
    return np.ascontiguousarray(rows).view(dtype) if rows.shape[1] else np.zeros((len(rows), 0), dtype)


def _own(rows: Stored, leaf: Leaf) -> Stored:
    return rows[:, leaf.start : leaf.stop]
