"""What a file says about its table besides the arrays, checked once on the way in; the rest may trust the types.

Unknown fields are kept as they are; known ones have these types or are refused.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from efhorizon.errors import InvalidTableError

_MAX_COUNT = 2**62
_LARGEST_FLOAT = 1.7976931348623157e308

_Name = Annotated[str, Meta(max_length=1000)]
_Count = Annotated[int, Meta(ge=0, le=_MAX_COUNT)]
_Number = Annotated[float, Meta(ge=-_LARGEST_FLOAT, le=_LARGEST_FLOAT)]


class _Difference(Struct, frozen=True):
    actions: list[int] = []
    what: str = ""
    expected: str = ""
    found: str = ""


class _Verification(Struct, frozen=True):
    verified: bool
    episodes: _Count
    steps: _Count
    screens_compared: bool
    optimal_return: _Number | None = None
    seconds: _Number | None = None
    difference: _Difference | None = None
    # Of what a table says, how much was replayed: older versions replayed episodes only, and did not count.
    exact: bool = False
    complete: bool = False
    pairs: _Count | None = None
    pairs_replayed: _Count = 0
    pairs_drawn: _Count | None = None
    next_states: _Count | None = None
    next_states_recognised: _Count | None = None
    states: _Count = 0
    states_replayed: _Count = 0
    raw_states: _Count | None = None
    raw_states_from_reset: _Count | None = None

    def __post_init__(self) -> None:
        if self.complete and not (self.pairs and self.raw_states and self.raw_states_from_reset is not None):
            raise ValueError("a complete verification counts pairs and raw states")


class _Provenance(Struct, frozen=True):
    suite: _Name | None = None
    arguments: dict[str, Any] | None = None
    replay: bool | None = None
    packages: dict[str, str | None] | None = None
    code: _Name | None = None
    rom_md5: _Name | None = None
    source: dict[str, str] | None = None  # of an environment that the user wrote: a digest for each file
    start: _Name | None = None


class _Inputs(Struct, frozen=True):
    search: _Name | None = None
    num_expanded: _Count | None = None
    horizon: _Count | None = None
    rule: _Name | None = None
    ignore_screens: bool | None = None
    code: _Name | None = None


class _Metadata(Struct, frozen=True):
    id: _Name | None = None
    suite: _Name | None = None
    game: _Name | None = None
    frameskip: _Count | None = None
    reward_factor: _Number = 1.0
    unshaped: _Name | None = None
    shaping: _Name | None = None
    difficulty: _Name | None = None
    level: int | None = None
    catalogue_name: _Name | None = None
    seed: _Count | None = None  # of an environment's reset; None: 0
    fixed_noise: bool | None = None
    screen_format: _Name = "rgb"
    picture_format: _Name | None = None
    observation: dict[str, Any] | None = None
    action_names: list[_Name] | None = None
    changes: list[dict[str, Any]] | None = None  # of a table that was made from another one: see transform/
    efhorizon: _Name | None = None
    provenance: _Provenance | None = None
    inputs: _Inputs | None = None
    num_states_raw: _Count | None = None
    closed: bool | None = None  # whether nothing was cut off at the horizon; None: older versions do not say
    degenerate: bool | None = None
    returns: tuple[_Number, _Number] | None = None
    verification: _Verification | None = None


def checked_metadata(content: object) -> dict[str, Any]:
    """The metadata of a table, if the fields that efhorizon reads are of their types."""
    try:
        if not isinstance(content, dict):
            raise msgspec.ValidationError("it is not a JSON object")
        msgspec.convert(content, _Metadata)
    except msgspec.ValidationError as error:
        raise InvalidTableError(f"the metadata is not as efhorizon writes it: {error}") from None
    return content
