"""Files with one bit flipped at a random place: what reads them refuses them or finds what it found before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from efhorizon.errors import EfhorizonError


def unnoticed(file: Path, result: Callable[[], object], count: int, seed: int = 0) -> list[tuple[int, int]]:
    """The bits whose flip changed the result without an error; the file is put back afterwards."""
    content, expected, found = file.read_bytes(), result(), []
    rng = np.random.default_rng(seed)
    try:
        for place, bit in zip(rng.integers(len(content), size=count), rng.integers(8, size=count), strict=True):
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(bit)
            file.write_bytes(damaged)
            with suppress(EfhorizonError):
                if result() != expected:
                    found.append((int(place), int(bit)))
    finally:
        file.write_bytes(content)
    return found
