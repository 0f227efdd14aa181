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
    "state_lengths": "iu",
    "state_offsets": "iu",
    "unexplored": "b",
}
_BYTES = ("screens", "states", "state_bytes")
_TOGETHER = (("screens", "screen_mapping"), ("states", "state_lengths"), ("state_bytes", "state_offsets"))


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
        "screen_mapping": (num_states,),
        "state_lengths": (num_states,),
        "state_offsets": (num_states + 1,),
        "unexplored": (num_states,),
    }.items():
        if name in arrays and arrays[name].shape != expected:
            raise InvalidTableError(f"{name} must have shape {expected}, as transitions have {shape}")
    for name, axes, meaning in (
        ("screens", 4, "[N, H, W, C]"),
        ("states", 2, "[S, L]"),
        ("state_bytes", 1, "[B]"),
        ("reward_values", 1, "[R]"),
    ):
        if name in arrays and len(arrays[name].shape) != axes:
            raise InvalidTableError(f"{name} must have shape {meaning}, got {arrays[name].shape}")
    if "states" in arrays and arrays["states"].shape[0] != num_states:
        raise InvalidTableError(f"there are {num_states} states but {arrays['states'].shape[0]} raw states")
