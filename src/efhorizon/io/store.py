"""The native store: one zarr v3 folder per table, chunked, zstd-compressed, a checksum on every chunk.

    transitions int32 [S, A]    reward_codes uint [S, A]    reward_values float64 [R]
    screens uint8 [N, H, W, C]  screen_mapping int32 [S]                          (where there are screens)
                                screen_mapping int32 [S, K], base_states int32 [S]    (with frame stacks)
    pictures uint8 [P, H, W, C] picture_mapping int32 [S]                         (where the environment draws)
    state_bytes uint8 [B]       state_offsets int64 [S + 1]                       (where there are raw states)
    unexplored bool [S]                                                           (where the search was not finished)

The header, zarr.json, holds horizon, metadata, a digest of each array, and a digest of all that. Transitions, rewards
and the mapping are read when the store is opened and must match their digests. Screens and raw states are read chunk by
chunk as they are asked for; the header has a digest of each of these chunks. Stores of older versions have none: there
the whole array is compared when it is first asked for. `damage(path)` reads and checks everything.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, cast

import msgspec
import numpy as np
import xxhash
from msgspec import Meta, Struct
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.io.files import read_bytes, written_aside
from efhorizon.io.machine import available_memory
from efhorizon.io.metadata import checked_metadata
from efhorizon.io.shapes import check_shapes
from efhorizon.io.zarr_array import METADATA_FILE, Layout, StoredArray, write_array
from efhorizon.mdp import TabularMDP

FORMAT = "efhorizon-table"
FORMAT_VERSION = 1
_HEADER = ("horizon", "metadata", "digests")
_MAX_HEADER_BYTES = 1 << 26  # 44 bytes for each chunk of 1 MB
_LAZY = ("screens", "pictures", "state_bytes")
_STATES_A_BLOCK = 1 << 16


def write(mdp: TabularMDP, path: Path) -> Path:
    """Write a table; what was there before stays until the new one is complete."""
    arrays: dict[str, Any] = {
        "transitions": mdp.transitions,
        "reward_codes": mdp.reward_codes,
        "reward_values": mdp.reward_values,
    }
    if mdp.screens is not None:
        arrays["screens"] = mdp.screens
        arrays["screen_mapping"] = mdp.screen_mapping
    if mdp.base_states is not None:
        arrays["base_states"] = mdp.base_states
    if mdp.pictures is not None:
        arrays["pictures"] = mdp.pictures
        arrays["picture_mapping"] = mdp.picture_mapping
    if mdp.unexplored is not None:
        arrays["unexplored"] = mdp.unexplored
    if mdp.states is not None:
        state_bytes = StateBytes.of(mdp.states)
        arrays["state_bytes"], arrays["state_offsets"] = state_bytes.data, state_bytes.offsets
    metadata = checked_metadata(json.loads(json.dumps(dict(mdp.metadata))))
    try:
        with written_aside(path) as temporary:
            temporary.mkdir()
            digests = {name: _written(temporary / name, array) for name, array in arrays.items()}
            header = {"horizon": mdp.horizon, "metadata": metadata, "digests": digests}
            attributes = {"format": FORMAT, "format_version": FORMAT_VERSION, **header}
            attributes["header_digest"] = _header_digest(header)
            content = {"attributes": attributes, "zarr_format": 3, "node_type": "group"}
            (temporary / METADATA_FILE).write_text(json.dumps(content, indent=2))
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from None
    return path


def read(path: Path, *, horizon: int | None = None) -> TabularMDP:
    """Open a table; screens and raw states stay on disk."""
    found = _opened(path)
    try:
        arrays = found.digests.by_name()
        check_shapes({name: recorded.layout for name, recorded in arrays.items()})
        metadata = checked_metadata(found.metadata)
        needed = sum(recorded.layout.num_bytes for name, recorded in arrays.items() if name not in _LAZY)
        if needed > available_memory():
            raise StoreError(f"{path}: its arrays need {needed:,} bytes of memory, more than is available")
        lazy = {name: _LazyArray(path, name, found) for name in arrays if name in _LAZY}
        eager = {name: _checked_array(path, name, arrays[name]) for name in arrays if name not in _LAZY}
        return TabularMDP(
            eager["transitions"],
            (eager["reward_codes"], eager["reward_values"]),
            horizon if horizon is not None else found.horizon,
            screens=lazy.get("screens"),
            screen_mapping=eager.get("screen_mapping"),
            base_states=eager.get("base_states"),
            pictures=lazy.get("pictures"),
            picture_mapping=eager.get("picture_mapping"),
            states=StateBytes(lazy["state_bytes"], eager["state_offsets"]) if "state_bytes" in lazy else None,
            unexplored=eager.get("unexplored"),
            metadata=metadata,
        )
    except InvalidTableError as error:
        raise StoreError(f"{path}: {error}") from None


def header(path: Path) -> dict[str, Any]:
    """The header of a store, checked: horizon, metadata, and shape, type and digest of each array."""
    content: dict[str, Any] = msgspec.to_builtins(_opened(path))
    return {name: content[name] for name in _HEADER}


def damage(path: Path) -> str | None:
    """Read everything; one line on the first array that is not as it was written, or None."""
    try:
        found = _opened(path)
        for name, recorded in found.digests.by_name().items():
            if _digests(StoredArray(path / name, recorded.layout).chunks())[0] != recorded.xxh128:
                return f"{path}: array {name!r} is not what was written"
    except StoreError as error:
        return str(error)
    return None


class StateBytes:
    """Byte strings of any length, one after the other in one array."""

    def __init__(self, data: Any, offsets: NDArray[np.int64]) -> None:
        if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
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
        for start in range(0, len(states), _STATES_A_BLOCK):
            stop = min(start + _STATES_A_BLOCK, len(states))
            offsets[start + 1 : stop + 1] = _joined(states, start, stop)[1]
        np.cumsum(offsets, out=offsets)
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
        data, _ = _joined(self._states, int(first), int(last) + 1)
        begin = start - int(self._offsets[first])
        return data[begin : begin + stop - start]


class _JoinsStates(Protocol):
    """A sequence of byte strings that gives many at once."""

    def joined(self, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Some of them one after the other, and their lengths."""
        ...


def _joined(states: Any, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    if hasattr(states, "joined"):
        return cast(_JoinsStates, states).joined(start, stop)
    found = [states[i] for i in range(start, stop)]
    return np.frombuffer(b"".join(found), np.uint8), np.array([len(state) for state in found], np.int64)


class _Recorded(Struct, frozen=True, omit_defaults=True):
    """An array, as the header describes it."""

    xxh128: str
    shape: list[Annotated[int, Meta(ge=0, lt=2**62)]]
    dtype: Literal["bool", "uint8", "uint16", "uint32", "uint64", "int32", "int64", "float64"]
    chunks: int  # as older versions count them: those that the shards have place for
    chunks_xxh128: list[str] | None = None  # of each chunk; None: written by an older version, or read at once

    @property
    def layout(self) -> Layout:
        return Layout(tuple(self.shape), np.dtype(self.dtype))


class _Arrays(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Every array that a table can have."""

    transitions: _Recorded
    reward_codes: _Recorded
    reward_values: _Recorded
    screens: _Recorded | None = None
    screen_mapping: _Recorded | None = None
    base_states: _Recorded | None = None
    state_bytes: _Recorded | None = None
    state_offsets: _Recorded | None = None
    unexplored: _Recorded | None = None
    pictures: _Recorded | None = None
    picture_mapping: _Recorded | None = None

    def by_name(self) -> dict[str, _Recorded]:
        """Those that this table has."""
        return {name: array for name in self.__struct_fields__ if (array := getattr(self, name)) is not None}


class _Header(Struct, frozen=True):
    """What the store says about the table."""

    format: str
    format_version: int
    horizon: int
    metadata: dict[str, Any]
    digests: _Arrays
    header_digest: str


class _LazyArray:
    """An array whose chunks are read and checked as they are asked for, by row or by slice.

    A whole chunk is unpacked for every row, so the chunk that was read last is kept.
    """

    def __init__(self, path: Path, name: str, header: _Header) -> None:
        self._path, self._name, self._header = path, name, header
        self._recorded = header.digests.by_name()[name]
        self._array = StoredArray(path / name, self._recorded.layout)
        self._digests = self._recorded.chunks_xxh128
        if self._digests is not None and len(self._digests) != self._array.layout.num_chunks:
            raise StoreError(f"{path}: array {name!r} has no digest for some of its chunks")
        self._last: tuple[int, NDArray[Any]] | None = None  # number of a chunk, and its rows

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.layout.dtype

    def __getitem__(self, index: Any, /) -> NDArray[Any]:
        rows = self._array.layout.chunk_rows
        if isinstance(index, slice):
            start, stop, step = index.indices(self.shape[0])
            if step != 1:
                raise IndexError("rows on disk are read one by one, or as a slice without steps")
            found = np.empty((max(0, stop - start), *self.shape[1:]), self.dtype)
            for chunk in range(start // rows, -(-stop // rows) if stop > start else 0):
                begin, end = max(start, chunk * rows), min(stop, (chunk + 1) * rows)
                found[begin - start : end - start] = self._chunk(chunk)[begin - chunk * rows : end - chunk * rows]
            return found
        number = operator.index(index)
        if not -self.shape[0] <= number < self.shape[0]:
            raise IndexError(f"row {number} of {self.shape[0]}")
        chunk, row = divmod(number % self.shape[0], rows)
        return np.array(self._chunk(chunk)[row])

    def _chunk(self, number: int) -> NDArray[Any]:
        if self._last is None or self._last[0] != number:
            try:
                self._last = number, self._read(number)
            except StoreError:
                if _opened(self._path).header_digest != self._header.header_digest:
                    raise StoreError(
                        f"{self._path}: replaced by another table since it was opened; open it again"
                    ) from None
                raise
        return self._last[1]

    def _read(self, number: int) -> NDArray[Any]:
        if self._digests is None:  # an older store, with one digest for the whole array
            whole, self._digests = _digests(self._array.chunks())
            if whole != self._recorded.xxh128:
                self._digests = None
                raise self._damaged()
        rows = self._array.chunk(number)
        if _digest(rows) != self._digests[number]:
            raise self._damaged()
        return rows

    def _damaged(self) -> StoreError:
        return StoreError(f"{self._path}: array {self._name!r} is damaged (not what was written)")


def _opened(path: Path) -> _Header:
    """The header, if it is what its digest says."""
    if not path.exists():
        raise StoreError(f"{path}: no such table")
    if not (path / METADATA_FILE).exists():
        raise StoreError(f"{path}: not an efhorizon table (there is no {METADATA_FILE})")
    text = read_bytes(path / METADATA_FILE, "the header of a table", _MAX_HEADER_BYTES)
    try:
        attributes = json.loads(text)["attributes"]
        known = (attributes["format"], attributes["format_version"]) == (FORMAT, FORMAT_VERSION)
        found = msgspec.convert(attributes, _Header) if known else None
        digest = _header_digest({name: attributes[name] for name in _HEADER}) if known else None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{path}: not an efhorizon table ({str(error)[:200]!r})") from None
    if found is None:
        written_as = f"{attributes['format']} {attributes['format_version']}"
        raise StoreError(f"{path}: written in another format ({written_as[:80]!r})")
    if digest != found.header_digest:
        raise StoreError(f"{path}: the header of the store is damaged")
    return found


def _checked_array(path: Path, name: str, recorded: _Recorded) -> NDArray[Any]:
    array = StoredArray(path / name, recorded.layout).whole()
    if _digest(array) != recorded.xxh128:
        raise StoreError(f"{path}: array {name!r} is not what was written")
    array.flags.writeable = False
    return array


def _written(folder: Path, source: Any) -> dict[str, Any]:
    """Write one array; what the header says about it."""
    layout = Layout(tuple(source.shape), np.dtype(source.dtype))
    whole, digests = _digests(write_array(folder, layout, source))
    recorded = {
        "xxh128": whole,
        "shape": list(layout.shape),
        "dtype": str(layout.dtype),
        "chunks": layout.num_shards * layout.chunks_a_shard,
    }
    return {**recorded, "chunks_xxh128": digests} if folder.name in _LAZY else recorded


def _digests(chunks: Iterable[NDArray[Any]]) -> tuple[str, list[str]]:
    """The digest of an array, and of each of its chunks."""
    whole, each = xxhash.xxh3_128(), []
    for rows in chunks:
        whole.update(rows.data)
        each.append(_digest(rows))
    return whole.hexdigest(), each


def _digest(rows: NDArray[Any]) -> str:
    return xxhash.xxh3_128_hexdigest(rows.data)


def _header_digest(header: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128(json.dumps(header, sort_keys=True).encode()).hexdigest()
