"""The published BRIDGE file: a compressed `.npz` with `transitions` int64 [S, A], `rewards` float32 [S, A] and, where
there are any, `screens` uint8 [N, H, W, C] with `screen_mapping` int64 [S], and `states` uint8 [S, L] with
`state_lengths` uint64 [S].

Files may come from anywhere, so nothing is unpickled and every size is checked against the header before memory is
taken. What the layout has no place for (horizon, provenance) goes into the zip archive's comment, which other readers
ignore.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.io.files import written_aside
from efhorizon.io.machine import available_memory
from efhorizon.mdp import TabularMDP

_BLOCK_BYTES = 1 << 24
_COMMENT_LIMIT = 65_535  # of a zip archive
_COMMENT_START = b'{"horizon"'
_REQUIRED = ("transitions", "rewards")
_OPTIONAL = ("screens", "screen_mapping", "states", "state_lengths")


def read(path: Path, *, horizon: int | None, published: Mapping[str, int]) -> TabularMDP:
    """Read a published or exported file; screens and raw states are read when they are first asked for.

    `published` gives the horizons of environments by name, for files that say neither.
    """
    try:
        members = {name: _Member(path, name) for name in _member_names(path)}
        for name in _REQUIRED:
            if name not in members:
                raise InvalidTableError(f"there is no array {name!r}")
        comment = _comment(path)
        transitions = members["transitions"].array()
        rewards = members["rewards"].array()
        screens, mapping = members.get("screens"), members.get("screen_mapping")
        states, lengths = members.get("states"), members.get("state_lengths")
        if (states is None) != (lengths is None):
            raise InvalidTableError("states and state_lengths must both be there; one of them is missing")
        return TabularMDP(
            transitions,
            _shortest_decimals(rewards),
            _horizon(path, transitions, horizon, comment, published),
            screens=screens,
            screen_mapping=None if mapping is None else mapping.array(),
            states=None if states is None or lengths is None else _PaddedStates(states, lengths.array()),
            metadata=comment.get("metadata", {"id": path.parent.name} if path.parent.name in published else {}),
        )
    except InvalidTableError as error:
        raise InvalidTableError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise StoreError(f"{path}: no such file") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise StoreError(f"{path}: not a readable BRIDGE file ({_one_line(error)})") from None


def write(mdp: TabularMDP, path: Path) -> Path:
    """Write a file that the authors' tools read; the old file stays until the new one is complete."""
    if not mdp.is_complete:
        raise StoreError(f"{path}: the published layout has no place for unexplored states")
    arrays: dict[str, tuple[tuple[int, ...], Any, Iterator[NDArray[Any]]]] = {
        "transitions": ((mdp.num_states, mdp.num_actions), np.int64, _blocks(mdp.transitions, np.int64)),
        "rewards": ((mdp.num_states, mdp.num_actions), np.float32, _reward_blocks(mdp)),
    }
    if mdp.screens is not None and mdp.screen_mapping is not None:
        arrays["screens"] = (tuple(mdp.screens.shape), np.uint8, _blocks(mdp.screens, np.uint8))
        arrays["screen_mapping"] = ((mdp.num_states,), np.int64, _blocks(mdp.screen_mapping, np.int64))
    if mdp.states is not None:
        lengths = np.array([len(mdp.states[i]) for i in range(mdp.num_states)], np.uint64)
        width = int(lengths.max())
        arrays["states"] = ((mdp.num_states, width), np.uint8, _padded_blocks(mdp, width))
        arrays["state_lengths"] = ((mdp.num_states,), np.uint64, _blocks(lengths, np.uint64))
    with written_aside(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, dtype, blocks) in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                header = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
                npy.write_array_header_2_0(file, header)
                for block in blocks:
                    file.write(np.ascontiguousarray(block).data)
        comment = json.dumps({"horizon": mdp.horizon, "metadata": dict(mdp.metadata)}).encode()
        if len(comment) > _COMMENT_LIMIT:
            comment = json.dumps({"horizon": mdp.horizon, "metadata": {"id": mdp.metadata.get("id")}}).encode()
        archive.comment = comment
    return path


class _Member:
    """One array of the archive: its header is read and checked at once, its data when it is asked for."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
            shape, fortran, dtype = _header(file, name)
            size = archive.getinfo(f"{name}.npy").file_size - file.tell()
        self.shape: tuple[int, ...] = shape
        self.dtype: np.dtype[Any] = dtype
        self._order = "F" if fortran else "C"
        self._data: NDArray[Any] | None = None
        expected = dtype.itemsize * int(np.prod([int(n) for n in shape], dtype=object))
        if expected != size:
            raise InvalidTableError(f"array {name!r} says {expected} bytes but holds {size}")

    def array(self) -> NDArray[Any]:
        if self._data is None:
            needed = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
            if needed > available_memory():
                raise InvalidTableError(
                    f"array {self._name!r} needs {needed:,} bytes of memory, more than is available"
                )
            self._data = self._read(needed)
            self._data.flags.writeable = False
        return self._data

    def _read(self, needed: int) -> NDArray[Any]:
        buffer = np.empty(needed, np.uint8)
        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(f"{self._name}.npy") as file:
                _header(file, self._name)
                filled = 0
                while block := file.read(min(_BLOCK_BYTES, needed - filled)):
                    buffer[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
                    filled += len(block)
                file.read(1)  # at the end of the member its checksum is compared
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise StoreError(f"{self._path}: array {self._name!r} is damaged ({_one_line(error)})") from None
        if filled != needed:
            raise StoreError(f"{self._path}: array {self._name!r} is cut short")
        return buffer.view(self.dtype).reshape(self.shape, order="F" if self._order == "F" else "C")

    def __getitem__(self, index: Any, /) -> Any:
        return self.array()[index]


class _PaddedStates:
    """Raw states from the rows of a padded array."""

    def __init__(self, states: _Member, lengths: NDArray[Any]) -> None:
        if len(states.shape) != 2 or states.dtype != np.uint8:
            raise InvalidTableError(f"states must be uint8 [S, L], got {states.dtype} {states.shape}")
        if lengths.shape != states.shape[:1] or lengths.dtype.kind not in "iu":
            raise InvalidTableError(f"state_lengths must be integers [{states.shape[0]}], got {lengths.shape}")
        if lengths.size and (int(lengths.max()) > states.shape[1] or int(lengths.min()) < 0):
            raise InvalidTableError(f"state_lengths go beyond the {states.shape[1]} columns of states")
        self._states, self._lengths = states, lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, index: int, /) -> bytes:
        row: NDArray[np.uint8] = self._states[index][: int(self._lengths[index])]
        return row.tobytes()


def _member_names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        names = {info.filename.removesuffix(".npy") for info in archive.infolist() if info.filename.endswith(".npy")}
    return [name for name in (*_REQUIRED, *_OPTIONAL) if name in names]


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if reader is None:
        raise InvalidTableError(f"array {name!r} has an unknown npy version {version}")
    shape, fortran, dtype = reader(file)
    if dtype.hasobject:
        raise InvalidTableError(f"array {name!r} holds pickled objects, which are never loaded")
    return shape, fortran, dtype


def _comment(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        text = archive.comment
    try:
        comment = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        if text.startswith(_COMMENT_START):  # ours, and not all of it
            raise InvalidTableError("the end of the file is missing") from None
        return {}  # another tool's
    if not isinstance(comment, dict) or not isinstance(comment.get("metadata", {}), Mapping):
        return {}
    return comment


def _horizon(
    path: Path,
    transitions: NDArray[Any],
    given: int | None,
    comment: Mapping[str, Any],
    published: Mapping[str, int],
) -> int:
    if given is not None:
        return given
    if "horizon" in comment:
        return comment["horizon"]  # type: ignore[no-any-return]  # the constructor checks it
    for name in (path.parent.name, path.stem):
        if name in published:
            return published[name]
    if transitions.ndim == 2 and transitions.dtype.kind in "iu" and transitions.size:
        if int(transitions.min()) < -1 or int(transitions.max()) >= len(transitions):
            return 1  # the constructor names the wrong transition
        acyclic = graph.successors_first(np.ascontiguousarray(transitions, np.int32))
        if acyclic is not None:
            return acyclic[1]
    raise InvalidTableError("the file does not say its horizon, and episodes can go on for ever; give a horizon")


def _shortest_decimals(rewards: NDArray[Any]) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.float64]]:
    """float32 rewards as the decimals they stand for: the float32 nearest to 0.1 is read as 0.1."""
    if rewards.dtype != np.float32:
        return rewards
    values, inverse = np.unique(rewards, return_inverse=True)
    codes = inverse.reshape(rewards.shape).astype(np.min_scalar_type(max(len(values) - 1, 0)))
    return codes, np.array([float(str(value)) for value in values])


def _blocks(array: Any, dtype: Any) -> Iterator[NDArray[Any]]:
    row_bytes = max(1, int(np.prod(array.shape[1:], dtype=np.int64)) * np.dtype(dtype).itemsize)
    rows = max(1, _BLOCK_BYTES // row_bytes)
    for start in range(0, array.shape[0], rows):
        yield np.asarray(array[start : start + rows]).astype(dtype, copy=False)


def _reward_blocks(mdp: TabularMDP) -> Iterator[NDArray[Any]]:
    values = mdp.reward_values.astype(np.float32)
    return (values[block] for block in _blocks(mdp.reward_codes, mdp.reward_codes.dtype))


def _padded_blocks(mdp: TabularMDP, width: int) -> Iterator[NDArray[Any]]:
    assert mdp.states is not None
    for index in range(mdp.num_states):
        yield np.frombuffer(mdp.states[index].ljust(width, b"\0"), np.uint8)


def _one_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
