"""numpy's own file format: the header of an array, and files (.npy) with one array."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.io.files import open_regular
from efhorizon.io.machine import available_memory


class Header(NamedTuple):
    """What is known of an array before its data is read."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[Any]

    @property
    def num_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=object))


def read_header(file: IO[bytes], name: str) -> Header:
    """Read the header of an array; nothing that would be unpickled gets any further."""
    try:
        version = npy.read_magic(file)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if reader is None:
            raise InvalidTableError(f"array {name!r} has an unknown npy version {version}")
        shape, fortran, dtype = reader(file)
    except (zipfile.BadZipFile, zlib.error, InvalidTableError):
        raise
    except Exception as error:  # numpy evaluates the header as Python: any error means that it is none
        raise InvalidTableError(f"array {name!r} has a damaged header ({first_line(error)})") from None
    if dtype.hasobject:
        raise InvalidTableError(f"array {name!r} holds pickled objects, which are never loaded")
    if any(type(length) is not int or not 0 <= length < 2**62 for length in shape):
        raise InvalidTableError(f"array {name!r} cannot have the shape {shape}")
    return Header(shape, "F" if fortran else "C", dtype)


def first_line(error: BaseException) -> str:
    """What an error of another package says, in one line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def write_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    npy.write_array_header_2_0(file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})


def read_numbers(path: Path, what: str) -> NDArray[Any]:
    """The array of numbers in a file, which must be as long as the array says."""
    with open_regular(path, what) as file:
        try:
            header = read_header(file, path.name)
        except InvalidTableError as error:
            raise StoreError(f"{path}: not an array that can be read: {error}") from None
        size = os.fstat(file.fileno()).st_size - file.tell()
        if header.num_bytes != size or header.dtype.kind not in "iufb":
            raise StoreError(
                f"{path}: not an array of numbers that can be read: it says {header.num_bytes} bytes of "
                f"{header.dtype} but holds {size}"
            )
        if size > available_memory():
            raise StoreError(f"{path}: {size:,} bytes of memory are needed, more than is available")
        return np.fromfile(file, header.dtype).reshape(header.shape, order=header.order)
