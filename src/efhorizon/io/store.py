"""The native store: one zarr v3 folder per table, chunked, zstd-compressed, a checksum on every chunk.

    transitions int32 [S, A]    reward_codes uint [S, A]    reward_values float64 [R]
    screens uint8 [N, H, W, C]  screen_mapping int32 [S]                          (where there are screens)
    state_bytes uint8 [B]       state_offsets int64 [S + 1]                       (where there are raw states)
    unexplored bool [S]                                                           (where the search was not finished)

Transitions, rewards and the mapping are read when the store is opened and must match their digests; screens and raw
states are read chunk by chunk as they are asked for, each chunk checked by its checksum. A missing chunk would read as
zeros in zarr, so the number of chunks is compared with what was written. `damage(path)` reads and checks everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.io.files import written_aside
from efhorizon.io.machine import available_memory
from efhorizon.mdp import TabularMDP

FORMAT = "efhorizon-table"
FORMAT_VERSION = 1
_CHUNK_BYTES = 1 << 20
_CHUNKS_A_SHARD = 32
_ZSTD_LEVEL = 3
_HEADER = ("horizon", "metadata", "digests")
_EAGER = ("transitions", "reward_codes", "reward_values", "screen_mapping", "state_offsets", "unexplored")


def write(mdp: TabularMDP, path: Path) -> Path:
    """Write a table; what was there before stays until the new one is complete."""
    import zarr

    arrays: dict[str, Any] = {
        "transitions": mdp.transitions,
        "reward_codes": mdp.reward_codes,
        "reward_values": mdp.reward_values,
    }
    if mdp.screens is not None:
        arrays["screens"] = mdp.screens
        arrays["screen_mapping"] = mdp.screen_mapping
    if mdp.unexplored is not None:
        arrays["unexplored"] = mdp.unexplored
    if mdp.states is not None:
        state_bytes = StateBytes.of(mdp.states)
        arrays["state_bytes"], arrays["state_offsets"] = state_bytes.data, state_bytes.offsets
    try:
        with written_aside(path) as temporary, zarr.config.set({"array.write_empty_chunks": True}):
            group: Any = zarr.open_group(str(temporary), mode="w", zarr_format=3)
            digests = {name: _write_array(group, name, array) for name, array in arrays.items()}
            header = {"horizon": mdp.horizon, "metadata": dict(mdp.metadata), "digests": digests}
            group.attrs.update({"format": FORMAT, "format_version": FORMAT_VERSION, **header})
            group.attrs["header_digest"] = _header_digest(header)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from None
    return path


def read(path: Path, *, horizon: int | None = None) -> TabularMDP:
    """Open a table; screens and raw states stay on disk."""
    group = _opened(path)
    digests = dict(group.attrs["digests"])
    eager = {name: _checked_array(path, group, name, digests[name]) for name in _EAGER if name in digests}
    lazy = {
        name: _LazyArray(path, group, name, digests[name]) for name in ("screens", "state_bytes") if name in digests
    }
    try:
        return TabularMDP(
            eager["transitions"],
            (eager["reward_codes"], eager["reward_values"]),
            horizon if horizon is not None else group.attrs["horizon"],
            screens=lazy.get("screens"),
            screen_mapping=eager.get("screen_mapping"),
            states=StateBytes(lazy["state_bytes"], eager["state_offsets"]) if "state_bytes" in lazy else None,
            unexplored=eager.get("unexplored"),
            metadata=group.attrs["metadata"],
        )
    except (InvalidTableError, KeyError) as error:
        raise StoreError(f"{path}: {error}") from None


def header(path: Path) -> dict[str, Any]:
    """The header of a store, checked: horizon, metadata, and shape, type and digest of each array."""
    group = _opened(path)
    return {name: group.attrs[name] for name in _HEADER}


def damage(path: Path) -> str | None:
    """Read everything; one line on the first array that is not as it was written, or None."""
    try:
        group = _opened(path)
        for name, recorded in dict(group.attrs["digests"]).items():
            array = _LazyArray(path, group, name, recorded)
            if _digest(array) != recorded["xxh128"]:
                return f"{path}: array {name!r} is not what was written"
    except StoreError as error:
        return str(error)
    return None


class StateBytes:
    """Byte strings of any length, one after the other in one array."""

    def __init__(self, data: Any, offsets: NDArray[np.int64]) -> None:
        if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise InvalidTableError("the offsets of the raw states are not ascending from 0")
        if int(offsets[-1]) != data.shape[0]:
            raise InvalidTableError(f"the raw states end at byte {int(offsets[-1])} of {data.shape[0]}")
        self.data, self.offsets = data, offsets

    @classmethod
    def of(cls, states: Any) -> StateBytes:
        """Any sequence of byte strings in this form; their bytes are fetched as they are asked for."""
        if isinstance(states, cls):
            return states
        offsets = np.zeros(len(states) + 1, np.int64)
        offsets[1:] = np.cumsum([len(states[i]) for i in range(len(states))])
        return cls(_Joined(states, offsets), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int, /) -> bytes:
        return np.asarray(self.data[int(self.offsets[index]) : int(self.offsets[index + 1])]).tobytes()


class _Joined:
    """The bytes of a sequence of byte strings as one array [B], without holding them."""

    dtype = np.dtype(np.uint8)

    def __init__(self, states: Any, offsets: NDArray[np.int64]) -> None:
        self._states, self._offsets = states, offsets
        self.shape = (int(offsets[-1]),)

    def __getitem__(self, span: slice, /) -> NDArray[np.uint8]:
        start, stop, _ = span.indices(self.shape[0])
        first, last = np.searchsorted(self._offsets, [start, stop - 1], side="right") - 1
        data = b"".join(self._states[i] for i in range(int(first), int(last) + 1))
        begin = start - int(self._offsets[first])
        return np.frombuffer(data, np.uint8)[begin : begin + stop - start]


class _LazyArray:
    """A zarr array whose reading errors are one clear line, and whose rows can be read one by one.

    zarr unpacks a whole chunk for every row, so the chunk that was read last is kept.
    """

    def __init__(self, path: Path, group: Any, name: str, recorded: dict[str, Any]) -> None:
        self._path, self._name = path, name
        try:
            self._array = group[name]
        except Exception as error:  # zarr raises many kinds for one damaged metadata file
            raise StoreError(f"{path}: array {name!r} cannot be opened ({_first_line(error)})") from None
        if list(self._array.shape) != recorded["shape"] or str(self._array.dtype) != recorded["dtype"]:
            raise StoreError(f"{path}: array {name!r} is not of the shape and type that was written")
        if self._array.nchunks_initialized != recorded["chunks"]:
            raise StoreError(f"{path}: array {name!r} has lost some of its {recorded['chunks']} chunks")
        self.shape: tuple[int, ...] = tuple(self._array.shape)
        self.dtype: np.dtype[Any] = np.dtype(self._array.dtype)
        self._rows_a_chunk = int(self._array.chunks[0])
        self._last: tuple[int, NDArray[Any]] | None = None  # number of a chunk, and its rows

    def __getitem__(self, index: Any, /) -> Any:
        if isinstance(index, int | np.integer) and 0 <= index < self.shape[0]:
            chunk, row = divmod(int(index), self._rows_a_chunk)
            if self._last is None or self._last[0] != chunk:
                begin = chunk * self._rows_a_chunk
                self._last = chunk, self[begin : begin + self._rows_a_chunk]
            return self._last[1][row].copy()
        try:
            return self._array[index]
        except IndexError:
            raise
        except Exception as error:  # checksum, zstd, json and system errors alike mean: unreadable
            raise StoreError(f"{self._path}: array {self._name!r} is damaged ({_first_line(error)})") from None


def _opened(path: Path) -> Any:
    import zarr

    if not path.exists():
        raise StoreError(f"{path}: no such table")
    try:
        group: Any = zarr.open_group(str(path), mode="r", zarr_format=3)
        header = {name: group.attrs[name] for name in _HEADER}
        known = (group.attrs["format"], group.attrs["format_version"]) == (FORMAT, FORMAT_VERSION)
        intact = group.attrs["header_digest"] == _header_digest(header)
    except Exception as error:  # zarr raises many kinds for what is not a group
        raise StoreError(f"{path}: not an efhorizon table ({_first_line(error)})") from None
    if not known:
        raise StoreError(f"{path}: written in another format ({group.attrs['format']} {group.attrs['format_version']})")
    if not intact:
        raise StoreError(f"{path}: the header of the store is damaged")
    return group


def _checked_array(path: Path, group: Any, name: str, recorded: dict[str, Any]) -> NDArray[Any]:
    lazy = _LazyArray(path, group, name, recorded)
    needed = int(np.prod(lazy.shape, dtype=np.int64)) * lazy.dtype.itemsize
    if needed > available_memory():
        raise StoreError(f"{path}: array {name!r} needs {needed:,} bytes of memory, more than is available")
    array = np.ascontiguousarray(lazy[...])
    if _digest(array) != recorded["xxh128"]:
        raise StoreError(f"{path}: array {name!r} is not what was written")
    array.flags.writeable = False
    return array


def _write_array(group: Any, name: str, source: Any) -> dict[str, Any]:
    from zarr.codecs import ZstdCodec

    dtype = np.dtype(source.dtype)
    row_bytes = max(1, int(np.prod(source.shape[1:], dtype=np.int64)) * dtype.itemsize)
    rows = max(1, min(_CHUNK_BYTES // row_bytes, source.shape[0]))
    shard_rows = rows * _CHUNKS_A_SHARD if source.shape[0] > rows else rows
    array = group.create_array(
        name,
        shape=tuple(source.shape),
        dtype=dtype,
        chunks=(rows, *source.shape[1:]),
        shards=(shard_rows, *source.shape[1:]),  # the shard's index carries the checksums' own checksum
        compressors=[ZstdCodec(level=_ZSTD_LEVEL, checksum=True)],
    )
    digest = xxhash.xxh3_128()
    for start in range(0, source.shape[0], shard_rows):
        block = np.ascontiguousarray(source[start : start + shard_rows])
        array[start : start + len(block)] = block
        digest.update(block.data)
    return {
        "xxh128": digest.hexdigest(),
        "shape": list(source.shape),
        "dtype": str(dtype),
        "chunks": array.nchunks_initialized,
    }


def _digest(array: Any) -> str:
    return _digest_of(_row_blocks(array))


def _digest_of(blocks: Iterator[NDArray[Any]]) -> str:
    digest = xxhash.xxh3_128()
    for block in blocks:
        digest.update(block.data)
    return digest.hexdigest()


def _row_blocks(array: Any) -> Iterator[NDArray[Any]]:
    row_bytes = max(1, int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize)
    rows = max(1, _CHUNK_BYTES * _CHUNKS_A_SHARD // row_bytes)
    for start in range(0, array.shape[0], rows):
        yield np.ascontiguousarray(array[start : start + rows])


def _header_digest(header: dict[str, Any]) -> str:
    return xxhash.xxh3_128(json.dumps(header, sort_keys=True).encode()).hexdigest()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
