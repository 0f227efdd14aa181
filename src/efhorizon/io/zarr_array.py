"""One array of the native store, laid out as zarr v3 lays out sharded arrays; zarr reads and writes the same files.

    zarr.json        shape, type and layout
    c/I/0/...        shard I: up to 32 chunks of about 1 MB, each a zstd frame with a checksum, then an index of where
                     they begin and how long they are, and the checksum (crc32c) of the index

zarr reads what is missing as zeros, and does whatever the metadata says. This reader accepts one layout, the one that
is written here, and refuses everything else: a chunk that is missing, empty, too long or in another place.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import zstandard
from numpy.typing import NDArray

from efhorizon.errors import StoreError
from efhorizon.io.files import open_regular, read_bytes

METADATA_FILE = "zarr.json"
_MAX_METADATA_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20
_MAX_ROW_BYTES = 1 << 28  # a chunk has at least one row
_CHUNKS_A_SHARD = 32
_ZSTD_LEVEL = 3
_ABSENT = 2**64 - 1  # in an index: after the last chunk of the array
_ESSENTIAL = ("shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs", "zarr_format", "node_type")


@dataclass(frozen=True)
class Layout:
    """Where the rows of an array are: it follows from its shape and type."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @cached_property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize

    @cached_property
    def chunk_rows(self) -> int:
        return max(1, min(_CHUNK_BYTES // max(1, self.row_bytes), self.shape[0]))

    @cached_property
    def chunks_a_shard(self) -> int:
        return _CHUNKS_A_SHARD if self.shape[0] > self.chunk_rows else 1

    @property
    def num_bytes(self) -> int:
        return self.shape[0] * self.row_bytes

    @property
    def num_chunks(self) -> int:
        return -(-self.shape[0] // self.chunk_rows)

    @property
    def num_shards(self) -> int:
        return -(-self.num_chunks // self.chunks_a_shard)

    def shard_file(self, shard: int) -> str:
        return "/".join(["c", str(shard), *("0" for _ in self.shape[1:])])

    def metadata(self) -> dict[str, Any]:
        """What zarr.json says."""
        endian = {} if self.dtype.itemsize == 1 else {"configuration": {"endian": "little"}}
        rest = list(self.shape[1:])
        sharding = {
            "chunk_shape": [self.chunk_rows, *rest],
            "codecs": [
                {"name": "bytes", **endian},
                {"name": "zstd", "configuration": {"level": _ZSTD_LEVEL, "checksum": True}},
            ],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "index_location": "end",
        }
        shard_shape = [self.chunk_rows * self.chunks_a_shard, *rest]
        return {
            "shape": list(self.shape),
            "data_type": str(self.dtype),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard_shape}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": self.dtype.type(0).item(),
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
            "attributes": {},
            "zarr_format": 3,
            "node_type": "array",
            "storage_transformers": [],
        }


def write_array(folder: Path, layout: Layout, source: Any) -> Iterator[NDArray[Any]]:
    """Write an array; yields the rows of each chunk once they are written."""
    if layout.row_bytes > _MAX_ROW_BYTES:
        raise StoreError(
            f"{folder.name}: a row of {layout.row_bytes:,} bytes is too large (at most {_MAX_ROW_BYTES:,})"
        )
    folder.mkdir()
    (folder / METADATA_FILE).write_text(json.dumps(layout.metadata(), indent=2))
    for shard in range(layout.num_shards):
        path = folder / layout.shard_file(shard)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            yield from _write_shard(file, layout, shard, source)


def _write_shard(file: Any, layout: Layout, shard: int, source: Any) -> Iterator[NDArray[Any]]:
    compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True, write_content_size=True)
    begin = shard * layout.chunks_a_shard * layout.chunk_rows
    rows = np.ascontiguousarray(source[begin : begin + layout.chunks_a_shard * layout.chunk_rows], layout.dtype)
    index = np.full((layout.chunks_a_shard, 2), _ABSENT, "<u8")
    for place, start in enumerate(range(0, len(rows), layout.chunk_rows)):
        chunk = rows[start : start + layout.chunk_rows]
        padding = bytes((layout.chunk_rows - len(chunk)) * layout.row_bytes)
        frame = compressor.compress(chunk.tobytes() + padding)
        index[place] = file.tell(), len(frame)
        file.write(frame)
        yield chunk
    file.write(index.tobytes() + struct.pack("<I", google_crc32c.value(index.tobytes())))


class StoredArray:
    """An array on disk, read chunk by chunk. What is not as it was written is refused with the name of the file."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        """Check everything that can be checked without unpacking: metadata, and the index of each shard."""
        self.layout, self._folder = layout, folder
        if len(layout.shape) < 1 or min(layout.shape[1:], default=1) < 1 or layout.row_bytes > _MAX_ROW_BYTES:
            raise self._damaged(f"no array of {list(layout.shape)} is stored here")
        self._check_metadata()
        for shard in range(layout.num_shards):
            with self._opened(shard) as file:
                self._index(shard, file)

    def chunk(self, number: int) -> NDArray[Any]:
        """The rows of one chunk, read-only."""
        layout = self.layout
        shard, place = divmod(number, layout.chunks_a_shard)
        with self._opened(shard) as file:
            begin, length = self._index(shard, file)[place]
            frame = os.pread(file.fileno(), int(length), int(begin))
        expected = layout.chunk_rows * layout.row_bytes
        try:
            parameters = zstandard.get_frame_parameters(frame)
            if parameters.content_size != expected or not parameters.has_checksum:  # before any memory is taken
                raise self._damaged(f"chunk {number} does not hold {expected:,} bytes")
            data = zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise self._damaged(f"chunk {number}: {error}") from None
        rows = np.frombuffer(data, layout.dtype).reshape(layout.chunk_rows, *layout.shape[1:])
        return rows[: layout.shape[0] - number * layout.chunk_rows]

    def chunks(self) -> Iterator[NDArray[Any]]:
        return map(self.chunk, range(self.layout.num_chunks))

    def whole(self) -> NDArray[Any]:
        """All rows in memory."""
        array = np.empty(self.layout.shape, self.layout.dtype)
        for number, rows in enumerate(self.chunks()):
            begin = number * self.layout.chunk_rows
            array[begin : begin + len(rows)] = rows
        return array

    def _check_metadata(self) -> None:
        try:
            content = json.loads(read_bytes(self._folder / METADATA_FILE, "metadata of zarr", _MAX_METADATA_BYTES))
        except (ValueError, RecursionError):
            raise self._damaged(f"{METADATA_FILE} is not JSON") from None
        expected = self.layout.metadata()
        if not isinstance(content, dict) or any(content.get(name) != expected[name] for name in _ESSENTIAL):
            raise self._damaged(f"{METADATA_FILE} does not describe what was written")

    def _opened(self, shard: int) -> Any:
        path = self._folder / self.layout.shard_file(shard)
        if not path.exists():
            raise self._damaged(f"it has lost some of its chunks: there is no {self.layout.shard_file(shard)}")
        file = open_regular(path, "a part of a table")
        if os.fstat(file.fileno()).st_size <= self._index_bytes:
            file.close()
            raise self._damaged(f"it has lost some of its chunks: {self.layout.shard_file(shard)} is cut short")
        return file

    @property
    def _index_bytes(self) -> int:
        return 16 * self.layout.chunks_a_shard + 4

    def _index(self, shard: int, file: Any) -> NDArray[np.int64]:
        """Begin and length of each chunk in a shard [chunks, 2]: one after another, up to the index."""
        name, layout = self.layout.shard_file(shard), self.layout
        end = os.fstat(file.fileno()).st_size - self._index_bytes
        content = os.pread(file.fileno(), self._index_bytes, end)
        if content[-4:] != struct.pack("<I", google_crc32c.value(content[:-4])):
            raise self._damaged(f"the index of {name} does not match its checksum")
        count = min(layout.chunks_a_shard, layout.num_chunks - shard * layout.chunks_a_shard)
        entries = np.frombuffer(content[:-4], "<u8").reshape(-1, 2)
        index, after = entries[:count].astype(np.int64), entries[count:]
        lengths = index[:, 1]
        if int(lengths.min()) < 1 or int(lengths.max()) > 2 * layout.chunk_rows * layout.row_bytes + _CHUNK_BYTES:
            raise self._damaged(f"{name} lacks a chunk")
        ends = np.cumsum(lengths)
        if (index[:, 0] != ends - lengths).any() or int(ends[-1]) != end or (after != _ABSENT).any():
            raise self._damaged(f"{name} does not hold its chunks one after another")
        return index

    def _damaged(self, reason: str) -> StoreError:
        return StoreError(f"{self._folder.parent}: array {self._folder.name!r} is damaged ({reason})")
