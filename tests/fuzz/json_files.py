"""Mutations of JSON: one field at a time, by its value, its type or its place; and of the text around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from .mutations import ANY_FILE, SPECIAL_FILES, Mutations, NotApplicableError, Target

ABSURD_NUMBERS = (
    *("0", "-1", "-0.0", "0.5", "1e39", "1e308", "1e400", "-1e400", "1e-400", "NaN", "Infinity", "-Infinity"),
    *("1000000", "2147483648", "4294967296", "8589934592", "9223372036854775807", "9223372036854775808"),
    *("1" + "0" * 30,),
    *("9" * 400, "-" + "9" * 400, "9" * 5000, "true", "false"),
)
OTHER_TYPES = ("null", "true", "0", "1.5", '""', '"x"', "[]", "{}", "[null]", '{"a": 1}', "[[1]]")
HOSTILE_TEXTS = (
    *("\x1b[31mred\x1b[0m", "a\nb\nc", "\x00", "\x07\x08", "\ud800", "\u202egnp.exe", "[/bold]", "[red]", "{0}%s%n"),
    *("=1+1", "+1", "-1", "@SUM(A1)", "<script>alert(1)</script>", "../outside/x", "OUTSIDE/x", "/dev/stdout"),
    *("", " ", ".", "..", "a/b", "é" * 300, "x" * 1_000_000),
)
_TOKEN = "@@{}@@"  # stands for text that json.dumps would not write

Place = tuple[Any, Any]  # a container and a key in it
Change = Callable[[Any, Random], tuple[dict[str, str], str]]  # raw text by token, and what was done

CHANGES: list[Change] = []


def change(function: Change) -> Change:
    CHANGES.append(function)
    return function


def changed_text(text: str, rng: Random, which: int | None = None, outside: Path | None = None) -> tuple[str, str]:
    """A JSON text with one thing changed, and what it was."""
    content = json.loads(text)
    raw, what = (rng.choice(CHANGES) if which is None else CHANGES[which % len(CHANGES)])(content, rng)
    indent = 1 if "\n" in text.strip() else None
    changed = json.dumps(content, indent=indent)
    for token, replacement in raw.items():
        changed = changed.replace(f'"{token}"', replacement)
    return changed.replace("OUTSIDE", str(outside)), what


def places(content: Any) -> list[tuple[str, Place]]:
    """Every field of a JSON document, with its way from the top."""
    found: list[tuple[str, Place]] = []
    waiting = [("", content)]
    while waiting:
        way, container = waiting.pop()
        entries = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in list(entries):
            found.append((f"{way}/{key}", (container, key)))
            if isinstance(value, dict | list):
                waiting.append((f"{way}/{key}", value))
    return found


def _chosen(content: Any, rng: Random, wanted: Callable[[Any], bool] = lambda _: True) -> tuple[str, Place]:
    """Any field; half of the time one near the top, where few fields decide much."""
    found = [(way, place) for way, place in places(content) if wanted(place[0][place[1]])]
    top = [each for each in found if each[0].count("/") <= 2]
    if not found:
        raise NotApplicableError
    return rng.choice(top if top and rng.random() < 0.5 else found)


def _put(content: Any, rng: Random, text: str, wanted: Callable[[Any], bool] = lambda _: True) -> tuple[Any, str]:
    way, (container, key) = _chosen(content, rng, wanted)
    container[key] = _TOKEN.format(0)
    return {_TOKEN.format(0): text}, f"{way[-80:]} is {text[:40]}"


@change
def _absurd_number(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    return _put(content, rng, rng.choice(ABSURD_NUMBERS), lambda value: isinstance(value, int | float))


@change
def _hostile_text(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    return _put(content, rng, json.dumps(rng.choice(HOSTILE_TEXTS)), lambda value: isinstance(value, str))


@change
def _other_type(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    return _put(content, rng, rng.choice(OTHER_TYPES))


@change
def _slightly_other_value(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    """Plausible, and so the most dangerous of all."""
    way, (container, key) = _chosen(content, rng, lambda value: isinstance(value, int | float | str) and value != "")
    value = container[key]
    if isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, str):
        place = rng.randrange(len(value))
        container[key] = value[:place] + rng.choice("abc019") + value[place + 1 :]
    else:
        container[key] = rng.choice([value + 1, 2 * value, -value, value / 2])
    return {}, f"{way[-80:]} is {str(container[key])[:40]} instead of {str(value)[:40]}"


@change
def _field_missing(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    way, (container, key) = _chosen(content, rng)
    del container[key]
    return {}, f"{way[-80:]} is missing"


@change
def _unknown_field(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    objects = [content, *(place[0][place[1]] for _, place in places(content))]
    container = rng.choice([each for each in objects if isinstance(each, dict)])
    name = rng.choice(["unknown", "__class__", "a\nb", "x" * 10_000, "\x1b[2J", "id "])
    container[name] = rng.choice([1, None, "x", [1], {}])
    return {}, f"an unknown field {name[:20]!r}"


@change
def _key_twice(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    found = [(way, place) for way, place in places(content) if isinstance(place[0], dict)]
    if not found:
        raise NotApplicableError
    way, (container, key) = rng.choice(found)
    container[_TOKEN.format(0)] = _TOKEN.format(1)
    value = rng.choice([json.dumps(container[key]), "null", "1", '"x"'])
    return {_TOKEN.format(0): json.dumps(key), _TOKEN.format(1): value}, f"{way[-80:]} is there twice"


@change
def _values_swapped(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    one, (container, key) = _chosen(content, rng, lambda value: not isinstance(value, dict | list))
    other, (second, name) = _chosen(content, rng, lambda value: not isinstance(value, dict | list))
    container[key], second[name] = second[name], container[key]
    return {}, f"{one[-60:]} and {other[-60:]} changed places"


@change
def _deep_nesting(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    depth = rng.choice([200, 100_000])
    left, right = rng.choice([("[", "]"), ('{"a":', "}")])
    raw, what = _put(content, rng, left * depth + "1" + right * depth)
    return raw, f"{what[:80]}, {depth} deep"


@change
def _list_changed(content: Any, rng: Random) -> tuple[dict[str, str], str]:
    way, (container, key) = _chosen(content, rng, lambda value: isinstance(value, list) and bool(value))
    items = container[key]
    change = rng.choice(["one less", "one twice", "none", "reversed", "200,000 items"])
    container[key] = {
        "one less": items[:-1],
        "one twice": [*items, items[0]],
        "none": [],
        "reversed": items[::-1],
        "200,000 items": (items * 200_000)[:200_000],
    }[change]
    return {}, f"{way[-80:]}: {change}"


TEXT = Mutations()


def _text_change(name: str, change: Callable[[str, Random], bytes]) -> None:
    def apply(target: Target, rng: Random) -> str:
        target.file.write_bytes(change(target.file.read_text(encoding="utf-8"), rng))
        return name

    apply.__name__ = name.replace(" ", "_")
    TEXT.add()(apply)


def _somewhere(text: str, more: str, rng: Random) -> bytes:
    place = rng.randrange(len(text) + 1)
    return (text[:place] + more + text[place:]).encode()


_text_change("a byte order mark", lambda text, rng: b"\xef\xbb\xbf" + text.encode())
_text_change("UTF-16", lambda text, rng: text.encode("utf-16"))
_text_change("a control character", lambda text, rng: _somewhere(text, rng.choice("\x00\x01\x1b\x7f"), rng))
_text_change("bytes that are not UTF-8", lambda text, rng: text.encode().replace(b"e", b"\xff", rng.randint(1, 3)))
_text_change("a lone surrogate in UTF-8", lambda text, rng: text.encode().replace(b"e", b"\xed\xa0\x80", 1))
_text_change("the text twice", lambda text, rng: (text + text).encode())
_text_change("all in a list", lambda text, rng: f"[{text}]".encode())
_text_change("something else", lambda text, rng: rng.choice(["null", "1", '"x"', "[]", "{}", "NaN", " "]).encode())
_text_change("nothing but brackets", lambda text, rng: rng.choice("[{").encode() * rng.choice([10, 1_000_000]))
_text_change("a hundred megabytes of blanks", lambda text, rng: b" " * (100 << 20) + text.encode())


FIELDS = Mutations()


def _field_change(number: int, change: Change) -> None:
    def apply(target: Target, rng: Random) -> str:
        text, what = changed_text(target.file.read_text(encoding="utf-8"), rng, number, target.outside)
        target.file.write_text(text, encoding="utf-8")
        return what

    apply.__name__ = change.__name__.strip("_")
    FIELDS.add()(apply)


for _number, _change in enumerate(CHANGES):
    _field_change(_number, _change)

JSON = Mutations(FIELDS, FIELDS, TEXT, ANY_FILE, SPECIAL_FILES)  # fields twice as often: that is where mistakes are
LINES = Mutations(TEXT, ANY_FILE, SPECIAL_FILES)  # of other texts
