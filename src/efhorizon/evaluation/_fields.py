"""Fields of files that others wrote: every value is checked, and an error names the file and the value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from efhorizon.errors import StoreError

MAX_FILE_BYTES = 1 << 28


def read_object(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file."""
    return parsed_object(read_text(path, what), str(path), what)


def read_text(path: Path, what: str) -> str:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise StoreError(f"{path}: {size:,} bytes are too many for {what}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise StoreError(f"{path}: not {what}: it is not text in UTF-8") from None


def parsed_object(text: str, where: str, what: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise StoreError(f"{where}: not {what}")
    return content


class Fields:
    """A JSON object with checked access. Optional fields may be null or missing."""

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self._content, self._where = content, where

    def text(self, name: str) -> str:
        value = self._content.get(name)
        if not isinstance(value, str) or not value:
            raise self._wrong(name, "a text")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._content.get(name) is None else self.text(name)

    def integer(self, name: str, *, least: int = 0) -> int:
        value = self._content.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(name, f"a whole number of at least {least}")
        return value

    def optional_integer(self, name: str, *, least: int = 0) -> int | None:
        return None if self._content.get(name) is None else self.integer(name, least=least)

    def number(self, name: str) -> float:
        value = self._content.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # NaN differs from itself
            raise self._wrong(name, "a number")
        return value

    def optional_number(self, name: str) -> float | None:
        return None if self._content.get(name) is None else self.number(name)

    def fields(self, name: str) -> Fields:
        return Fields(self.mapping(name), f"{self._where}: {name}")

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self._content.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def names(self) -> list[str]:
        return list(self._content)

    def _wrong(self, name: str, wanted: str) -> StoreError:
        value = repr(self._content.get(name))
        shown = value if len(value) <= 60 else f"{value[:60]}..."
        return StoreError(f"{self._where}: {name} must be {wanted}, not {shown}")
