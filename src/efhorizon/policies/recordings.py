"""Recordings of play in the form of Atari-HEAD: what was seen, frame by frame, and which action was taken.

A recording is two files that lie beside each other:

    STEM.txt        one row per frame, in the order of play: a CSV whose last field holds any number of commas
                    frame_id,episode_id,score,duration(ms),unclipped_reward,action,gaze_positions
    STEM.tar.bz2    the frames as PNG pictures, STEM/FRAME_ID.png, in any order

A row tells which action was taken when its frame was on the screen. `null` stands for a value that is not known. Frames
without a row are allowed (Atari-HEAD's recordings have them), rows without a frame are not.

Archives are untrusted: `io.tar_reader` and `io.png_reader` check limits before they take memory. Nothing is extracted.
"""

from __future__ import annotations

import io
import math
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import xxhash
from numpy.typing import NDArray

from efhorizon.errors import StoreError
from efhorizon.io.files import read_bytes, written_aside
from efhorizon.io.png import encoded_png
from efhorizon.io.png_reader import InvalidPictureError, decoded_png
from efhorizon.io.tar_reader import Limits, archived_files

HEADER = "frame_id,episode_id,score,duration(ms),unclipped_reward,action,gaze_positions"
LABELS, ARCHIVE, FRAME = ".txt", ".tar.bz2", ".png"
NULL = "null"

_MAX_LABEL_BYTES = 512 << 20  # of a label file; 20 minutes of play have 10 MB
_MAX_PIXELS = 1 << 18  # of a frame; Atari has 33,600
_LIMITS = Limits(members=1_000_000, member_bytes=1 << 20, total_bytes=8 << 30)
_WHAT_LABELS, _WHAT_ARCHIVE = "the labels of a recording", "the frames of a recording"
_FRAME_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
_SHOWN = 60  # characters of a value that is wrong
_REMEMBERED = 4096  # encoded frames: episodes repeat each other

Picture = NDArray[np.uint8]  # [H, W, 3], RGB


@dataclass(frozen=True, slots=True)
class Label:
    """One row: what was done while a frame was on the screen."""

    frame: str  # its id
    action: int | None  # Atari: ALE's number among all 18; elsewhere the environment's own
    episode: int | None = None
    score: float | None = None  # before the action
    milliseconds: float | None = None  # for how long the frame was shown
    reward: float | None = None  # of the action
    gaze: str = NULL  # as it is in the file

    @property
    def gaze_positions(self) -> NDArray[np.float64]:
        """Where the player looked, [G, 2] in pixels: x, y."""
        if self.gaze in (NULL, ""):
            return np.zeros((0, 2))
        numbers = [_number(text, "gaze_positions") for text in self.gaze.split(",")]
        if len(numbers) % 2:
            raise ValueError(f"gaze_positions has {len(numbers)} numbers, which are not pairs")
        return np.array(numbers, np.float64).reshape(-1, 2)


@dataclass(frozen=True)
class Recording:
    """The labels of a recording, and where its frames are."""

    path: Path  # of the label file
    labels: tuple[Label, ...]

    @property
    def archive(self) -> Path:
        return _archive_of(self.path)

    def frames(self) -> Iterator[tuple[str, Picture]]:
        """Id and picture of every frame in the archive, in the archive's order, which is not the order of play.

        Every frame is decoded and checked. Refused are damaged frames, two of one id, frames of different sizes, and
        an archive without the frame of a label.
        """
        missing, known, size = {label.frame for label in self.labels}, set[str](), None
        for name, content in archived_files(self.archive, _WHAT_ARCHIVE, _LIMITS):
            if not name.endswith(FRAME) or PurePosixPath(name).name.startswith("."):
                continue
            frame = PurePosixPath(name).name.removesuffix(FRAME)
            try:
                picture = decoded_png(content, max_pixels=_MAX_PIXELS)
            except InvalidPictureError as error:
                raise StoreError(f"{self.archive}: frame {name[:_SHOWN]!r}: {error}") from None
            if frame in known:
                raise StoreError(f"{self.archive}: two frames are called {frame[:_SHOWN]!r}")
            size = size or picture.shape
            if picture.shape != size:
                raise StoreError(
                    f"{self.archive}: frame {name[:_SHOWN]!r} has {_size(picture.shape)}, others {_size(size)}"
                )
            known.add(frame)
            missing.discard(frame)
            yield frame, picture
        if missing:
            first = next(label.frame for label in self.labels if label.frame in missing)
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise StoreError(f"{self.archive}: frame {first!r}{more} of {self.path.name} is missing")


def read_recording(path: Path) -> Recording:
    """The recording with this label file or this archive; its frames are read when they are asked for."""
    labels = _labels_of(path)
    recording = Recording(labels, tuple(_labels(labels)))
    if not recording.archive.is_file():
        raise StoreError(f"{recording.archive}: no such file; the frames of {labels.name} belong there")
    return recording


def recordings(paths: Iterable[Path]) -> list[Recording]:
    """The recordings that are named: by folder, by archive, or by label file; each once."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            found[_labels_of(path)] = None
            continue
        archives = sorted(each for each in path.iterdir() if each.name.endswith(ARCHIVE) and each.name[0] != ".")
        if not archives:
            raise StoreError(f"{path}: no recording is in this folder: STEM{ARCHIVE} beside STEM{LABELS}")
        found.update((_labels_of(each), None) for each in archives)
    return [read_recording(path) for path in found]


@contextmanager
def written_recording(folder: Path, stem: str) -> Iterator[Callable[[Label, Picture], None]]:
    """A function that adds one frame with its label. Both files are in place once the block has ended without an error.

    The labels come last: where they are, the frames are complete.
    """
    labels, rows, encoded = folder / f"{stem}{LABELS}", [HEADER], _Encoder()
    if labels.exists():
        raise StoreError(f"{labels}: a recording of that name is already there; it is not overwritten")
    with written_aside(_archive_of(labels)) as temporary:
        with tarfile.open(temporary, "w:bz2", format=tarfile.USTAR_FORMAT) as archive:

            def add(label: Label, picture: Picture) -> None:
                content = encoded(picture)
                member = tarfile.TarInfo(f"{stem}/{label.frame}{FRAME}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
                rows.append(_row(label))

            yield add
        if len(rows) == 1:
            raise StoreError(f"{labels}: nothing was recorded")
    with written_aside(labels) as temporary:
        temporary.write_text("\n".join(rows) + "\n")


def _labels(path: Path) -> Iterator[Label]:
    try:
        lines = read_bytes(path, _WHAT_LABELS, _MAX_LABEL_BYTES).decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: not {_WHAT_LABELS}: byte {error.start:,} is not text") from None
    if not lines or lines[0].strip() != HEADER:
        found = lines[0][:_SHOWN] if lines else ""
        raise StoreError(f"{path}: not {_WHAT_LABELS}: the first line must be {HEADER}, got {found!r}")
    known: set[str] = set()
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            label = _label(line)
            if label.frame in known:
                raise ValueError(f"frame_id {label.frame!r} has a row already")
        except ValueError as error:
            raise StoreError(f"{path}: line {number}: {error}") from None
        known.add(label.frame)
        yield label
    if not known:
        raise StoreError(f"{path}: the recording is empty: no row follows the first line")


def _label(line: str) -> Label:
    fields = line.split(",", HEADER.count(","))
    if len(fields) <= HEADER.count(","):
        raise ValueError(f"a row has {HEADER.count(',') + 1} fields or more, this one {len(fields)}")
    frame, episode, score, milliseconds, reward, action, gaze = (field.strip() for field in fields)
    if not _FRAME_ID.fullmatch(frame):
        raise ValueError(f"frame_id {frame[:_SHOWN]!r} is not the name of a frame")
    return Label(
        frame=frame,
        action=_count(action, "action"),
        episode=_whole(episode, "episode_id"),
        score=_number(score, "score"),
        milliseconds=_number(milliseconds, "duration(ms)"),
        reward=_number(reward, "unclipped_reward"),
        gaze=gaze,
    )


def _count(text: str, column: str) -> int | None:
    number = _whole(text, column)
    if number is not None and number < 0:
        raise ValueError(f"{column} must be a whole number from 0, or {NULL}; got {text[:_SHOWN]!r}")
    return number


def _whole(text: str, column: str) -> int | None:
    if text == NULL:
        return None
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise ValueError(f"{column} must be a whole number or {NULL}; got {text[:_SHOWN]!r}")
    return int(text)


def _number(text: str, column: str) -> float | None:
    if text == NULL:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{column} must be a number or {NULL}; got {text[:_SHOWN]!r}")
    return number


def _row(label: Label) -> str:
    numbers = (label.episode, label.score, label.milliseconds, label.reward, label.action)
    return ",".join([label.frame, *(NULL if number is None else f"{number:.12g}" for number in numbers), label.gaze])


class _Encoder:
    """Pictures as PNG files; those that come again are not encoded again."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def __call__(self, picture: Picture) -> bytes:
        key = xxhash.xxh3_128_digest(picture.tobytes()) + str(picture.shape).encode()
        if key not in self._known:
            if len(self._known) == _REMEMBERED:
                self._known.clear()
            self._known[key] = encoded_png(picture)
        return self._known[key]


def _archive_of(labels: Path) -> Path:
    return labels.with_name(labels.name.removesuffix(LABELS) + ARCHIVE)


def _labels_of(path: Path) -> Path:
    """The label file that belongs to an archive; any other file is taken for one."""
    return path.with_name(path.name.removesuffix(ARCHIVE) + LABELS) if path.name.endswith(ARCHIVE) else path


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]} pixels"
