"""Writing a PNG file, so that showing a screen needs no image library.

Screens of games have few colours, so if 256 colours suffice an image is stored as indices into a palette: a third of
the bytes or less. Other images get a filter for each row, chosen by the usual rule (the least sum of differences),
unless they are smaller without one: a sheet of frames repeats itself, and filters hide that.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from efhorizon.io.files import written_aside

_GREY, _COLOUR, _PALETTE = 0, 2, 3  # PNG's colour types
_PLAIN, _LEFT, _ABOVE = 0, 1, 2  # its filters: as it is, less the pixel on the left, less the pixel above
_MAX_COLOURS = 256


def write_png(path: Path, picture: NDArray[np.uint8]) -> Path:
    """Write an image [H, W, 3] (RGB) or [H, W, 1] (grey); a full disk leaves no half of one."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    content = encoded_png(picture)
    with written_aside(path) as temporary:
        temporary.write_bytes(content)
    return path


def encoded_png(picture: NDArray[np.uint8]) -> bytes:
    """An image [H, W, 3] (RGB) or [H, W, 1] (grey) as the bytes of a PNG file."""
    palette, numbers = _with_palette(picture) if picture.shape[2] == 3 else (None, picture)
    if palette is None:
        plain = _behind(_PLAIN, picture.reshape(len(picture), -1))
        data = min(_compressed(plain), _compressed(_filtered(picture)), key=len)
        return _file(picture.shape, 8, _GREY if picture.shape[2] == 1 else _COLOUR, b"", data)
    bits = next(bits for bits in (1, 2, 4, 8) if len(palette) <= 1 << bits)
    data = _compressed(_behind(_PLAIN, _packed(numbers, bits)))
    return _file(picture.shape, bits, _PALETTE, _chunk(b"PLTE", palette.tobytes()), data)


def _file(shape: tuple[int, ...], bits: int, colour_type: int, palette: bytes, data: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", shape[1], shape[0], bits, colour_type, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + palette + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _compressed(rows: NDArray[np.uint8]) -> bytes:
    return zlib.compress(rows.tobytes(), level=9)


def _behind(filters: int | NDArray[np.uint8], rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows, each behind the number of its filter."""
    numbers = np.broadcast_to(np.asarray(filters, np.uint8), len(rows))
    return np.concatenate([numbers[:, None], rows], axis=1)


def _with_palette(picture: NDArray[np.uint8]) -> tuple[NDArray[np.uint8] | None, NDArray[np.uint8]]:
    """The colours [C, 3] and the number of each pixel's [H, W], or None and the picture where there are too many."""
    wide = picture.astype(np.uint32)
    colours, numbers = np.unique(wide[:, :, 0] << 16 | wide[:, :, 1] << 8 | wide[:, :, 2], return_inverse=True)
    if len(colours) > _MAX_COLOURS:
        return None, picture
    palette = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.uint8)
    return palette, numbers.reshape(picture.shape[:2]).astype(np.uint8)


def _packed(numbers: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Numbers [H, W] below 2^bits, several in a byte: the leftmost pixel in the highest bits."""
    each = 8 // bits
    height, width = numbers.shape
    padded = np.zeros((height, -(-width // each) * each), np.uint8)
    padded[:, :width] = numbers
    shifts = np.arange(each - 1, -1, -1, dtype=np.uint8) * np.uint8(bits)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(padded.reshape(height, -1, each) << shifts, axis=2)
    return packed


def _filtered(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows as differences modulo 256 from the pixel on the left or above, whichever are smaller."""
    height, width, channels = picture.shape
    plain = picture.reshape(height, width * channels)
    left, above = plain.copy(), plain.copy()
    left[:, channels:] -= plain[:, :-channels]
    above[1:] -= plain[:-1]
    choices = np.stack([plain, left, above])  # [3, H, W * C]
    sizes = np.minimum(choices, 0 - choices).sum(axis=2, dtype=np.int64)  # as signed numbers
    chosen = sizes.argmin(axis=0)
    return _behind(np.array([_PLAIN, _LEFT, _ABOVE], np.uint8)[chosen], choices[chosen, np.arange(height)])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
