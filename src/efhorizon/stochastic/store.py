"""Stochastic tables on disk: the native store (a zarr v3 folder) or one `.npz`, both with the arrays of `mdp.py`.

The store's header holds horizon, shape, metadata, and a digest of each array and of all that. The npz has the same in
an array `header` (JSON as bytes), so `numpy.load` opens all of it. Nothing is ever unpickled, and sizes are compared
with the memory that is there before any is taken.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError, InvalidTableError, StoreError
from efhorizon.io.files import read_bytes, written_aside
from efhorizon.io.machine import available_memory
from efhorizon.io.metadata import checked_metadata
from efhorizon.io.npy import first_line, write_header
from efhorizon.io.npz import UNREADABLE, Member, member_names, opened_archive
from efhorizon.io.zarr_array import METADATA_FILE, Layout, StoredArray, write_array
from efhorizon.stochastic.mdp import StochasticMDP

FORMAT, FORMAT_VERSION = "efhorizon-stochastic-table", 1
NPZ = ".npz"
_HEADER_ARRAY = "header"
_MAX_HEADER_BYTES = 1 << 22
_REQUIRED = (
    *("offsets", "successors", "reward_codes", "reward_values", "probability_codes", "probability_values"),
    *("initial_states", "initial_probabilities"),
)
_KNOWN = (*_REQUIRED, "base_states", "previous_actions")
_TYPES = ("uint8", "uint16", "uint32", "uint64", "int32", "int64", "float64")


def is_stochastic(path: Path) -> bool:
    """Whether there is a stochastic table at this path; any other file, readable or not, is not one."""
    try:
        if path.is_dir():
            text = read_bytes(path / METADATA_FILE, "the header of a table", 1 << 26)
            return bool(json.loads(text)["attributes"]["format"] == FORMAT)
        with opened_archive(path, "a table") as (_, archive):
            return "probability_codes" in member_names(archive)
    except (EfhorizonError, TypeError, RecursionError, *UNREADABLE):
        return False


def save(mdp: StochasticMDP, path: str | Path) -> Path:
    """Write a table: `.npz` as one file, anything else as a native store."""
    path = Path(path)
    metadata = checked_metadata(json.loads(json.dumps(dict(mdp.metadata))))
    content = {"shape": [mdp.num_states, mdp.num_actions], "horizon": mdp.horizon, "metadata": metadata}
    try:
        return _write_npz(mdp, path, content) if path.suffix == NPZ else _write_store(mdp, path, content)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from None


def load(path: str | Path, *, horizon: int | None = None) -> StochasticMDP:
    """Open a stochastic table; `horizon` overrides what the file says."""
    path = Path(path)
    if not path.exists():
        raise StoreError(f"{path}: no such table")
    try:
        content, arrays = _read_store(path) if path.is_dir() else _read_npz(path)
        return _table(content, arrays, horizon)
    except InvalidTableError as error:
        raise StoreError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: not a stochastic table ({first_line(error)})") from None


def _table(content: Mapping[str, Any], arrays: dict[str, NDArray[Any]], horizon: int | None) -> StochasticMDP:
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise InvalidTableError(f"there is no array {missing[0]!r}")
    shape = content["shape"]
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(size) is int for size in shape):
        raise InvalidTableError("its header does not say how many states and actions there are")
    metadata = checked_metadata(content["metadata"])
    own = content["horizon"]
    mdp = StochasticMDP(
        (shape[0], shape[1]),
        arrays,
        own,
        initial=(arrays["initial_states"], arrays["initial_probabilities"]),
        base_states=arrays.get("base_states"),
        previous_actions=arrays.get("previous_actions"),
        metadata=metadata,
    )
    return mdp if horizon in (None, own) else mdp.with_horizon(int(horizon or own))


def _write_store(mdp: StochasticMDP, path: Path, content: dict[str, Any]) -> Path:
    with written_aside(path) as temporary:
        temporary.mkdir()
        arrays = {name: _written(temporary / name, array) for name, array in mdp.arrays().items()}
        header = {**content, "arrays": arrays}
        attributes = {"format": FORMAT, "format_version": FORMAT_VERSION, **header, "header_digest": _digest_of(header)}
        text = json.dumps({"attributes": attributes, "zarr_format": 3, "node_type": "group"}, indent=2)
        (temporary / METADATA_FILE).write_text(text)
    return path


def _written(folder: Path, array: NDArray[Any]) -> dict[str, Any]:
    layout = Layout(array.shape, array.dtype)
    for _ in write_array(folder, layout, array):
        pass
    return {"xxh128": _digest(array), "shape": list(array.shape), "dtype": str(array.dtype)}


def _read_store(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    text = read_bytes(path / METADATA_FILE, "the header of a table", _MAX_HEADER_BYTES)
    try:
        attributes = json.loads(text)["attributes"]
        version = attributes["format"], attributes["format_version"]
        header = {name: attributes[name] for name in ("shape", "horizon", "metadata", "arrays")}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{path}: not a stochastic table ({first_line(error)[:200]!r})") from None
    if version != (FORMAT, FORMAT_VERSION):
        raise StoreError(f"{path}: written in another format ({str(version)[:80]})")
    if _digest_of(header) != attributes.get("header_digest"):
        raise StoreError(f"{path}: the header of the store is damaged")
    layouts = {}
    for name, recorded in header["arrays"].items():
        if name not in _KNOWN or recorded["dtype"] not in _TYPES:
            raise StoreError(f"{path}: array {str(name)[:80]!r} does not belong here")
        layouts[name] = Layout(tuple(recorded["shape"]), np.dtype(recorded["dtype"]))
    _check_memory(path, sum(layout.num_bytes for layout in layouts.values()))
    arrays = {}
    for name, layout in layouts.items():
        arrays[name] = StoredArray(path / name, layout).whole()
        if _digest(arrays[name]) != header["arrays"][name]["xxh128"]:
            raise StoreError(f"{path}: array {name!r} is not what was written")
    return header, arrays


def _write_npz(mdp: StochasticMDP, path: Path, content: dict[str, Any]) -> Path:
    arrays = mdp.arrays()
    digests = {name: _digest(array) for name, array in arrays.items()}
    header = {**content, "format": FORMAT, "format_version": FORMAT_VERSION, "digests": digests}
    arrays[_HEADER_ARRAY] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with written_aside(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                write_header(file, array.shape, array.dtype)
                file.write(np.ascontiguousarray(array).tobytes())
    return path


def _read_npz(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        with opened_archive(path, "a stochastic table") as (_, archive):
            found = member_names(archive)
            members = {name: Member(path, archive, name) for name in (*_KNOWN, _HEADER_ARRAY) if name in found}
        _check_memory(path, sum(member.num_bytes for member in members.values()))
        if _HEADER_ARRAY not in members or members[_HEADER_ARRAY].num_bytes > _MAX_HEADER_BYTES:
            raise InvalidTableError("it has no header")
        header = json.loads(members.pop(_HEADER_ARRAY).array().tobytes())
        if (header["format"], header["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise StoreError(f"{path}: written in another format")
        arrays = {name: member.array() for name, member in members.items()}
    except (*UNREADABLE, TypeError, RecursionError) as error:
        raise StoreError(f"{path}: not a readable stochastic table ({first_line(error)})") from None
    if arrays.keys() != header["digests"].keys():
        raise StoreError(f"{path}: its arrays are not those that were written")
    for name, array in arrays.items():
        if _digest(array) != header["digests"][name]:
            raise StoreError(f"{path}: array {name!r} is not what was written")
    return header, arrays


def _check_memory(path: Path, needed: int) -> None:
    if needed > available_memory():
        raise StoreError(f"{path}: its arrays need {needed:,} bytes of memory, more than is available")


def _digest(array: NDArray[Any]) -> str:
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(array).data)


def _digest_of(header: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(header, sort_keys=True).encode())
