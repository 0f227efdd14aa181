"""Named arrays with a description in one .npz: what numpy and `efhorizon train --initial` read, and a JSON beside them.

    NAME.npy        one array each
    metadata.json   a description, and a checksum (SHA-256) of it and all arrays

The same content always gives the same bytes, so files can be compared. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import StoreError
from efhorizon.io.decode import json_object
from efhorizon.io.files import written_aside
from efhorizon.io.npy import first_line, write_header
from efhorizon.io.npz import UNREADABLE, opened_archive, read_arrays

_METADATA = "metadata.json"
_MAX_METADATA_BYTES = 1 << 24
_CHECKSUM = "checksum"


def write_archive(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write a file in one step; what was there stays until then."""
    described = {**metadata, _CHECKSUM: _checksum(arrays, metadata)}
    with written_aside(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            contiguous = np.asarray(array, order="C")
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                write_header(file, contiguous.shape, contiguous.dtype)
                file.write(contiguous.tobytes())
        archive.writestr(zipfile.ZipInfo(_METADATA), json.dumps(described, indent=1))


def read_archive(path: Path, what: str, max_bytes: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and description of a file, compared with its checksum."""
    arrays = read_arrays(path, what, max_bytes)
    try:
        with opened_archive(path, what) as (_, archive):
            if archive.getinfo(_METADATA).file_size > _MAX_METADATA_BYTES:
                raise ValueError(f"{_METADATA} is too large")
            text = archive.read(_METADATA).decode()
    except UNREADABLE as error:
        raise StoreError(f"{path}: not {what} ({first_line(error)})") from None
    metadata = json_object(text, str(path), what)
    if metadata.pop(_CHECKSUM, None) != _checksum(arrays, metadata):
        raise StoreError(f"{path}: damaged: its content is not what its checksum says")
    return arrays, metadata


def _checksum(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> str:
    content = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        content.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        content.update(array.tobytes())
    return content.hexdigest()
