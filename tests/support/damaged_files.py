"""Ways to damage a file, and everything that loading a table gives, to see whether damage changes it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from efhorizon import EfhorizonError, TabularMDP, load
from efhorizon.io import store


def table_with_everything(rng: np.random.Generator, num_states: int = 60) -> TabularMDP:
    """A small table with screens, raw states and metadata."""
    transitions = rng.integers(-1, num_states, size=(num_states, 3))
    return TabularMDP(
        transitions,
        rng.choice([0.0, 1.0, 0.1], size=transitions.shape),
        7,
        screens=rng.integers(4, size=(num_states // 2, 8, 6, 3), dtype=np.uint8),
        screen_mapping=rng.integers(num_states // 2, size=num_states),
        states=[rng.bytes(int(rng.integers(1, 40))) for _ in range(num_states)],
        metadata={"id": "toy", "returns": [0.5, 1.0], "game": "walk"},
    )


def everything(path: Path) -> tuple[Any, ...]:
    """All that loading a table gives, screens and raw states included."""
    mdp = load(path)
    assert mdp.screens is not None
    assert mdp.screen_mapping is not None
    assert mdp.states is not None
    arrays = (mdp.transitions, mdp.reward_codes, mdp.reward_values, mdp.screens[:], mdp.screen_mapping)
    return (
        *((array.tobytes(), array.shape) for array in arrays),
        mdp.horizon,
        json.dumps(dict(mdp.metadata), sort_keys=True),
        *(mdp.states[state] for state in range(mdp.num_states)),
    )


def silent_flips(path: Path, count: int, rng: np.random.Generator) -> tuple[list[tuple[Path, int]], int]:
    """Flip bits of a table at random places, one at a time: those that change what loading gives without an error,
    and the number of those that are refused."""
    good = everything(path)
    files = [file for file in sorted(path.rglob("*")) if file.is_file()] if path.is_dir() else [path]
    ends = np.cumsum([file.stat().st_size for file in files])
    silent, refused = [], 0
    for place in rng.integers(ends[-1], size=count).tolist():
        number = int(np.searchsorted(ends, place, side="right"))
        file, position = files[number], place - int(ends[number] - files[number].stat().st_size)
        content = file.read_bytes()
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        try:
            if everything(path) != good:
                silent.append((file, position))
        except EfhorizonError as error:
            refused += 1
            if "\n" in str(error):
                silent.append((file, position))
        finally:
            file.write_bytes(content)
    assert everything(path) == good
    return silent, refused


def as_older_store(path: Path) -> Path:
    """The same store as an older version wrote it: without a digest of each chunk."""
    content = json.loads((path / "zarr.json").read_text())
    for recorded in content["attributes"]["digests"].values():
        recorded.pop("chunks_xxh128", None)
    return with_header(path, content)


def with_header(path: Path, content: dict[str, Any]) -> Path:
    """Write a header with a digest that matches."""
    attributes = content["attributes"]
    header = {name: attributes[name] for name in ("horizon", "metadata", "digests")}
    attributes["header_digest"] = store._header_digest(header)
    (path / "zarr.json").write_text(json.dumps(content))
    return path


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def with_absent_chunk(file: Path) -> None:
    """Say in the index of a shard that its first chunk was never written: zarr then reads zeros."""
    content = file.read_bytes()
    for chunks in (32, 2, 1):
        size = 16 * chunks
        index, checksum = bytearray(content[-size - 4 : -4]), content[-4:]
        if struct.pack("<I", google_crc32c.value(bytes(index))) == checksum:
            index[:16] = b"\xff" * 16
            file.write_bytes(content[: -size - 4] + index + struct.pack("<I", google_crc32c.value(bytes(index))))
            return
    raise AssertionError(f"{file} is no shard")


SHARD_DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "cut in half": cut_in_half,
    "without its last byte": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "missing": lambda file: file.unlink(),
    "with an absent chunk": with_absent_chunk,
}
