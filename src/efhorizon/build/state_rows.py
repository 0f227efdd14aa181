"""States as rows of bytes in one growing file that is mapped into memory, and an index that numbers them.

The index is an open-addressing table of numbers; what is compared is the rows themselves, so there are no keys and no
collisions. Numbers are 32 bits wide until there are too many states for that, then 64.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.search_records import damaged
from efhorizon.compiled import compiled_with
from efhorizon.errors import StoreError

_EMPTY = -1
_GROWTH = 1.5
_LEAST_ROWS = 1 << 12
MOST_NARROW = (1 << 31) - 2  # states that 32-bit numbers are enough for


class RowFile:
    """Rows of bytes [n, width] in a file that is mapped into memory and grows."""

    def __init__(self, path: Path, width: int, rows: int = 0) -> None:
        """`rows` is what was committed; what is behind it is written over."""
        self.path, self.width, self.rows = path, width, rows
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if os.fstat(self._descriptor).st_size < rows * width:
            raise damaged(path, f"fewer than {rows} rows")
        self._map: mmap.mmap | None = None
        self.array: NDArray[np.uint8] = np.empty((0, width), np.uint8)  # [capacity, width]
        self._reserve(max(rows, _LEAST_ROWS))

    def reserve(self, more: int) -> None:
        if self.rows + more > len(self.array):
            self._reserve(max(self.rows + more, int(_GROWTH * len(self.array))))

    def flush(self) -> None:
        assert self._map is not None
        try:
            self._map.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        self.array = np.empty((0, self.width), np.uint8)
        self._map = None  # closed when the last array that looks into it is gone
        os.close(self._descriptor)

    def _reserve(self, capacity: int) -> None:
        size = -(-capacity * self.width // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            os.posix_fallocate(self._descriptor, 0, size)  # so that a full disk is found here, not in the mapping
        except OSError as error:
            raise self._unwritable(error) from None
        self._map = mmap.mmap(self._descriptor, size)
        self.array = np.frombuffer(self._map, np.uint8)[: capacity * self.width].reshape(capacity, self.width)

    def _unwritable(self, error: OSError) -> StoreError:
        return StoreError(f"{self.path}: cannot be written ({error.strerror}); what was committed is kept")


class RowIndex:
    """Numbers the rows of a file in the order in which they are first seen."""

    def __init__(self, file: RowFile, *, most_narrow: int = MOST_NARROW) -> None:
        self._file, self._most_narrow = file, most_narrow
        self._slots: NDArray[Any] = np.full(_slots_for(max(file.rows, _LEAST_ROWS)), _EMPTY, self._dtype(file.rows))
        _fill(file.array, file.rows, self._slots)

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes

    def numbers(self, rows: NDArray[np.uint8], skipped: NDArray[np.bool_], out: NDArray[np.int64]) -> None:
        """The number of each row [n, width]; new ones are appended to the file. -1 for rows that are skipped."""
        file = self._file
        file.reserve(len(rows))
        wanted = file.rows + len(rows)
        dtype = self._dtype(wanted)
        if 3 * wanted > 2 * len(self._slots) or dtype != self._slots.dtype:
            size = max(len(self._slots), _slots_for(wanted))
            del self._slots  # before its successor is made
            self._slots = np.full(size, _EMPTY, dtype)
            _fill(file.array, file.rows, self._slots)
        file.rows = int(_insert(rows, skipped, file.array, self._slots, file.rows, out))

    def _dtype(self, rows: int) -> Any:
        return np.int32 if rows <= self._most_narrow else np.int64


def _slots_for(rows: int) -> int:
    return 1 << int(3 * rows // 2).bit_length()


@compiled_with(nogil=True)
def _hash(row: Any) -> Any:
    value = np.uint64(0x9E3779B97F4A7C15)
    word, filled = np.uint64(0), 0
    for i in range(len(row)):
        word |= np.uint64(row[i]) << np.uint64(8 * filled)
        filled += 1
        if filled == 8 or i == len(row) - 1:
            value = (value ^ word) * np.uint64(0xFF51AFD7ED558CCD)
            value ^= value >> np.uint64(32)
            word, filled = np.uint64(0), 0
    value *= np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(29))


@compiled_with(nogil=True)
def _insert(rows: Any, skipped: Any, stored: Any, slots: Any, size: int, out: Any) -> int:
    mask = np.uint64(len(slots) - 1)
    width = rows.shape[1]
    for i in range(len(rows)):
        if skipped[i]:
            out[i] = -1
            continue
        row = rows[i]
        slot = _hash(row) & mask
        while True:
            number = slots[slot]
            if number < 0:
                for j in range(width):
                    stored[size, j] = row[j]
                slots[slot] = size
                out[i] = size
                size += 1
                break
            same = True
            for j in range(width):
                if stored[number, j] != row[j]:
                    same = False
                    break
            if same:
                out[i] = number
                break
            slot = (slot + np.uint64(1)) & mask
    return size


@compiled_with(nogil=True)
def _fill(stored: Any, size: int, slots: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for number in range(size):
        slot = _hash(stored[number]) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
