"""Writing a PNG file, so that showing a screen needs no image library."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def write_png(path: Path, picture: NDArray[np.uint8]) -> Path:
    """Write an image [H, W, 3] (RGB) or [H, W, 1] (grey)."""
    height, width, channels = picture.shape
    colour_type = {1: 0, 3: 2}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with filter type 0
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.tobytes())) + _chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    return path


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
