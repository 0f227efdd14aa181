"""Plain Python values as JSON and back, without loss and without pickle.

Arguments of environments go into files, and so does what an environment's own `get_state` returns. JSON has no tuples,
bytes, sets or arrays: these are written as an object with one key, such as {"__tuple__": [1, 2]}.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from efhorizon.suites.simulator import SimulatorError


class NotPlainError(SimulatorError):
    """A value that is more than numbers, texts, lists, tuples, dicts, sets, bytes and arrays."""


def as_json(value: Any) -> Any:
    """A plain value as JSON."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"__float__": repr(value)}
    if kind is list:
        return [as_json(item) for item in value]
    if kind is tuple:
        return {"__tuple__": [as_json(item) for item in value]}
    if kind in (set, frozenset):
        items = sorted((as_json(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
        return {f"__{kind.__name__}__": items}
    if kind in (bytes, bytearray):
        return {"__bytes__": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return _mapping_as_json(value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSU":
        array = np.asarray(value)
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        name = "__array__" if isinstance(value, np.ndarray) else "__number__"
        return {name: [array.dtype.str, list(array.shape), data]}
    raise NotPlainError(f"{kind.__name__} is not a plain value: numbers, texts, lists, tuples, dicts and arrays are")


def from_json(content: Any) -> Any:
    """The value that `as_json` was given."""
    if isinstance(content, list):
        return [from_json(item) for item in content]
    if not isinstance(content, dict):
        return content
    if len(content) == 1:
        ((tag, inner),) = content.items()
        if tag in _READERS:
            return _READERS[tag](inner)
    return {key: from_json(item) for key, item in content.items()}


def as_bytes(value: Any) -> bytes:
    """A plain value as bytes; bytes stay as they are, but for one byte in front."""
    if type(value) is bytes:
        return b"b" + value
    return b"j" + json.dumps(as_json(value), separators=(",", ":")).encode()


def from_bytes(data: bytes) -> Any:
    """The value that `as_bytes` was given."""
    if data[:1] == b"b":
        return data[1:]
    try:
        return from_json(json.loads(data[1:]))
    except (ValueError, TypeError, KeyError) as error:
        raise SimulatorError(f"not a state of this environment ({error})") from None


def _mapping_as_json(value: Mapping[Any, Any]) -> Any:
    if all(type(key) is str and not key.startswith("__") for key in value):
        return {key: as_json(item) for key, item in value.items()}
    return {"__dict__": [[as_json(key), as_json(item)] for key, item in value.items()]}


def _array(content: Any) -> Any:
    dtype, shape, data = content
    return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()


_READERS: dict[str, Callable[[Any], Any]] = {
    "__float__": float,
    "__tuple__": lambda items: tuple(from_json(item) for item in items),
    "__set__": lambda items: {from_json(item) for item in items},
    "__frozenset__": lambda items: frozenset(from_json(item) for item in items),
    "__bytes__": base64.b64decode,
    "__dict__": lambda pairs: {from_json(key): from_json(item) for key, item in pairs},
    "__array__": _array,
    "__number__": lambda content: _array(content)[()],
}
