"""From JSON that may come from anywhere to a record: an error names the file, the field and what is wrong with it.

Numbers are decoded by Python itself, since sample complexities are integers of up to 4,300 digits; msgspec then checks
every field and makes the record. A file that is one record carries a checksum as its last field; files of older
versions have none.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from efhorizon.errors import StoreError
from efhorizon.io.checksums import BLANK, check_sealed, sealed
from efhorizon.io.files import read_bytes, written_aside

MAX_TEXT = 16 << 20  # characters of a file; JSON may take twenty times as many bytes of memory
MAX_ITEMS = 100_000  # of any list in a record
LARGEST_FLOAT = 1.7976931348623157e308  # NaN and infinity are not between its negative and itself
LARGEST_INTEGER = (1 << 63) - 1
_LARGEST_EXACT = 1 << 53  # larger integers are not all floats

Finite = Annotated[float, Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]
Number = Annotated[int, Meta(ge=-_LARGEST_EXACT, le=_LARGEST_EXACT)] | Finite
Probability = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
LargeNumber = int | Finite  # what bounds say: integers may be larger than any float
LargePositive = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(min_length=1)]

_CHECKSUM = "checksum"
_MOST_LEVELS = 20  # of content that is not described by a record
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

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_RecordT = TypeVar("_RecordT")


class _WrongError(ValueError):
    """What is wrong with a text that is JSON otherwise."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record that is read and written again: an unknown field would be lost, so it is refused."""


def read_object(path: Path, what: str) -> dict[str, Any]:
    """The JSON object that a file holds, without its checksum, which is compared."""
    content = read_bytes(path, what, MAX_TEXT)
    found = json_object(text_of(content, path, what), str(path), what)
    if _CHECKSUM in found:
        check_sealed(content, found.pop(_CHECKSUM), str(path))
    return found


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Write a record and its checksum as a file, in one step."""
    with written_aside(path) as temporary:
        temporary.write_bytes(encoded_record(record))


def encoded_record(record: msgspec.Struct) -> bytes:
    """The content of a file that holds a record and its checksum."""
    return sealed(json.dumps({**plain(record), _CHECKSUM: BLANK}, indent=1).encode())


def text_of(content: bytes, path: Path, what: str) -> str:
    """The text that a file holds."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StoreError(f"{path}: not {what}: it is not text in UTF-8") from None


def json_object(text: str, where: str, what: str) -> dict[str, Any]:
    """The JSON object that a text is. A name may not come twice, and every text can be written to a file."""
    if len(text) > MAX_TEXT:
        raise StoreError(f"{where}: not {what}: {len(text):,} characters are too many")
    try:
        content = json.loads(text, parse_constant=_refuse, object_pairs_hook=_named_once)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = f": {error}" if isinstance(error, _WrongError) else ""
        reason = ": a text in it is not valid Unicode" if isinstance(error, UnicodeEncodeError) else reason
        raise StoreError(f"{where}: not {what}{reason}") from None
    if not isinstance(content, dict):
        raise StoreError(f"{where}: not {what}")
    return content


def record_of(content: object, kind: type[_RecordT], where: str) -> _RecordT:
    """The record of this kind that plain content makes, every field of it checked."""
    try:
        return msgspec.convert(content, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise StoreError(f"{where}: {_explained(str(error), content, kind)}") from None


def is_shallow(value: object, levels: int = _MOST_LEVELS) -> bool:
    """Whether content of any kind is nested so little that it can be written again."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(is_shallow(item, levels - 1) for item in inside if isinstance(item, dict | list))


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
    if bound := re.fullmatch(r"([<>])= (-?\d+)", limit):
        return f"{name} of at {'most' if bound[1] == '<' else 'least'} {int(bound[2]):,}"
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
    raise _WrongError(f"{constant} is not a number in JSON")


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _WrongError(f"{twice[:_LONGEST_SHOWN]!r} comes twice in it")
    return found
