"""Arrays in a zip archive, as numpy writes them: headers are read at once, data when it is asked for."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.io.files import open_regular
from efhorizon.io.machine import available_memory
from efhorizon.io.npy import first_line, read_header

_BLOCK_BYTES = 1 << 24
_ENDING = ".npy"
_ENCRYPTED = 1  # a flag of zip
# What zipfile and zlib raise for archives that are damaged, encrypted, or compressed in a way that they do not know.
_MAX_NAME = 200
UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, RuntimeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)


@contextmanager
def opened_archive(path: Path, what: str) -> Iterator[tuple[BinaryIO, zipfile.ZipFile]]:
    """The file and the archive in it, for reading."""
    with open_regular(path, what) as file, zipfile.ZipFile(file) as archive:
        yield file, archive


def member_names(archive: zipfile.ZipFile) -> list[str]:
    """The arrays of an archive, by name."""
    names = [info.filename for info in archive.infolist()]
    if len(names) != len(set(names)):
        raise InvalidTableError("two members of the archive have the same name")
    if max(map(len, names), default=0) > _MAX_NAME:
        raise InvalidTableError(f"a member of the archive has a name of more than {_MAX_NAME} characters")
    return [name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING)]


def identity(info: zipfile.ZipInfo) -> tuple[str, int, int]:
    """What distinguishes one content of a member from another."""
    return info.filename, info.file_size, info.CRC


def read_arrays(path: Path, what: str, max_bytes: int) -> dict[str, NDArray[Any]]:
    """All arrays of an archive, by name, if they are not larger than that."""
    try:
        with opened_archive(path, what) as (_, archive):
            members = {name: Member(path, archive, name) for name in member_names(archive)}
    except UNREADABLE as error:
        raise StoreError(f"{path}: not {what} ({first_line(error)})") from None
    size = sum(member.num_bytes for member in members.values())
    if size > max_bytes:
        raise StoreError(f"{path}: {size:,} bytes are too many for {what} (at most {max_bytes:,})")
    return {name: member.array() for name, member in members.items()}


class Member:
    """One array of the archive: its header is read and checked at once, its data when it is asked for."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, name: str) -> None:
        self._path, self._name = path, name
        info = archive.getinfo(f"{name}{_ENDING}")
        if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidTableError(f"array {name!r} is encrypted or compressed in a way that numpy does not know")
        with archive.open(info) as file:
            header = read_header(file, name)
            size = info.file_size - file.tell()
        self.shape, self._order, self.dtype = header
        self.num_bytes = header.num_bytes
        self._identity = identity(info)
        self._data: NDArray[Any] | None = None
        if self.num_bytes != size:
            raise InvalidTableError(f"array {name!r} says {self.num_bytes} bytes but holds {size}")

    def array(self) -> NDArray[Any]:
        if self._data is None:
            if self.num_bytes > available_memory():
                raise InvalidTableError(
                    f"array {self._name!r} needs {self.num_bytes:,} bytes of memory, more than is available"
                )
            self._data = self._read()
            self._data.flags.writeable = False
        return self._data

    def _read(self) -> NDArray[Any]:
        try:
            with opened_archive(self._path, "an archive of arrays") as (_, archive):
                info = archive.getinfo(f"{self._name}{_ENDING}")
                if identity(info) != self._identity:
                    raise StoreError(f"{self._path}: replaced by another file since it was opened; open it again")
                with archive.open(info) as file:
                    read_header(file, self._name)
                    buffer = self._content(file)
        except (InvalidTableError, *UNREADABLE) as error:
            raise StoreError(f"{self._path}: array {self._name!r} is damaged ({first_line(error)})") from None
        return buffer.view(self.dtype).reshape(self.shape, order=self._order)

    def _content(self, file: IO[bytes]) -> NDArray[np.uint8]:
        buffer = np.empty(self.num_bytes, np.uint8)
        filled = 0
        while block := file.read(min(_BLOCK_BYTES, self.num_bytes - filled)):
            buffer[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
            filled += len(block)
        file.read(1)  # at the end of the member its checksum is compared
        if filled != self.num_bytes:
            raise EOFError("it is cut short")
        return buffer

    def __getitem__(self, index: Any, /) -> Any:
        return self.array()[index]
