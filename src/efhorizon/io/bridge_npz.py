"""The published BRIDGE file: a compressed `.npz` with `transitions` int64 [S, A], `rewards` float32 [S, A] and, where
there are any, `screens` uint8 [N, H, W, C] with `screen_mapping` int64 [S], and `states` uint8 [S, L] with
`state_lengths` uint64 [S]. A table with frame stacks has `screens` uint8 [N, H, W] (grey), `screen_mapping` int64
[S, K] (oldest frame first) and `prev_state_mapping` int64 [S], the state of the table without them.

Files may come from anywhere, so nothing is unpickled, and before memory is taken the shapes in all headers are compared
with each other and with the sizes of the members. What the layout has no place for (horizon, provenance) goes into the
zip archive's comment, with a checksum; other readers ignore it.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xxhash
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.io.files import written_aside
from efhorizon.io.machine import available_memory
from efhorizon.io.metadata import checked_metadata
from efhorizon.io.npy import first_line, write_header
from efhorizon.io.npz import UNREADABLE, Member, identity, member_names, opened_archive
from efhorizon.io.shapes import check_shapes
from efhorizon.mdp import TabularMDP

_BLOCK_BYTES = 1 << 24
_COMMENT_LIMIT = 65_535  # of a zip archive
_COMMENT_WORDS = (b'"horizon"', b'"metadata"', b'"checksum"')  # a comment with any of them is ours
_END_START, _END_BYTES = b"PK\5\6", 22  # of the record at the end of a zip archive, before the comment
_REQUIRED = ("transitions", "rewards")
_OPTIONAL = ("screens", "screen_mapping", "prev_state_mapping", "states", "state_lengths")
_LAZY = ("screens", "states")
_GREY_AXES = 3  # of the screens of frame stacks: [N, H, W]


def read(path: Path, *, horizon: int | None, published: Mapping[str, int]) -> TabularMDP:
    """Read a published or exported file; screens and raw states are read when they are first asked for.

    `published` gives the horizons of environments by name, for files that say neither.
    """
    if not path.exists():
        raise StoreError(f"{path}: no such file")
    try:
        with opened_archive(path, "a BRIDGE file") as (file, archive):
            found = member_names(archive)
            members = {name: Member(path, archive, name) for name in (*_REQUIRED, *_OPTIONAL) if name in found}
            comment = _comment(file, archive)
        for name in _REQUIRED:
            if name not in members:
                raise InvalidTableError(f"there is no array {name!r}")
        check_shapes(members)
        needed = sum(member.num_bytes for name, member in members.items() if name not in _LAZY)
        if needed > available_memory():
            raise InvalidTableError(f"its arrays need {needed:,} bytes of memory, more than is available")
        default = {"id": path.parent.name} if path.parent.name in published else {}
        metadata = checked_metadata(comment.get("metadata", default))
        transitions, rewards = members["transitions"].array(), members["rewards"].array()
        mapping, states = members.get("screen_mapping"), members.get("states")
        screens, base_states = members.get("screens"), members.get("prev_state_mapping")
        return TabularMDP(
            transitions,
            _shortest_decimals(rewards),
            _horizon(path, transitions, horizon, comment, published),
            screens=_Grey(screens) if screens is not None and len(screens.shape) == _GREY_AXES else screens,
            screen_mapping=None if mapping is None else mapping.array(),
            base_states=None if base_states is None else base_states.array(),
            states=None if states is None else _PaddedStates(states, members["state_lengths"].array()),
            metadata=metadata,
        )
    except InvalidTableError as error:
        raise InvalidTableError(f"{path}: {error}") from None
    except UNREADABLE as error:
        raise StoreError(f"{path}: not a readable BRIDGE file ({first_line(error)})") from None


def write(mdp: TabularMDP, path: Path) -> Path:
    """Write a file that the authors' tools read; the old file stays until the new one is complete."""
    if not mdp.is_complete:
        raise StoreError(f"{path}: the published layout has no place for unexplored states")
    checked_metadata(json.loads(json.dumps(dict(mdp.metadata))))
    arrays: dict[str, tuple[tuple[int, ...], Any, Iterator[NDArray[Any]]]] = {
        "transitions": ((mdp.num_states, mdp.num_actions), np.int64, _blocks(mdp.transitions, np.int64)),
        "rewards": ((mdp.num_states, mdp.num_actions), np.float32, _reward_blocks(mdp)),
    }
    if mdp.screens is not None and mdp.screen_mapping is not None:
        is_grey_stack = mdp.frame_stack > 1 and mdp.screens.shape[3] == 1  # published without the axis of colours
        shape = tuple(mdp.screens.shape)[: _GREY_AXES if is_grey_stack else None]
        arrays["screens"] = (shape, np.uint8, _blocks(mdp.screens, np.uint8))
        arrays["screen_mapping"] = (mdp.screen_mapping.shape, np.int64, _blocks(mdp.screen_mapping, np.int64))
    if mdp.base_states is not None:
        arrays["prev_state_mapping"] = ((mdp.num_states,), np.int64, _blocks(mdp.base_states, np.int64))
    if mdp.states is not None:
        lengths = np.array([len(mdp.states[i]) for i in range(mdp.num_states)], np.uint64)
        width = int(lengths.max())
        arrays["states"] = ((mdp.num_states, width), np.uint8, _padded_blocks(mdp, width))
        arrays["state_lengths"] = ((mdp.num_states,), np.uint64, _blocks(lengths, np.uint64))
    with written_aside(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, dtype, blocks) in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                write_header(file, shape, np.dtype(dtype))
                for block in blocks:
                    file.write(np.ascontiguousarray(block).data)
        archive.comment = _written_comment(mdp, archive)
    return path


def _written_comment(mdp: TabularMDP, archive: zipfile.ZipFile) -> bytes:
    for metadata in (dict(mdp.metadata), {"id": mdp.metadata.get("id")}):
        content = json.loads(json.dumps({"horizon": mdp.horizon, "metadata": metadata}))
        comment = json.dumps({**content, "checksum": _checksum(content, archive)}).encode()
        if len(comment) <= _COMMENT_LIMIT:
            break
    return comment


class _Grey:
    """Grey screens [N, H, W] as screens with one colour, [N, H, W, 1]."""

    dtype = np.dtype(np.uint8)

    def __init__(self, screens: Member) -> None:
        self._screens = screens
        self.shape = (*screens.shape, 1)

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        found: NDArray[np.uint8] = np.asarray(self._screens[index])[..., None]
        return found


class _PaddedStates:
    """Raw states from the rows of a padded array."""

    def __init__(self, states: Member, lengths: NDArray[Any]) -> None:
        if lengths.size and (int(lengths.max()) > states.shape[1] or int(lengths.min()) < 0):
            raise InvalidTableError(f"state_lengths go beyond the {states.shape[1]} columns of states")
        self._states, self._lengths = states, lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, index: int, /) -> bytes:
        row: NDArray[np.uint8] = self._states[index][: int(self._lengths[index])]
        return row.tobytes()


def _comment(file: BinaryIO, archive: zipfile.ZipFile) -> dict[str, Any]:
    """What the archive's comment says; nothing if another tool has written it."""
    text = archive.comment
    file.seek(-min(_END_BYTES + len(text), file.seek(0, os.SEEK_END)), os.SEEK_END)
    end = file.read(_END_BYTES)
    if not end.startswith(_END_START) or int.from_bytes(end[-2:], "little") != len(text):
        raise InvalidTableError("the end of the file is missing")
    try:
        content = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        if any(word in text for word in _COMMENT_WORDS):  # ours
            raise InvalidTableError("the comment of the archive is damaged") from None
        return {}
    if not isinstance(content, dict) or not content.keys() & {"horizon", "metadata", "checksum"}:
        return {}
    if "checksum" in content and content["checksum"] != _checksum(content, archive):
        raise InvalidTableError("the comment of the archive does not match its checksum")
    return content


def _checksum(comment: Mapping[str, Any], archive: zipfile.ZipFile) -> str:
    """Of horizon and metadata, and of the arrays that they belong to."""
    members = sorted(identity(info) for info in archive.infolist())
    content = [comment.get("horizon"), comment.get("metadata"), members]
    return xxhash.xxh3_128(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
