"""Pictures of a study: PNG files whose checksums are compared, and only their image data."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from efhorizon.errors import StoreError

MAX_PIXELS = 40_000_000  # a browser takes four bytes for each
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEPT_CHUNKS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")


@dataclass(frozen=True)
class Picture:
    """A PNG file and its size."""

    content: bytes
    width: int
    height: int


def checked_png(content: bytes, where: str) -> Picture:
    """A PNG with only the image in it: texts, profiles and anything after the end are left out."""
    if not content.startswith(_SIGNATURE):
        raise StoreError(f"{where}: not a PNG file")
    kinds: list[bytes] = []
    kept, at = [_SIGNATURE], len(_SIGNATURE)
    while not kinds or kinds[-1] != b"IEND":
        length, kind = struct.unpack_from(">I4s", content, at) if at + 12 <= len(content) else (-1, b"")
        end = at + 12 + length
        if length < 0 or end > len(content) or zlib.crc32(content[at + 4 : end - 4]) != _checksum(content, end):
            raise StoreError(f"{where}: a damaged PNG file")
        kinds.append(kind)
        if kind in _KEPT_CHUNKS:
            kept.append(content[at:end])
        at = end
    if kinds[0] != b"IHDR" or b"IDAT" not in kinds:
        raise StoreError(f"{where}: a damaged PNG file")
    width, height = struct.unpack_from(">II", content, len(_SIGNATURE) + 8)
    if not 0 < width * height <= MAX_PIXELS:
        raise StoreError(f"{where}: {width} x {height} pixels (at most {MAX_PIXELS:,} are shown)")
    return Picture(b"".join(kept), width, height)


def _checksum(content: bytes, end: int) -> int:
    checksum: int = struct.unpack_from(">I", content, end - 4)[0]
    return checksum
