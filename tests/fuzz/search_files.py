"""Mutations of a search's binary files: bytes, and numbers forged so that the checksum in commit.json is right."""

from __future__ import annotations

import json
import zlib
from random import Random

import numpy as np

from .mutations import (
    ANY_FILE,
    SPECIAL_FILES,
    Mutations,
    NotApplicableError,
    Target,
    copy_of_another,
    other_of_the_kind,
)

FORGED = "the checksum is that of the changed file: a search that somebody else made"
_NUMBERS = Mutations()


def _numbers(target: Target) -> np.ndarray:
    dtype = {"rewards": "<f8", "transitions": "<i4", "state_screens": "<i4"}.get(target.file.name, "<i8")
    content = target.file.read_bytes()
    if len(content) % np.dtype(dtype).itemsize or not content:
        raise NotApplicableError
    return np.frombuffer(content, dtype).copy()


def _changed(target: Target, rng: Random) -> str:
    numbers = _numbers(target)
    place = rng.randrange(len(numbers))
    value = rng.choice([0, 1, -1, -2, 7, 10**6, 2**31 - 1, -(2**31)])
    numbers[place] = value
    target.file.write_bytes(numbers.tobytes())
    return f"number {place} of {len(numbers)} is {value}"


@_NUMBERS.add()
def number_changed(target: Target, rng: Random) -> str:
    return _changed(target, rng)


def _commit(target: Target) -> None:
    """Say in commit.json that the file is as it should be."""
    file = target.file.with_name("commit.json")
    commit = json.loads(file.read_text())
    if not isinstance(commit.get("files", {}).get(target.file.name), list):
        raise NotApplicableError
    content = target.file.read_bytes()
    commit["files"][target.file.name][:2] = [len(content), zlib.crc32(content)]
    commit.pop("checksum", None)  # as in a search of an older version
    file.write_text(json.dumps(commit))


@_NUMBERS.add(may_differ=FORGED)
def number_forged(target: Target, rng: Random) -> str:
    what = _changed(target, rng)
    _commit(target)
    return f"forged: {what}"


@_NUMBERS.add(may_differ=FORGED)
def length_forged(target: Target, rng: Random) -> str:
    content = target.file.read_bytes()
    length = rng.choice([0, 4, 16, len(content) // 2, len(content) - 1, max(0, len(content) - 16)])
    target.file.write_bytes(content[:length])
    _commit(target)
    return f"forged: {length} of {len(content)} bytes"


_NUMBERS.add()(copy_of_another)
_NUMBERS.add()(other_of_the_kind)

SEARCH = Mutations(_NUMBERS, _NUMBERS, ANY_FILE, SPECIAL_FILES)
