"""Whether the arrays of a table go together, by what their headers say: before any of their data is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from efhorizon.errors import InvalidTableError

_KINDS = {  # numpy's letters for types, for each array of either layout
    "transitions": "iu",
    "rewards": "iufb",
    "reward_codes": "u",
    "reward_values": "f",
    "screen_mapping": "iu",
    "picture_mapping": "iu",
    "base_states": "iu",
    "prev_state_mapping": "iu",
    "state_lengths": "iu",
    "state_offsets": "iu",
    "unexplored": "b",
}
_BYTES = ("screens", "pictures", "states", "state_bytes")
_TOGETHER = (
    ("screens", "screen_mapping"),
    ("pictures", "picture_mapping"),
    ("states", "state_lengths"),
    ("state_bytes", "state_offsets"),
)


class Declared(Protocol):
    """An array whose header has been read."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...


def check_shapes(arrays: Mapping[str, Declared]) -> None:
    """Refuse arrays that cannot be one table."""
    for one, other in _TOGETHER:
        if (one in arrays) != (other in arrays):
            raise InvalidTableError(f"{one} and {other} must both be given; one of them is missing")
    for name, array in arrays.items():
        is_right = array.dtype == np.uint8 if name in _BYTES else array.dtype.kind in _KINDS[name]
        if not is_right:
            raise InvalidTableError(f"{name} cannot be of type {array.dtype}")
    shape = arrays["transitions"].shape
    if len(shape) != 2 or min(shape) < 1:
        raise InvalidTableError(f"transitions must have shape [states, actions], both at least 1; got {shape}")
    num_states = shape[0]
    if num_states > np.iinfo(np.int32).max:
        raise InvalidTableError(f"{num_states} states do not fit in 32-bit indices")
    for name, expected in {
        "rewards": shape,
        "reward_codes": shape,
        "picture_mapping": (num_states,),
        "base_states": (num_states,),
        "prev_state_mapping": (num_states,),
        "state_lengths": (num_states,),
        "state_offsets": (num_states + 1,),
        "unexplored": (num_states,),
    }.items():
        if name in arrays and arrays[name].shape != expected:
            raise InvalidTableError(f"{name} must have shape {expected}, as transitions have {shape}")
    stacked = _check_screens(arrays, num_states)
    for name in ("base_states", "prev_state_mapping"):
        if name in arrays and not stacked:
            raise InvalidTableError(f"{name} belongs to frame stacks, which this table does not have")
    for name, axes, meaning in (
        ("pictures", 4, "[P, H, W, C]"),
        ("states", 2, "[S, L]"),
        ("state_bytes", 1, "[B]"),
        ("reward_values", 1, "[R]"),
    ):
        if name in arrays and len(arrays[name].shape) != axes:
            raise InvalidTableError(f"{name} must have shape {meaning}, got {arrays[name].shape}")
    if "states" in arrays and arrays["states"].shape[0] != num_states:
        raise InvalidTableError(f"there are {num_states} states but {arrays['states'].shape[0]} raw states")


def _check_screens(arrays: Mapping[str, Declared], num_states: int) -> bool:
    """Whether a state is seen as a stack of frames; grey frames of stacks may lack the axis of colours."""
    if "screens" not in arrays:
        return False
    mapping, screens = arrays["screen_mapping"].shape, arrays["screens"].shape
    stacked = len(mapping) == 2 and mapping[1] > 0
    if mapping != ((num_states, mapping[1]) if stacked else (num_states,)):
        raise InvalidTableError(f"screen_mapping must have shape {(num_states,)}, or a row of frames for each state")
    if len(screens) != 4 and not (stacked and len(screens) == 3):
        raise InvalidTableError(f"screens must have shape [N, H, W, C], got {screens}")
    return stacked
