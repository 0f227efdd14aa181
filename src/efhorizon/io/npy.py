"""Arrays in numpy's files, read with care: nothing is unpickled, and sizes are compared before memory is taken."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from efhorizon.errors import StoreError
from efhorizon.io.files import open_regular

_BLOCK_BYTES = 1 << 24
_LONGEST = 1 << 62
_ENCRYPTED = 1  # a flag of zip
# What zipfile and zlib raise for archives that are damaged, encrypted, or compressed in a way that they do not know.
UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, RuntimeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)


class InvalidArrayError(ValueError):
    """Not an array that is read; the message continues the array's name."""


class ArrayHeader(NamedTuple):
    """What an array's file says before its data."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[Any]

    @property
    def num_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=object))


def load_array(path: Path, what: str, max_bytes: int) -> NDArray[Any]:
    """The array in a .npy file."""
    with open_regular(path, what) as file:
        size = file.seek(0, 2)
        file.seek(0)
        try:
            header = read_header(file)
            _check_size(header, size - file.tell(), max_bytes)
            return read_data(file, header)
        except UNREADABLE as error:
            raise StoreError(f"{path}: not {what}: the array {one_line(error)}") from None


def load_arrays(path: Path, what: str, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays in a .npz file, by name; together they are at most so large."""
    with open_regular(path, what) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                total = sum(info.file_size for info in members)
                if total > max_bytes:
                    raise InvalidArrayError(f"says that it unpacks to {total:,} bytes (at most {max_bytes:,})")
                names = [info.filename for info in members]
                if len(set(names)) < len(names):
                    raise InvalidArrayError("has two arrays of the same name")
                return {info.filename.removesuffix(".npy"): _member(archive, info, max_bytes) for info in members}
        except UNREADABLE as error:
            raise StoreError(f"{path}: not {what}: it {one_line(error)}") from None


def check_member(info: zipfile.ZipInfo) -> None:
    """Refuse a member of a zip archive that numpy would not have written."""
    if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidArrayError("is encrypted or compressed in a way that numpy does not know")


def read_header(file: IO[bytes]) -> ArrayHeader:
    try:
        version = npy.read_magic(file)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if reader is None:
            raise InvalidArrayError(f"has an unknown npy version {version}")
        shape, fortran, dtype = reader(file)
    except (zipfile.BadZipFile, zlib.error, InvalidArrayError):
        raise
    except Exception as error:  # numpy evaluates the header as Python: any error means that it is none
        raise InvalidArrayError(f"has a damaged header ({one_line(error)})") from None
    if dtype.hasobject:
        raise InvalidArrayError("holds pickled objects, which are never loaded")
    if any(type(length) is not int or not 0 <= length < _LONGEST for length in shape):
        raise InvalidArrayError(f"cannot have the shape {shape}")
    return ArrayHeader(shape, "F" if fortran else "C", dtype)


def read_data(file: IO[bytes], header: ArrayHeader) -> NDArray[Any]:
    """The array behind its header; at the end of a member of a zip archive its checksum is compared."""
    buffer = np.empty(header.num_bytes, np.uint8)
    filled = 0
    while block := file.read(min(_BLOCK_BYTES, len(buffer) - filled)):
        buffer[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
        filled += len(block)
    file.read(1)
    if filled != len(buffer):
        raise EOFError("is cut short")
    return buffer.view(header.dtype).reshape(header.shape, order=header.order)


def one_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, max_bytes: int) -> NDArray[Any]:
    check_member(info)
    with archive.open(info) as file:
        header = read_header(file)
        _check_size(header, info.file_size - file.tell(), max_bytes)
        return read_data(file, header)


def _check_size(header: ArrayHeader, held: int, max_bytes: int) -> None:
    if header.num_bytes != held:
        raise InvalidArrayError(f"says {header.num_bytes} bytes but holds {held}")
    if held > max_bytes:
        raise InvalidArrayError(f"of {held:,} bytes is too large (at most {max_bytes:,})")
