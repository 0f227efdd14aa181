"""Small recordings in the form of Atari-HEAD, whole and damaged."""

from __future__ import annotations

import bz2
import io
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from efhorizon.io.png import encoded_png

HEADER = "frame_id,episode_id,score,duration(ms),unclipped_reward,action,gaze_positions"
STEM = "7_XY_12_Jan-01-00-00-00"
# The beginnings of rows of a published recording, as they are there.
ROWS = (
    "XY_12_1,null,null,1410,0,2,81.00,104.88,81.03,104.85,81.04,104.85",
    "XY_12_2,null,null,50,0,2,52.05,198.28,50.58,208.88",
    "XY_12_3,null,null,50,0,null,null",
    "XY_12_4,null,null,51,0,0,48.12,200.12,48.25,198.50,48.39,197.07",
)


def pictures(number: int, shape: tuple[int, int] = (210, 160), seed: int = 0) -> list[np.ndarray]:
    """Pictures [H, W, 3] that all differ."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        picture = np.zeros((*shape, 3), np.uint8)
        picture[: shape[0] // 2, : shape[1] // 2] = rng.integers(0, 256, 3)
        picture[shape[0] // 2 :] = rng.integers(0, 256, 3)
        made.append(picture)
    return made


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    return info, content


def archive(members: Iterable[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.GNU_FORMAT) -> bytes:
    """A tar before it is compressed."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as file:
        for info, content in members:
            file.addfile(info, io.BytesIO(content))
    return made.getvalue()


def write(
    folder: Path,
    rows: Sequence[str] = ROWS,
    frames: dict[str, bytes] | None = None,
    *,
    header: str = HEADER,
    more: Sequence[tuple[tarfile.TarInfo, bytes]] = (),
) -> Path:
    """A recording with these rows and frames (by id; a picture for each row if none are given); its label file."""
    folder.mkdir(parents=True, exist_ok=True)
    if frames is None:
        names = [row.split(",")[0] for row in rows]
        frames = {name: encoded_png(each) for name, each in zip(names, pictures(len(names)), strict=True)}
    members = [member(STEM, kind=tarfile.DIRTYPE)]
    members += [member(f"{STEM}/{name}.png", content) for name, content in reversed(frames.items())]
    (folder / f"{STEM}.tar.bz2").write_bytes(bz2.compress(archive([*members, *more])))
    labels = folder / f"{STEM}.txt"
    labels.write_text("\n".join([header, *rows]) + "\n")
    return labels
