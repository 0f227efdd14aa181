"""Which pictures get into a report."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from efhorizon.errors import StoreError
from efhorizon.io.png import write_png
from efhorizon.study import results
from efhorizon.study.pictures import checked_png
from efhorizon.study.results import Results


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study" / "pictures").mkdir(parents=True)
    write_png(tmp_path / "study" / "pictures" / "a.png", np.zeros((4, 6, 3), np.uint8))
    write_png(tmp_path / "outside.png", np.zeros((4, 6, 3), np.uint8))
    return tmp_path / "study"


def test_a_picture_of_the_study(study: Path) -> None:
    picture = Results(study).picture("pictures/a.png")
    assert (picture.width, picture.height) == (6, 4)
    assert picture.content == (study / "pictures" / "a.png").read_bytes()


@pytest.mark.parametrize(
    "given", ["../outside.png", "pictures/../../outside.png", "pictures", "pictures/b.png", "a\0b"]
)
def test_nothing_from_outside(study: Path, given: str) -> None:
    with pytest.raises(StoreError, match="picture"):
        Results(study).picture(given)


def test_nothing_from_outside_by_an_absolute_path_or_a_link(study: Path) -> None:
    outside = study.parent / "outside.png"
    (study / "pictures" / "link.png").symlink_to(outside)
    for given in (str(outside), "pictures/link.png"):
        with pytest.raises(StoreError, match="not a picture inside"):
            Results(study).picture(given)


def test_a_picture_that_is_too_large(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_PICTURE_BYTES", 10)
    with pytest.raises(StoreError, match="too many"):
        Results(study).picture("pictures/a.png")


def test_only_png(study: Path) -> None:
    (study / "pictures" / "page.png").write_text("<script>alert(1)</script>")
    with pytest.raises(StoreError, match="not a PNG"):
        Results(study).picture("pictures/page.png")


def test_texts_and_what_follows_the_end_are_left_out(study: Path) -> None:
    content = (study / "pictures" / "a.png").read_bytes()
    comment = _chunk(b"tEXt", b"Comment\0<script>")
    header = len(b"\x89PNG\r\n\x1a\n") + 25  # signature and IHDR
    marked = content[:header] + comment + content[header:] + b"<script>alert(1)</script>"
    assert checked_png(marked, "x").content == content


@pytest.mark.parametrize("cut", [9, 20, 40, -5])
def test_a_damaged_file(study: Path, cut: int) -> None:
    content = (study / "pictures" / "a.png").read_bytes()
    with pytest.raises(StoreError, match="damaged"):
        checked_png(content[:cut], "x")


def test_a_wrong_checksum(study: Path) -> None:
    content = bytearray((study / "pictures" / "a.png").read_bytes())
    content[20] ^= 1
    with pytest.raises(StoreError, match="damaged"):
        checked_png(bytes(content), "x")


def test_more_pixels_than_a_browser_should_unpack() -> None:
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + header + _chunk(b"IDAT", b"") + _chunk(b"IEND", b"")
    with pytest.raises(StoreError, match="pixels"):
        checked_png(bomb, "x")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
