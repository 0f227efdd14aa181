"""Recordings in the form of Atari-HEAD: reading, writing, and what is refused."""

from __future__ import annotations

import bz2
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from recorded_play import HEADER, ROWS, STEM, archive, member, pictures, write

from efhorizon.errors import StoreError
from efhorizon.io.png import encoded_png
from efhorizon.policies.recordings import Label, Recording, read_recording, recordings, written_recording


def test_every_row_and_every_frame_is_read(tmp_path: Path) -> None:
    extra = encoded_png(np.full((210, 160, 3), 9, np.uint8))  # the published sample has more frames than rows
    path = write(tmp_path, more=[member(f"{STEM}/XY_12_5.png", extra), member(f"{STEM}/.DS_Store", b"junk")])
    recording = read_recording(path)
    assert recording.labels[0] == Label("XY_12_1", 2, None, None, 1410.0, 0.0, "81.00,104.88,81.03,104.85,81.04,104.85")
    np.testing.assert_array_equal(recording.labels[0].gaze_positions, [[81, 104.88], [81.03, 104.85], [81.04, 104.85]])
    assert [label.action for label in recording.labels] == [2, 2, None, 0]
    assert recording.labels[2].gaze_positions.shape == (0, 2)
    frames = dict(recording.frames())
    assert set(frames) == {f"XY_12_{number}" for number in (1, 2, 3, 4, 5)}
    for number, picture in enumerate(pictures(4), 1):
        np.testing.assert_array_equal(frames[f"XY_12_{number}"], picture)
    np.testing.assert_array_equal(frames["XY_12_5"], 9)


def test_recordings_are_named_in_three_ways(tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    given = [tmp_path / "a", path, tmp_path / "a" / f"{STEM}.tar.bz2"]
    for each in given:
        assert [found.path for found in recordings([each])] == [path]
    assert len(recordings(given)) == 1
    assert len(recordings([*given, write(tmp_path / "b")])) == 2


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    shown = [*pictures(3), pictures(1)[0]]
    labels = [
        Label("x_1", 17, 0, 0.0, 50.0, 1.0, "1.5,2.5"),
        Label("x_2", None, 0, 1.0, None, 0.25),
        Label("x_3", 0, 1, None, None, -12345678.0),
        Label("x_4", 3, None, None, None, None),
    ]
    with written_recording(tmp_path, "x") as add:
        for label, picture in zip(labels, shown, strict=True):
            add(label, picture)
        assert not (tmp_path / "x.txt").exists()
    recording = read_recording(tmp_path / "x.txt")
    assert list(recording.labels) == labels
    assert (tmp_path / "x.txt").read_text().splitlines()[:2] == [HEADER, "x_1,0,0,50,1,17,1.5,2.5"]
    for label, picture in zip(labels, shown, strict=True):
        np.testing.assert_array_equal(dict(recording.frames())[label.frame], picture)
    with tarfile.open(tmp_path / "x.tar.bz2") as file:  # as any other program sees it
        assert file.getnames() == [f"x/x_{number}.png" for number in (1, 2, 3, 4)]


def test_nothing_half_written_and_nothing_overwritten(tmp_path: Path) -> None:
    with pytest.raises(AttributeError), written_recording(tmp_path, "x") as add:
        [add(Label(f"x_{number}", 0), picture) for number, picture in enumerate([*pictures(2), None])]
    with pytest.raises(StoreError, match="nothing was recorded"), written_recording(tmp_path, "x"):
        pass
    assert list(tmp_path.iterdir()) == []
    with written_recording(tmp_path, "x") as add:
        add(Label("x_1", 0), pictures(1)[0])
    before = (tmp_path / "x.tar.bz2").read_bytes()
    with pytest.raises(StoreError, match="not overwritten"), written_recording(tmp_path, "x"):
        pass
    assert (tmp_path / "x.tar.bz2").read_bytes() == before


@pytest.mark.parametrize(
    ("rows", "header", "reason"),
    [
        (ROWS, "frame,action", "first line must be frame_id,.*got 'frame,action'"),
        (ROWS, "", "first line"),
        ((), HEADER, "empty"),
        (("XY_12_1,null,null,50,0,2",), HEADER, "line 2: a row has 7 fields or more, this one 6"),
        (("XY_12_1,null,null,50,0,-1,null",), HEADER, "line 2: action .*'-1'"),
        (("XY_12_1,null,null,50,0,2.5,null",), HEADER, "line 2: action .*'2.5'"),
        (("XY_12_1,x,null,50,0,2,null",), HEADER, "episode_id .*'x'"),
        (("XY_12_1,null,nan,50,0,2,null",), HEADER, "score .*'nan'"),
        (("XY_12_1,null,0,50,inf,2,null",), HEADER, "unclipped_reward .*'inf'"),
        (("../XY,null,0,50,0,2,null",), HEADER, "'../XY' is not the name of a frame"),
        ((ROWS[0], ROWS[1], ROWS[0]), HEADER, "line 4: frame_id 'XY_12_1' has a row already"),
    ],
)
def test_labels_that_are_refused(tmp_path: Path, rows: tuple[str, ...], header: str, reason: str) -> None:
    path = write(tmp_path, rows, {}, header=header)
    with pytest.raises(StoreError, match=reason) as error:
        read_recording(path)
    assert_one_line(error, path)


def test_labels_that_are_not_text(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes() + b"\xff")
    with pytest.raises(StoreError, match="is not text") as error:
        read_recording(path)
    assert_one_line(error, path)


def test_gaze_is_checked_when_it_is_asked_for() -> None:
    with pytest.raises(ValueError, match="3 numbers"):
        _ = Label("x", 0, gaze="1,2,3").gaze_positions
    with pytest.raises(ValueError, match="'x'"):
        _ = Label("x", 0, gaze="1,x").gaze_positions


def test_files_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path)
    packed = tmp_path / f"{STEM}.tar.bz2"
    packed.rename(tmp_path / "away")
    with pytest.raises(StoreError, match=r"frames of .* belong there") as error:
        read_recording(path)
    assert_one_line(error, packed)
    with pytest.raises(StoreError, match="no recording is in this folder"):
        recordings([tmp_path])
    (tmp_path / "away").rename(packed)
    path.unlink()
    for given in (tmp_path, packed, path):
        with pytest.raises(StoreError, match="No such file") as error:
            recordings([given])
        assert_one_line(error, path)


PNG = encoded_png(pictures(1)[0])
OTHER_SIZE = encoded_png(pictures(1, (84, 84))[0])
HUGE = PNG[:16] + (60_000).to_bytes(4, "big") * 2 + PNG[24:29]
HUGE += zlib.crc32(HUGE[12:29]).to_bytes(4, "big") + PNG[33:]


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([PNG, PNG], "frame 'XY_12_3' and 1 more of .*txt is missing"),
        ([PNG, PNG, PNG], "frame 'XY_12_4' of .*txt is missing"),
        ([PNG, PNG, PNG[:-20], PNG], "XY_12_3.png': it is cut short"),
        ([PNG, b"", PNG, PNG], "XY_12_2.png': it is not a PNG"),
        ([PNG, PNG, PNG, HUGE], "XY_12_4.png': 60,000 x 60,000 pixels"),
        ([OTHER_SIZE, PNG, PNG, PNG], "XY_12_1.png' has 84 x 84 pixels, others 160 x 210"),
    ],
)
def test_frames_that_are_refused(tmp_path: Path, frames: list[bytes], reason: str) -> None:
    recording = read_recording(write(tmp_path, frames={f"XY_12_{n}": each for n, each in enumerate(frames, 1)}))
    refused(recording, reason)


def test_archives_that_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    packed = tmp_path / f"{STEM}.tar.bz2"
    whole = packed.read_bytes()
    for bad, reason in [
        (member("../XY_12_9.png", PNG), "outside the folder"),
        (member("/XY_12_9.png", PNG), "outside the folder"),
        (member(f"{STEM}/XY_12_9.png", kind=tarfile.SYMTYPE, link="/etc/passwd"), "is a link"),
        (member("other/XY_12_1.png", PNG), "two frames are called 'XY_12_1'"),
        (member(f"{STEM}/XY_12_9.png", PNG + bytes(2 << 20)), "at most 1,048,576"),
    ]:
        write(tmp_path, more=[bad])
        refused(read_recording(path), reason)
    for cut in (whole[: len(whole) // 2], bz2.compress(bz2.decompress(whole)[:3000]), b""):
        packed.write_bytes(cut)
        refused(read_recording(path), "cut short")
    packed.write_bytes(bz2.compress(archive([])))
    refused(read_recording(path), "'XY_12_1' and 3 more of .* is missing")


def refused(recording: Recording, reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as error:
        list(recording.frames())
    assert_one_line(error, recording.archive)


def assert_one_line(error: pytest.ExceptionInfo[StoreError], path: Path) -> None:
    assert str(error.value).startswith(f"{path}: ")
    assert len(str(error.value).splitlines()) == 1
