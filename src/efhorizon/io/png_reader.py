"""Reading a PNG file that may come from anywhere: size first, then checksums, then exactly as many bytes as it says.

Read are pictures of 8 bits or less per channel that are not interlaced: grey, RGB, or numbers of a palette, with or
without transparency, which is dropped. Nothing is decompressed before the size of the picture is known and allowed,
and no more of it than the picture has, so that a small file cannot take much memory or time. Image libraries show what
is left of a damaged picture; this reader refuses it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import compiled
from efhorizon.errors import EfhorizonError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOUR, _PALETTE, _GREY_ALPHA, _COLOUR_ALPHA = 0, 2, 3, 4, 6  # colour types
_CHANNELS = {_GREY: 1, _COLOUR: 3, _PALETTE: 1, _GREY_ALPHA: 2, _COLOUR_ALPHA: 4}
_BITS = {_GREY: (1, 2, 4, 8), _PALETTE: (1, 2, 4, 8)}  # of other types: 8
_MAX_FILTER = 4


class InvalidPictureError(EfhorizonError, ValueError):
    """Bytes that are not a PNG picture which can be read; the message is one line without the name of the file."""


class _Head(NamedTuple):
    width: int
    height: int
    bits: int
    colour_type: int

    @property
    def row_bytes(self) -> int:
        return (self.width * self.bits * _CHANNELS[self.colour_type] + 7) // 8


def decoded_png(content: bytes, *, max_pixels: int) -> NDArray[np.uint8]:
    """A picture [H, W, 3] in RGB from the bytes of a PNG file."""
    chunks = _chunks(content)
    first, data = next(chunks)
    if first != b"IHDR" or len(data) != 13:
        raise InvalidPictureError("a PNG must begin with a header of 13 bytes")
    head = _head(data, max_pixels)
    palette, parts = b"", []
    for kind, data in chunks:
        if kind == b"PLTE":
            palette = data
        elif kind == b"IDAT":
            parts.append(data)
        elif not kind[0] & 32:  # a capital: must be understood
            raise InvalidPictureError(f"it has a part {kind!r} that is not known")
    rows = _rows(b"".join(parts), head)
    if head.colour_type == _PALETTE:
        return _coloured(_unpacked(rows, head), palette)
    pixels = _unpacked(rows, head).reshape(head.height, head.width, -1)
    if head.colour_type in (_GREY, _GREY_ALPHA):
        grey = pixels[:, :, :1] * np.uint8(255 // ((1 << head.bits) - 1))
        return np.repeat(grey, 3, axis=2)
    return np.ascontiguousarray(pixels[:, :, :3])


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and data of each part before the end mark, which must be there."""
    if not content.startswith(_SIGNATURE):
        raise InvalidPictureError("it is not a PNG file")
    place = len(_SIGNATURE)
    while True:
        length = int.from_bytes(content[place : place + 4], "big")
        end = place + 12 + length
        if end > len(content):
            raise InvalidPictureError(f"it is cut short after {len(content):,} bytes")
        kind, data = content[place + 4 : place + 8], content[place + 8 : end - 4]
        if zlib.crc32(kind + data) != int.from_bytes(content[end - 4 : end], "big"):
            raise InvalidPictureError(f"the checksum of its part {kind!r} is wrong")
        if kind == b"IEND":
            return
        yield kind, data
        place = end


def _head(data: bytes, max_pixels: int) -> _Head:
    width, height, bits, colour_type, compression, filtering, interlacing = struct.unpack(">IIBBBBB", data)
    if not (width and height) or width * height > max_pixels:
        raise InvalidPictureError(f"{width:,} x {height:,} pixels; at most {max_pixels:,} pixels are read")
    if colour_type not in _CHANNELS or bits not in _BITS.get(colour_type, (8,)) or compression or filtering:
        raise InvalidPictureError(f"colour type {colour_type} with {bits} bits is not read")
    if interlacing:
        raise InvalidPictureError("it is interlaced, which is not read")
    return _Head(width, height, bits, colour_type)


def _rows(data: bytes, head: _Head) -> NDArray[np.uint8]:
    """The bytes of each row [H, row_bytes], without filters."""
    size = head.height * (head.row_bytes + 1)
    decompressor = zlib.decompressobj()
    try:
        plain = decompressor.decompress(data, size + 1)
    except zlib.error as error:
        raise InvalidPictureError(f"its pixels are damaged ({error})") from None
    if len(plain) != size or not decompressor.eof:
        more = "more" if len(plain) > size else "fewer"
        raise InvalidPictureError(f"it has {more} pixels than {head.width} x {head.height}")
    rows = np.frombuffer(plain, np.uint8).reshape(head.height, -1)
    filters = rows[:, 0]
    if int(filters.max()) > _MAX_FILTER:
        raise InvalidPictureError(f"filter {int(filters.max())} is not known")
    plain_rows = rows[:, 1:].copy()
    if filters.any():
        _undo_filters(filters, max(1, head.bits * _CHANNELS[head.colour_type] // 8), plain_rows)
    return plain_rows


def _unpacked(rows: NDArray[np.uint8], head: _Head) -> NDArray[np.uint8]:
    """Numbers of pixels [H, W * channels]; several may be in a byte, the leftmost in the highest bits."""
    if head.bits == 8:
        return rows
    shifts = np.arange(8 - head.bits, -1, -head.bits, dtype=np.uint8)
    of_byte = (np.arange(256, dtype=np.uint8)[:, None] >> shifts) & np.uint8((1 << head.bits) - 1)  # [256, pixels]
    numbers: NDArray[np.uint8] = np.take(of_byte, rows, axis=0, mode="clip").reshape(head.height, -1)
    return numbers[:, : head.width]


def _coloured(numbers: NDArray[np.uint8], palette: bytes) -> NDArray[np.uint8]:
    if len(palette) % 3 or len(palette) > 3 * 256 or int(numbers.max()) >= len(palette) // 3:
        raise InvalidPictureError(f"its palette of {len(palette)} bytes lacks a colour that it uses")
    colours = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    return np.take(colours, numbers, axis=0, mode="clip")  # faster than checking the numbers once more


@compiled
def _undo_filters(filters: NDArray[np.uint8], pixel_bytes: int, rows: NDArray[np.uint8]) -> None:
    """Turn differences into values, in place: from the left (1), above (2), their mean (3), or Paeth's choice (4)."""
    height, width = rows.shape
    for y in range(height):
        kind = filters[y]
        if kind == 0:
            continue
        for x in range(width):
            left = int(rows[y, x - pixel_bytes]) if x >= pixel_bytes else 0
            above = int(rows[y - 1, x]) if y > 0 else 0
            predicted = 0
            if kind == 1:
                predicted = left
            elif kind == 2:
                predicted = above
            elif kind == 3:
                predicted = (left + above) // 2
            else:
                corner = int(rows[y - 1, x - pixel_bytes]) if x >= pixel_bytes and y > 0 else 0
                to_left, to_above = abs(above - corner), abs(left - corner)
                to_corner = abs(left + above - 2 * corner)
                if to_left <= to_above and to_left <= to_corner:
                    predicted = left
                elif to_above <= to_corner:
                    predicted = above
                else:
                    predicted = corner
            rows[y, x] = (int(rows[y, x]) + predicted) & 255
