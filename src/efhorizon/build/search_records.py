"""The two small files of a search, each with a checksum: what is searched, and how much of each other file counts."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from efhorizon.errors import StoreError
from efhorizon.io.decode import Count, Positive, Record, read_object, record_of

CONFIG, COMMIT = "config.json", "commit.json"
_WHAT = "the record of a search"
_BYTES_A_STATE = {"state_keys": 16, "state_screens": 4, "state_index": 16}
_BYTES_A_PAIR = {"transitions": 4, "rewards": 8}  # of an expanded state and an action
_OTHER_FILES = ("states", "screen_keys", "screen_index", "screens")
_BYTES_A_SCREEN = 16  # in its keys and its index
FILES = (*_BYTES_A_PAIR, *_BYTES_A_STATE, *_OTHER_FILES)

Entry = tuple[Count, Annotated[int, Meta(ge=0, lt=1 << 32)]]  # the length of a file and its CRC-32
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
_RecordT = TypeVar("_RecordT", bound=Record)


class Config(Record, frozen=True):
    """What is searched: simulator, versions, dictionaries. Written once."""

    provenance: dict[str, Any]
    num_actions: Positive
    screen_shape: tuple[Positive, Positive, Positive]
    state_dictionary: bytes
    screen_dictionary: bytes  # the start screen

    def __post_init__(self) -> None:
        if math.prod(self.screen_shape) != len(self.screen_dictionary):
            raise ValueError(f"the start screen has {len(self.screen_dictionary)} bytes, not {self.screen_shape}")


class Commit(Record, frozen=True):
    """How far a search has come, and the length and checksum of each of its files."""

    layer_starts: Annotated[list[Count], Meta(min_length=1)]
    num_expanded: Count
    seconds: Seconds
    files: dict[str, Entry]

    @property
    def is_begun(self) -> bool:
        """Whether the start state was committed."""
        return len(self.layer_starts) > 1

    @property
    def num_states(self) -> int:
        return self.files["state_screens"][0] // _BYTES_A_STATE["state_screens"]

    def __post_init__(self) -> None:
        if set(self.files) != set(FILES):
            raise ValueError(f"the files are {', '.join(sorted(self.files))[:200]}")
        sizes, starts = {name: size for name, (size, _) in self.files.items()}, self.layer_starts
        if not (
            all(sizes[name] == width * self.num_states for name, width in _BYTES_A_STATE.items())
            and sizes["screen_keys"] == sizes["screen_index"]
            and sizes["screen_keys"] % _BYTES_A_SCREEN == 0
            and starts[0] == 0
            and all(before < after for before, after in pairwise(starts))
            and starts[-2:][0] <= self.num_expanded <= starts[-1] <= self.num_states
            and self.is_begun == (self.num_states > 0)
        ):
            raise ValueError("the numbers do not fit together")


def read_commit(folder: Path) -> Commit | None:
    """The last commit of the search in a folder; None where none was begun."""
    if not (folder / COMMIT).exists():
        return None
    commit = _read(folder / COMMIT, Commit)
    return commit if commit.is_begun else None


def read_config(folder: Path, commit: Commit) -> Config:
    """What is searched in a folder, which must fit the commit."""
    config = _read(folder / CONFIG, Config)
    num_pairs = commit.num_expanded * config.num_actions
    if any(commit.files[name][0] != width * num_pairs for name, width in _BYTES_A_PAIR.items()):
        raise damaged(folder / COMMIT, f"the files do not fit {config.num_actions} actions")
    return config


def damaged(path: Path, what: str) -> StoreError:
    """What is wrong with a file of a search, and what to do about it."""
    return StoreError(f"{path}: {what}; the search is damaged: delete {path.parent} and run the same command again")


def _read(path: Path, kind: type[_RecordT]) -> _RecordT:
    try:
        return record_of(read_object(path, _WHAT), kind, str(path))
    except StoreError as error:
        raise damaged(path, str(error).removeprefix(f"{path}: ")) from None
