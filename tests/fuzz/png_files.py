"""Mutations of PNG: its chunks, with checksums that are right, and its bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from random import Random

from .mutations import ANY_FILE, SPECIAL_FILES, Mutations, NotApplicableError, Target, copy_of_another

Chunks = list[tuple[bytes, bytes]]
_CHUNKS = Mutations()
REWRITTEN = "its checksums are right: another picture, not a damaged one"


def _chunk_change(change: Callable[[Chunks, Random], str]) -> None:
    def apply(target: Target, rng: Random) -> str:
        content = target.file.read_bytes()
        chunks, at = [], 8
        while at < len(content):
            (length,) = struct.unpack_from(">I", content, at)
            chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + length]))
            at += 12 + length
        what = change(chunks, rng)
        target.file.write_bytes(content[:8] + b"".join(map(_chunk, chunks)))
        return what

    apply.__name__ = change.__name__.strip("_")
    _CHUNKS.add(may_differ=REWRITTEN)(apply)


def _chunk(chunk: tuple[bytes, bytes]) -> bytes:
    kind, data = chunk
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@_chunk_change
def _other_size(chunks: Chunks, rng: Random) -> str:
    width, height = (rng.choice([0, 1, 100, 65_535, 2**31 - 1, 2**32 - 1]) for _ in range(2))
    chunks[0] = b"IHDR", struct.pack(">II", width, height) + chunks[0][1][8:]
    return f"{width} x {height} pixels, it says"


@_chunk_change
def _other_form(chunks: Chunks, rng: Random) -> str:
    form = rng.randbytes(5)
    chunks[0] = b"IHDR", chunks[0][1][:8] + form
    return f"depth, colours and so on: {form.hex()}"


@_chunk_change
def _chunk_missing(chunks: Chunks, rng: Random) -> str:
    kind, _ = chunks.pop(rng.randrange(len(chunks)))
    return f"no {kind.decode()}"


@_chunk_change
def _more_chunks(chunks: Chunks, rng: Random) -> str:
    kind = rng.choice([b"tEXt", b"IDAT", b"IHDR", b"PLTE", b"IEND", b"\0\0\0\0", b"acTL"])
    chunks.insert(rng.randrange(len(chunks) + 1), (kind, rng.randbytes(rng.choice([0, 10, 100_000]))))
    return f"another chunk {kind!r}"


@_chunk_change
def _other_data(chunks: Chunks, rng: Random) -> str:
    data = rng.choice([b"", b"x", zlib.compress(bytes(10**7)), zlib.compress(b"")])
    places = [place for place, (kind, _) in enumerate(chunks) if kind == b"IDAT"]
    if not places:
        raise NotApplicableError
    chunks[places[0]] = b"IDAT", data
    return f"{len(data)} bytes of image data"


@_CHUNKS.add()
def another_format(target: Target, rng: Random) -> str:
    target.file.write_bytes(
        rng.choice([b"GIF89a" + bytes(100), b"<svg onload='alert(1)'/>", b"\xff\xd8\xff" + bytes(99)])
    )
    return "another format"


_CHUNKS.add(may_differ=REWRITTEN)(copy_of_another)

PNG = Mutations(_CHUNKS, ANY_FILE, SPECIAL_FILES)
