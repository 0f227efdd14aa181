"""A file that only grows, with a running checksum. What was committed is compared with it before anything is used."""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.search_records import damaged
from efhorizon.errors import StoreError
from efhorizon.io.machine import available_memory

_BLOCK = 1 << 20


class AppendFile:
    """Reads see what was appended, written or not. Nothing is written before what was committed has been checked."""

    def __init__(self, path: Path, file: IO[bytes], size: int = 0, checksum: int = 0) -> None:
        """`size` and `checksum` are what was committed; anything behind it is cut off by the first write."""
        self.path, self.size, self.checksum = path, size, checksum
        self._file = file
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise damaged(path, "not a regular file")
        if found.st_size < size:
            raise damaged(path, f"{found.st_size} bytes, but {size} were committed")
        self._committed, self._committed_checksum = size, checksum
        self._is_checked = False
        self._is_cut = found.st_size == size
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._written = size

    def append(self, data: bytes | NDArray[Any]) -> None:
        block = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        if not block:
            return
        self.checksum = zlib.crc32(block, self.checksum)
        self._pending.append(block)
        self._pending_size += len(block)
        self.size += len(block)
        if self._pending_size > _BLOCK:
            self._write()

    def read(self, start: int, stop: int) -> bytes:
        if not 0 <= start <= stop <= self.size:
            raise damaged(self.path, f"bytes {start} to {stop} of {self.size} are asked for")
        self._check()
        if stop > self._written:
            self._write()
        data = os.pread(self._file.fileno(), stop - start, start)
        if len(data) != stop - start:
            raise damaged(self.path, "cut short")
        return data

    def array(self, dtype: Any) -> NDArray[Any]:
        """All of it."""
        if self.size > available_memory():
            raise StoreError(f"{self.path}: needs {self.size:,} bytes of memory, more than is available")
        self._check()
        self._write()
        array = np.empty(self.size // np.dtype(dtype).itemsize, dtype)
        if _fill(self._file.fileno(), array.view(np.uint8).data, 0) != self.size:
            raise damaged(self.path, "cut short")
        return array

    def flush(self) -> None:
        """Write everything, so that it can be committed."""
        self._write()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from None
        if os.fstat(self._file.fileno()).st_nlink == 0:
            raise StoreError(f"{self.path}: deleted while the search was running; run the same command to begin again")

    def _check(self) -> None:
        """Compare what was committed with its checksum, once."""
        if self._is_checked:
            return
        buffer, checksum = memoryview(bytearray(min(_BLOCK, self._committed))), 0
        for start in range(0, self._committed, _BLOCK):
            block = buffer[: min(_BLOCK, self._committed - start)]
            if _fill(self._file.fileno(), block, start) != len(block):
                raise damaged(self.path, "cut short")
            checksum = zlib.crc32(block, checksum)
        if checksum != self._committed_checksum:
            raise damaged(self.path, "not what was written")
        self._is_checked = True

    def _write(self) -> None:
        if not self._pending and self._is_cut:
            return
        self._check()
        data = memoryview(b"".join(self._pending))
        try:
            if not self._is_cut:
                os.ftruncate(self._file.fileno(), self._committed)
                self._is_cut = True
            written = 0
            while written < len(data):
                written += os.pwrite(self._file.fileno(), data[written:], self._written + written)
        except OSError as error:
            raise self._unwritable(error) from None
        self._pending, self._pending_size, self._written = [], 0, self.size

    def _unwritable(self, error: OSError) -> StoreError:
        return StoreError(f"{self.path}: cannot be written ({error.strerror}); what was committed is kept")


def _fill(descriptor: int, buffer: memoryview, start: int) -> int:
    """Read into a buffer; how many bytes there were."""
    filled = 0
    while filled < len(buffer):
        count = os.preadv(descriptor, [buffer[filled:]], start + filled)
        if count == 0:
            break
        filled += count
    return filled
