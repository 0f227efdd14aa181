"""Reading the files of a .tar.bz2 that may come from anywhere, one after the other: nothing is written to disk.

The archive is decompressed as a stream, and every limit is checked before memory is taken: how many members there are,
how large each is, how large all are together. A name that would lead out of the folder (absolute, or with `..`), a
link or a device is refused, although nothing here follows it: such an archive is not what it says it is. Python's own
`tarfile` reads headers of any size, and takes a damaged header for the end.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from efhorizon.errors import StoreError
from efhorizon.io.files import open_regular
from efhorizon.io.npy import first_line

_BLOCK = 512
_FILES, _FOLDER = (b"0", b"\0", b"7"), b"5"
_LONG_NAME, _EXTENDED, _EXTENDED_FOR_ALL = b"L", b"x", b"g"
_REFUSED = {b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
_MAX_NAME_BYTES = 16 << 10  # of a header that holds a long name
_MAX_PADDING = 1 << 20  # bytes after the end mark
_SHOWN = 120  # characters of a name in a message


class Limits(NamedTuple):
    """What an archive may hold at most."""

    members: int
    member_bytes: int
    total_bytes: int


class _Header(NamedTuple):
    name: str
    size: int
    kind: bytes


def archived_files(path: Path, what: str, limits: Limits) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in the archive, in its order."""
    try:
        with open_regular(path, what) as file, bz2.BZ2File(file) as stream:
            yield from _files(path, stream, limits)
    except (OSError, EOFError, ValueError) as error:
        raise StoreError(f"{path}: the archive is damaged or cut short ({first_line(error)})") from None


def _files(path: Path, stream: IO[bytes], limits: Limits) -> Iterator[tuple[str, bytes]]:
    count, total, long_name = 0, 0, ""
    while (header := _header(path, stream)) is not None:
        count, total = count + 1, total + header.size
        if count > limits.members:
            raise StoreError(f"{path}: more than {limits.members:,} members are in the archive")
        most = limits.member_bytes if header.kind in _FILES else _MAX_NAME_BYTES
        name = (long_name or header.name)[:_SHOWN]
        if header.size > most:
            raise StoreError(f"{path}: member {name!r} has {header.size:,} bytes (at most {most:,})")
        if total > limits.total_bytes:
            raise StoreError(f"{path}: more than {limits.total_bytes:,} bytes are in the archive")
        content = _content(path, stream, header.size, name)
        if header.kind == _LONG_NAME:
            long_name = _text(content)
        elif header.kind == _EXTENDED:
            long_name = _extended_name(path, content) or long_name
        elif header.kind != _EXTENDED_FOR_ALL:
            checked = _checked_name(path, long_name or header.name, header.kind)
            long_name = ""
            if header.kind != _FOLDER and not header.name.endswith("/"):
                yield checked, content
    rest = stream.read(_MAX_PADDING + 1)  # to its end, where the checksum of the compression is compared
    if len(rest) > _MAX_PADDING or rest.strip(b"\0"):
        raise StoreError(f"{path}: something follows the end of the archive")


def _header(path: Path, stream: IO[bytes]) -> _Header | None:
    """What the next member is; None at the end mark."""
    block = stream.read(_BLOCK)
    if len(block) != _BLOCK:
        raise StoreError(f"{path}: the archive is cut short")
    if not block.strip(b"\0"):
        return None
    stored, summed = _number(block[148:156]), sum(block) - sum(block[148:156]) + 8 * ord(" ")
    size = _number(block[124:136])
    if stored != summed or size is None:
        raise StoreError(f"{path}: not a tar archive, or the header of a member is damaged")
    name, prefix = _text(block[:100]), _text(block[345:500]) if block[257:263] == b"ustar\0" else ""
    return _Header(f"{prefix}/{name}" if prefix else name, size, block[156:157])


def _content(path: Path, stream: IO[bytes], size: int, name: str) -> bytes:
    padded = -(-size // _BLOCK) * _BLOCK
    content = stream.read(padded)
    if len(content) != padded:
        raise StoreError(f"{path}: the archive is cut short within {name!r}")
    return content[:size]


def _checked_name(path: Path, name: str, kind: bytes) -> str:
    if kind in _REFUSED or kind not in (*_FILES, _FOLDER):
        found = _REFUSED.get(kind, f"of the unknown kind {kind!r}")
        raise StoreError(f"{path}: member {name[:_SHOWN]!r} is {found}; only files and folders are read")
    parts = name.replace("\\", "/").split("/")
    if not name or not parts[0] or ".." in parts or ":" in parts[0]:
        raise StoreError(f"{path}: member {name[:_SHOWN]!r} lies outside the folder of the archive")
    return "/".join(part for part in parts if part not in ("", "."))


def _extended_name(path: Path, content: bytes) -> str:
    """The name in an extended header, if it has one: records 'LENGTH KEY=VALUE' of that many bytes."""
    found = ""
    while content.strip(b"\0"):
        digits, _, _ = content.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 6 else 0
        record = content[len(digits) + 1 : length]
        if not record.endswith(b"\n"):
            raise StoreError(f"{path}: an extended header of the archive is damaged")
        key, _, value = record[:-1].partition(b"=")
        if key == b"size":
            raise StoreError(f"{path}: an extended header gives a size, which no small file needs")
        found = _text(value) if key == b"path" else found
        content = content[length:]
    return found


def _number(field: bytes) -> int | None:
    """A number in octal digits; None where it is none."""
    digits = field.strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        return None
    return int(digits, 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")
