"""An index from 128-bit keys to state numbers, in about 30 bytes per state.

Keys lie in one growing array in the order of their numbers; an open-addressing table of 32-bit numbers points into
it. A key is a hash, so equal keys only say that two byte strings are probably equal: the caller compares the bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Integers, Words, compiled

_GROWTH = 1.3  # of the array of keys
_EMPTY = -1


class KeyIndex:
    """Numbers keys in the order in which they are first seen."""

    def __init__(self, keys: NDArray[np.uint64] | None = None) -> None:
        """Start with the given distinct keys [n, 2], or with none."""
        self._keys = np.empty((1024, 2), np.uint64)
        self._slots = np.full(2048, _EMPTY, np.int32)
        self._size = 0
        if keys is not None and len(keys):
            self.numbers(keys)

    def __len__(self) -> int:
        return self._size

    def numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each key [n, 2]; a number of at least the former length is new."""
        self._reserve(self._size + len(keys))
        numbers = np.empty(len(keys), np.int32)
        self._size = _insert(keys, self._keys, self._slots, self._size, numbers)
        return numbers

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each key [n, 2], or -1; nothing is added."""
        numbers = np.empty(len(keys), np.int32)
        _find(keys, self._keys, self._slots, numbers)
        return numbers

    def keys(self, numbers: NDArray[Any]) -> NDArray[np.uint64]:
        """The keys [n, 2] that have these numbers."""
        keys: NDArray[np.uint64] = self._keys[numbers]
        return keys

    def nbytes(self) -> int:
        return self._keys.nbytes + self._slots.nbytes

    def _reserve(self, size: int) -> None:
        if size > len(self._keys):
            grown = np.empty((max(size, int(len(self._keys) * _GROWTH)), 2), np.uint64)
            grown[: self._size] = self._keys[: self._size]
            self._keys = grown
        if size * 3 > len(self._slots) * 2:
            capacity = len(self._slots)
            while size * 3 > capacity * 2:
                capacity *= 2
            self._slots = np.full(capacity, _EMPTY, np.int32)
            _fill(self._keys, self._size, self._slots)


@compiled
def _insert(keys: Words, stored: Words, slots: Integers, size: int, numbers: Integers) -> int:
    mask = len(slots) - 1
    for i in range(len(keys)):
        slot = np.int64(keys[i, 0]) & mask
        while True:
            number = slots[slot]
            if number == _EMPTY:
                stored[size, 0] = keys[i, 0]
                stored[size, 1] = keys[i, 1]
                slots[slot] = size
                numbers[i] = size
                size += 1
                break
            if stored[number, 0] == keys[i, 0] and stored[number, 1] == keys[i, 1]:
                numbers[i] = number
                break
            slot = (slot + 1) & mask
    return size


@compiled
def _find(keys: Words, stored: Words, slots: Integers, numbers: Integers) -> None:
    mask = len(slots) - 1
    for i in range(len(keys)):
        slot = np.int64(keys[i, 0]) & mask
        number = slots[slot]
        while number != _EMPTY and (stored[number, 0] != keys[i, 0] or stored[number, 1] != keys[i, 1]):
            slot = (slot + 1) & mask
            number = slots[slot]
        numbers[i] = number


@compiled
def _fill(stored: Words, size: int, slots: Integers) -> None:
    mask = len(slots) - 1
    for number in range(size):
        slot = np.int64(stored[number, 0]) & mask
        while slots[slot] != _EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = number
