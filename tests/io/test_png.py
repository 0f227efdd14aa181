"""Pictures are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from efhorizon.io.png import write_png


def test_a_full_disk_leaves_no_half_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_png(tmp_path / "x.png", np.zeros((2, 2, 3), np.uint8))
    before = path.read_bytes()

    def full(file: Path, content: bytes) -> None:
        file.open("wb").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    for name in ("x.png", "y.png"):
        with pytest.raises(OSError, match="No space left"):
            write_png(tmp_path / name, np.ones((2, 2, 3), np.uint8))
    assert [file.name for file in tmp_path.iterdir()] == ["x.png"]
    assert path.read_bytes() == before
