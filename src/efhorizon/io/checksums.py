"""A checksum inside a JSON object, of everything else in it. Older files have none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xxhash

from efhorizon.errors import StoreError

_KEY = "checksum"


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its checksum."""
    return {**content, _KEY: _checksum(content)}


def without_checksum(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The content without its checksum, which must be right if it is there."""
    rest = {name: value for name, value in content.items() if name != _KEY}
    if _KEY in content and content[_KEY] != _checksum(rest):
        raise StoreError(f"{where}: not what was written")
    return rest


def _checksum(content: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(content, sort_keys=True).encode())
