"""How the observations of any Gymnasium space lie in a table: bytes that give back exactly what the environment showed.

A layout describes a space as JSON and is part of a table's metadata, so that observations can be read without the
environment. It has five kinds of parts:

    numbers   Box and MultiBinary: the numbers as they are, in their own type
    choices   Discrete and MultiDiscrete: one small unsigned integer each, counted from the first value
    words     Text, and every space that is not listed here: UTF-8, padded with zeros; long texts end with a digest
    named     Dict, its parts in the order of the space
    listed    Tuple

An observation that is one array of bytes with two or three axes is stored as it is, [H, W, C]. All others become one
row of bytes, [1, n, 1]. `observation_reader` turns both into what networks read.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import gymnasium
import msgspec
import numpy as np
from gymnasium import spaces
from msgspec import Meta, Struct
from numpy.typing import NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.suites.simulator import Screen, SimulatorError

METADATA = "observation"  # where the metadata of a table has its layout
LONGEST_WORDS = 200  # bytes
_DIGEST_BYTES = 8
_LEAST_PICTURE_SIDE = 16  # smaller arrays of bytes are read as numbers, not seen as pictures
_MOST_CHANNELS = 4  # of a picture whose colours come first
_SHOWN_NUMBERS, _SHOWN_CHARACTERS = 24, 400  # of an observation, for people

_Size = Annotated[int, Meta(ge=0, lt=2**40)]
_Shape = Annotated[list[_Size], Meta(max_length=32)]


class Numbers(Struct, frozen=True, tag="numbers", tag_field="kind", forbid_unknown_fields=True):
    """An array of numbers."""

    dtype: str
    shape: _Shape

    def __post_init__(self) -> None:
        if np.dtype(self.dtype).kind not in "biuf":
            raise ValueError(f"{self.dtype} is not a type of numbers")


class Choices(Struct, frozen=True, tag="choices", tag_field="kind", forbid_unknown_fields=True):
    """One of several values, or an array of such; `starts` are the first values."""

    counts: list[Annotated[int, Meta(ge=1, le=2**63 - 1)]]
    starts: list[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]]
    shape: _Shape  # [] for a single value

    def __post_init__(self) -> None:
        if not len(self.counts) == len(self.starts) == math.prod(self.shape):
            raise ValueError("counts, starts and shape do not go together")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type that holds every value."""
        return np.min_scalar_type(max(self.counts, default=1) - 1).newbyteorder("<")


class Words(Struct, frozen=True, tag="words", tag_field="kind", forbid_unknown_fields=True):
    """A text."""

    size: Annotated[int, Meta(ge=1, le=4 * LONGEST_WORDS)]


class Named(Struct, frozen=True, tag="named", tag_field="kind", forbid_unknown_fields=True):
    """Parts with names."""

    names: list[str]
    parts: list[Layout]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.parts):
            raise ValueError("names and parts do not go together")


class Listed(Struct, frozen=True, tag="listed", tag_field="kind", forbid_unknown_fields=True):
    """Parts in order."""

    parts: list[Layout]


Layout = Numbers | Choices | Words | Named | Listed


@dataclass(frozen=True)
class Leaf:
    """A part that has no parts, and where its bytes are."""

    name: str  # such as inventory.keys
    layout: Numbers | Choices | Words
    start: int
    stop: int


def layout_of_space(space: gymnasium.Space[Any]) -> Layout:
    """The layout of a Gymnasium space."""
    if isinstance(space, spaces.Discrete):
        return Choices([int(space.n)], [int(space.start)], [])
    if isinstance(space, spaces.MultiDiscrete):
        counts, starts = np.asarray(space.nvec), np.broadcast_to(space.start, np.shape(space.nvec))
        return Choices(counts.ravel().tolist(), starts.ravel().tolist(), list(counts.shape))
    if isinstance(space, spaces.MultiBinary):
        return Numbers("|u1", list(space.shape))
    if isinstance(space, spaces.Box) and space.dtype.kind in "biuf":
        return Numbers(space.dtype.newbyteorder("<").str, list(space.shape))
    if isinstance(space, spaces.Dict):
        return Named(list(space.spaces), [layout_of_space(part) for part in space.spaces.values()])
    if isinstance(space, spaces.Tuple):
        return Listed([layout_of_space(part) for part in space.spaces])
    if isinstance(space, spaces.Text):
        return Words(max(1, min(4 * int(space.max_length), LONGEST_WORDS)))
    return Words(LONGEST_WORDS)


def layout_as_json(layout: Layout) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(layout)
    return content


def stored_layout(metadata: Mapping[str, Any]) -> Layout | None:
    """The layout that a table's metadata has; None where it has none."""
    content = metadata.get(METADATA)
    if content is None:
        return None
    try:
        layout: Layout = msgspec.convert(content, Layout)
        return layout
    except (msgspec.ValidationError, RecursionError, TypeError) as error:
        raise InvalidTableError(f"the table does not say what its observations are: {error}") from None


def leaves(layout: Layout) -> list[Leaf]:
    """All parts that have no parts themselves, in the order of their bytes."""
    found: list[Leaf] = []
    for name, part in _named_leaves(layout, ""):
        start = found[-1].stop if found else 0
        found.append(Leaf(name, part, start, start + _num_bytes(part)))
    return found


def is_array_of_bytes(layout: Layout) -> bool:
    """Whether observations are stored as they are."""
    return isinstance(layout, Numbers) and np.dtype(layout.dtype) == np.uint8 and len(layout.shape) in (2, 3)


def screen_of(layout: Layout, observation: Any) -> Screen:
    """An observation as it is stored [H, W, C]."""
    stored = _encoded(layout, observation)
    if is_array_of_bytes(layout):
        assert isinstance(layout, Numbers)
        height, width, *channels = layout.shape
        return np.frombuffer(stored, np.uint8).reshape(height, width, *(channels or [1]))
    return np.frombuffer(stored or b"\0", np.uint8).reshape(1, -1, 1)


def value_of(layout: Layout, screen: Screen) -> Any:
    """A stored observation in plain Python types, which JSON has: dicts, lists, numbers and texts."""
    return _decoded(layout, np.ascontiguousarray(screen).tobytes(), 0)[0]


def readable(layout: Layout, screen: Screen) -> str:
    """A stored observation in one line; of large arrays only the shape."""
    text = _shown(value_of(layout, screen))
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def picture_of(layout: Layout, screen: Screen) -> Screen | None:
    """A stored observation as an image [H, W, 1 or 3] for people; None where it is not a picture."""
    if not is_array_of_bytes(layout):
        return None
    image = colours_last(screen)
    if min(image.shape[:2]) < _LEAST_PICTURE_SIDE:
        return None
    return image if image.shape[2] in (1, 3) else image[:, :, -1:] if image.shape[2] != 4 else image[:, :, :3]


def colours_last(image: Screen) -> Screen:
    """An image [H, W, C], also where it was given as [C, H, W]."""
    is_first = image.shape[0] <= _MOST_CHANNELS < min(image.shape[1:])
    return np.moveaxis(image, 0, 2) if is_first else image


def _named_leaves(layout: Layout, name: str) -> Iterator[tuple[str, Numbers | Choices | Words]]:
    if isinstance(layout, Named | Listed):
        names = layout.names if isinstance(layout, Named) else list(map(str, range(len(layout.parts))))
        for own, part in zip(names, layout.parts, strict=True):
            yield from _named_leaves(part, f"{name}.{own}" if name else own)
    else:
        yield name, layout


def _num_bytes(layout: Numbers | Choices | Words) -> int:
    if isinstance(layout, Words):
        return layout.size
    return np.dtype(layout.dtype).itemsize * math.prod(layout.shape)


def _encoded(layout: Layout, observation: Any) -> bytes:
    """The bytes of an observation; refused in one line where it is not what its space says."""
    try:
        if isinstance(layout, Named):
            return b"".join(_encoded(part, observation[n]) for n, part in zip(layout.names, layout.parts, strict=True))
        if isinstance(layout, Listed):
            return b"".join(_encoded(part, own) for part, own in zip(layout.parts, observation, strict=True))
        if isinstance(layout, Words):
            return _text_bytes(observation if isinstance(observation, str) else _shown(_plain(observation)), layout)
        return _number_bytes(layout, np.asarray(observation))
    except SimulatorError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise _misfit(observation, f"{type(error).__name__}: {error}") from None


def _number_bytes(layout: Numbers | Choices, given: NDArray[Any]) -> bytes:
    dtype, offset = np.dtype(layout.dtype), np.array(getattr(layout, "starts", 0), np.int64)
    if given.size != math.prod(layout.shape):
        raise _misfit(given, f"its shape is {given.shape}, not {tuple(layout.shape)}")
    given = given.reshape(layout.shape)
    offset = offset.reshape(layout.shape) if isinstance(layout, Choices) else offset
    with np.errstate(invalid="ignore", over="ignore"):  # compared below
        stored = (given - offset if isinstance(layout, Choices) else given).astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(stored.astype(np.int64) + offset if offset.any() else stored, given):
        raise _misfit(given, "it has values outside the space")
    return stored.tobytes()


def _misfit(observation: Any, why: str) -> SimulatorError:
    shown = " ".join(str(observation).split())
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return SimulatorError(f"the observation {shown} is not in the environment's observation_space: {why}")


def _text_bytes(text: str, layout: Words) -> bytes:
    content = text.encode()
    if len(content) > layout.size:
        digest = hashlib.sha256(content).hexdigest()[: 2 * _DIGEST_BYTES].encode()
        content = content[: max(0, layout.size - len(digest))] + digest
        content = content[-layout.size :]
    return content.ljust(layout.size, b"\0")


def _decoded(layout: Layout, stored: bytes, start: int) -> tuple[Any, int]:
    """The value whose bytes begin at `start`, and where they end."""
    if isinstance(layout, Named | Listed):
        values = []
        for part in layout.parts:
            value, start = _decoded(part, stored, start)
            values.append(value)
        return (dict(zip(layout.names, values, strict=True)) if isinstance(layout, Named) else values), start
    stop = start + _num_bytes(layout)
    if stop > len(stored):
        raise InvalidTableError(f"an observation has {len(stored)} bytes, fewer than the table says")
    own = stored[start:stop]
    if isinstance(layout, Words):
        return own.rstrip(b"\0").decode(errors="replace"), stop
    numbers: NDArray[Any] = np.frombuffer(own, layout.dtype).reshape(layout.shape)
    if isinstance(layout, Choices):
        numbers = numbers.astype(np.int64) + np.array(layout.starts, np.int64).reshape(layout.shape)
    return numbers.tolist(), stop


def _plain(value: Any) -> Any:
    """Whatever an unknown space gives, in plain types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_shown(own)}" for key, own in value.items()) + "}"
    if isinstance(value, list):
        size, shape = _size(value)
        if size > _SHOWN_NUMBERS:
            return f"<{' x '.join(map(str, shape))} values>"
        return "[" + ", ".join(map(_shown, value)) + "]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _size(value: Sequence[Any]) -> tuple[int, list[int]]:
    """How many numbers nested lists hold, and their shape where they are an array."""
    shape, inner = [], value
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None  # type: ignore[assignment]
    return math.prod(shape), shape
