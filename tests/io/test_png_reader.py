"""Reading PNG files: every kind that is read, and what is refused."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from efhorizon.io.png import encoded_png
from efhorizon.io.png_reader import InvalidPictureError, decoded_png

PIXELS = 10_000


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, raw: bytes, bits: int = 8, colour: int = 2, interlaced: int = 0) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def filtered(picture: np.ndarray, kinds: list[int]) -> bytes:
    """Rows as differences, by PNG's definition of each filter, byte by byte."""
    height, width, channels = picture.shape
    rows = picture.reshape(height, -1).astype(int)
    out = bytearray()
    for y, kind in zip(range(height), kinds, strict=True):
        out.append(kind)
        for x in range(width * channels):
            a = rows[y, x - channels] if x >= channels else 0
            b = rows[y - 1, x] if y else 0
            c = rows[y - 1, x - channels] if y and x >= channels else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            out.append((rows[y, x] - (0, a, b, (a + b) // 2, paeth)[kind]) % 256)
    return bytes(out)


def test_what_we_write_is_read_back(rng: np.random.Generator) -> None:
    for colours in (2, 4, 16, 256, 5000):
        picture = rng.integers(0, 256, (colours, 3), dtype=np.uint8)[rng.integers(0, colours, (31, 53))]
        np.testing.assert_array_equal(decoded_png(encoded_png(picture), max_pixels=PIXELS), picture)
    grey = rng.integers(0, 256, (7, 9, 1), dtype=np.uint8)
    np.testing.assert_array_equal(decoded_png(encoded_png(grey), max_pixels=PIXELS), grey.repeat(3, axis=2))


@pytest.mark.parametrize(("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_every_filter_of_every_kind(rng: np.random.Generator, colour: int, channels: int) -> None:
    picture = rng.integers(0, 256, (20, 11, channels), dtype=np.uint8)
    kinds = [4, 3, 2, 1, 0, *rng.integers(0, 5, 15).tolist()]
    read = decoded_png(png(11, 20, filtered(picture, kinds), colour=colour), max_pixels=PIXELS)
    expected = picture[:, :, :3] if channels > 2 else picture[:, :, :1].repeat(3, axis=2)
    np.testing.assert_array_equal(read, expected)


def test_the_pictures_of_an_image_library(rng: np.random.Generator) -> None:
    cv2 = pytest.importorskip("cv2")
    picture = cv2.GaussianBlur(rng.integers(0, 256, (60, 47, 3), dtype=np.uint8), (5, 5), 0)
    content = cv2.imencode(".png", picture[:, :, ::-1])[1].tobytes()
    np.testing.assert_array_equal(decoded_png(content, max_pixels=PIXELS), picture)


def test_grey_of_few_bits() -> None:
    # two pixels of 4 bits each: 15 is white, 1 is 17
    np.testing.assert_array_equal(
        decoded_png(png(2, 1, bytes([0, 0xF1]), bits=4, colour=0), max_pixels=2)[0], [[255] * 3, [17] * 3]
    )


def test_what_is_refused() -> None:
    good = png(2, 2, bytes(2 * 7))
    assert decoded_png(good, max_pixels=4).shape == (2, 2, 3)
    huge = png(60_000, 60_000, b"")
    damaged = bytearray(good)
    damaged[45] ^= 1
    lost = good.replace(chunk(b"IEND", b""), b"")
    no_colour = png(2, 1, bytes([0, 3]), bits=4, colour=3)
    for content, reason in [
        (b"", "not a PNG"),
        (good[:40], "cut short"),
        (lost, "cut short"),
        (bytes(damaged), "checksum"),
        (huge, "60,000 x 60,000 pixels"),
        (png(0, 4, b""), "0 x 4 pixels"),
        (png(2, 2, bytes(13)), "fewer pixels"),
        (png(2, 2, bytes(10**6)), "more pixels"),
        (png(2, 2, bytes([9]) + bytes(13)), "filter 9"),
        (png(2, 2, bytes(14), interlaced=1), "interlaced"),
        (png(2, 2, bytes(26), bits=16), "16 bits"),
        (no_colour, "palette"),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IDAT", b""), "header"),
    ]:
        with pytest.raises(InvalidPictureError, match=reason):
            decoded_png(content, max_pixels=4)
