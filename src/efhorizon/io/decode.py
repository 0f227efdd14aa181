"""From JSON that may come from anywhere to a record: an error names the file, the field and what is wrong with it.

Numbers are decoded by Python itself, since sample complexities are integers of up to 4,300 digits; msgspec then checks
every field and makes the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from efhorizon.errors import StoreError
from efhorizon.io.files import read_bytes

MAX_FILE_BYTES = 1 << 28
MAX_ITEMS = 100_000  # of any list in a record
_LARGEST_FLOAT = 1.7976931348623157e308  # NaN and infinity are not between its negative and itself

Finite = Annotated[float, Meta(ge=-_LARGEST_FLOAT, le=_LARGEST_FLOAT)]
Number = int | Finite  # integers may be larger than any float
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(min_length=1)]

_LONGEST_SHOWN = 60  # characters of a value that is wrong
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "int | float": "a number",
    "int | float | array": "a number or [low, high]",
    "str": "a text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
_EXPECTED = re.compile(r"Expected `(?P<kind>[^`]+?)(?: \| null)?`(?P<limit>[^`]*?)(?:, got .*)?")
_PLACE = re.compile(r"(?P<message>.*?)(?: - at `(?P<key>key` in `)?\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")

_RecordT = TypeVar("_RecordT")


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record that is read and written again: an unknown field would be lost, so it is refused."""


def read_text(path: Path, what: str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The text of a file that is not larger than a file of its kind can be."""
    try:
        return read_bytes(path, what, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StoreError(f"{path}: not {what}: it is not text in UTF-8") from None


def json_object(text: str, where: str, what: str) -> dict[str, Any]:
    """The JSON object that a text is."""
    try:
        content = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise StoreError(f"{where}: not {what}")
    return content


def record_of(content: object, kind: type[_RecordT], where: str) -> _RecordT:
    """The record of this kind that plain content makes, every field of it checked."""
    try:
        return msgspec.convert(content, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise StoreError(f"{where}: {_explained(str(error), content, kind)}") from None


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """A record in the types of JSON, its fields in their order."""
    content: dict[str, Any] = msgspec.to_builtins(record, str_keys=True, enc_hook=_python_number)
    return content


def _python_number(value: object) -> float:
    if isinstance(value, np.floating):
        return float(value)
    raise NotImplementedError(f"{type(value)} in a record")


def _explained(text: str, content: object, kind: type[Any]) -> str:
    """msgspec's message in the words of the other messages: `protocol: max_steps must be a text, not 3`."""
    found = _PLACE.fullmatch(text)
    assert found is not None  # everything in it is optional
    message, path = found["message"], _steps(found["path"] or "", content, kind)
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", message):
        return f"{_joined([*path, missing[1]])} is missing"
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL):
        return _after(path, f"a field that this version of efhorizon does not know: {unknown[1][:_LONGEST_SHOWN]}")
    expected = _EXPECTED.fullmatch(message)
    if expected is None:  # a record's own words
        return _after(path, message)
    if found["key"]:
        return f"the names in {_joined(path)} must each be {_KINDS.get(expected['kind'], expected['kind'])}"
    value = repr(_value(content, path))
    shown = value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}..."
    return f"{_joined(path)} must be {_wanted(expected['kind'], expected['limit'].strip())}, not {shown}"


def _wanted(kind: str, limit: str) -> str:
    name = _KINDS.get(kind, kind)
    if kind == "float" and limit:
        return "a finite number"
    if limit.startswith(">= "):
        return f"{name} of at least {limit[3:]}"
    if limit == "of length >= 1":
        return f"{name} of at least 1 character"
    if length := re.fullmatch(r"of length (<= )?(\d+)", limit):
        return f"{name} of {'at most ' if length[1] else ''}{int(length[2]):,}"
    return name


def _steps(path: str, content: object, kind: type[Any]) -> list[str | int]:
    """The way to a field. msgspec does not say which entry of a mapping is wrong: it is the one that fails alone."""
    steps: list[str | int] = []
    for name, place in _STEP.findall(path):
        if place != "...":
            steps.append(name or int(place))
            continue
        entries = _value(content, steps)
        assert isinstance(entries, Mapping)
        before = len(steps)
        steps += [key for key, entry in entries.items() if _fails(content, kind, steps, {key: entry})][:1]
        if len(steps) == before:
            break
    return steps


def _fails(content: object, kind: type[Any], steps: list[str | int], entries: Mapping[str, Any]) -> bool:
    """Whether the content is wrong in this mapping if it has these entries only."""
    try:
        msgspec.convert(_replaced(content, steps, entries), kind, str_keys=True)
    except msgspec.ValidationError as error:
        names = [name or place for name, place in _STEP.findall(str(error))]
        return names[: len(steps) + 1] == [*map(str, steps), "..."]
    return False


def _replaced(content: Any, steps: list[str | int], value: object) -> Any:
    if not steps:
        return value
    first, *rest = steps
    if isinstance(content, list):
        return [_replaced(item, rest, value) if place == first else item for place, item in enumerate(content)]
    return {**content, first: _replaced(content[first], rest, value)}


def _value(content: Any, steps: list[str | int]) -> Any:
    for step in steps:
        content = content[step]
    return content


def _after(path: list[str | int], text: str) -> str:
    return f"{_joined(path)}: {text}" if path else text


def _joined(path: list[str | int]) -> str:
    """deciding: actions[0]: q"""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f"{': ' if text else ''}{step[:_LONGEST_SHOWN]}"
    return text or "the content"


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not valid JSON")
