"""Mutations: what is done to a file. Those of each format are in modules of their own; these fit any file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

HUGE = 1 << 36  # bytes of a sparse file: more than any file of ours, and than the memory of most machines
_SPLICED = 64  # bytes, at most, that are put in or taken out


class NotApplicableError(Exception):
    """This file has nothing that the mutation could change."""


@dataclass(frozen=True)
class Target:
    """The file of a case that is damaged."""

    file: Path
    likewise: list[Path]  # other files of the same kind
    outside: Path  # a folder in which nothing may be written


Apply = Callable[[Target, Random], str]  # what was done, for people


@dataclass(frozen=True)
class Mutation:
    name: str
    apply: Apply
    may_differ: str = ""  # why another result is legitimate; empty: it is not
    may_take_long: bool = False  # whether it makes another valid table, whose analysis may take any time


class Mutations:
    """The mutations of a format, in the order in which they were added."""

    def __init__(self, *others: Mutations) -> None:
        self._all = [mutation for other in others for mutation in other]

    def add(self, *, may_differ: str = "", may_take_long: bool = False) -> Callable[[Apply], Apply]:
        def decorate(apply: Apply) -> Apply:
            self._all.append(Mutation(apply.__name__, apply, may_differ, may_take_long))
            return apply

        return decorate

    def __iter__(self) -> Iterator[Mutation]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Mutation:
        return self._all[number]


ANY_FILE = Mutations()
SPECIAL_FILES = Mutations()


def flipped_bit(target: Target, rng: Random) -> str:
    """One bit of a file, anywhere."""
    content = bytearray(target.file.read_bytes())
    if not content:
        raise NotApplicableError
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    content[place] ^= 1 << bit
    target.file.write_bytes(content)
    return f"bit {bit} of byte {place} of {len(content)}"


@ANY_FILE.add()
def cut_short(target: Target, rng: Random) -> str:
    content = target.file.read_bytes()
    length = rng.randrange(len(content)) if content else 0
    target.file.write_bytes(content[:length])
    return f"{length} of {len(content)} bytes are left"


@ANY_FILE.add()
def emptied(target: Target, rng: Random) -> str:
    target.file.write_bytes(b"")
    return "no byte is left"


@ANY_FILE.add()
def bytes_put_in(target: Target, rng: Random) -> str:
    content = target.file.read_bytes()
    place, more = rng.randrange(len(content) + 1), rng.randbytes(rng.randint(1, _SPLICED))
    target.file.write_bytes(content[:place] + more + content[place:])
    return f"{len(more)} bytes put in at {place}"


@ANY_FILE.add()
def bytes_taken_out(target: Target, rng: Random) -> str:
    content = target.file.read_bytes()
    if not content:
        raise NotApplicableError
    place, length = rng.randrange(len(content)), rng.randint(1, _SPLICED)
    target.file.write_bytes(content[:place] + content[place + length :])
    return f"{length} bytes taken out at {place}"


@ANY_FILE.add()
def block_of_zeros(target: Target, rng: Random) -> str:
    content = bytearray(target.file.read_bytes())
    if not content:
        raise NotApplicableError
    place, length = rng.randrange(len(content)), rng.choice([1, 16, 512, len(content)])
    content[place : place + length] = bytes(len(content[place : place + length]))
    target.file.write_bytes(content)
    return f"zeros from byte {place}, {length} of them at most"


@ANY_FILE.add()
def noise(target: Target, rng: Random) -> str:
    content = rng.randbytes(rng.choice([1, 100, 10_000]))
    target.file.write_bytes(content)
    return f"{len(content)} random bytes instead"


@ANY_FILE.add()
def bytes_behind_the_end(target: Target, rng: Random) -> str:
    more = rng.choice([b"\n", b"\0", b"}", b"x" * 1000])
    with target.file.open("ab") as file:
        file.write(more)
    return f"{len(more)} bytes behind the end"


@SPECIAL_FILES.add()
def missing(target: Target, rng: Random) -> str:
    target.file.unlink()
    return "the file is missing"


@SPECIAL_FILES.add()
def fifo(target: Target, rng: Random) -> str:
    target.file.unlink()
    os.mkfifo(target.file)
    return "a pipe that nobody writes to"


@SPECIAL_FILES.add()
def folder_instead(target: Target, rng: Random) -> str:
    target.file.unlink()
    target.file.mkdir()
    return "a folder of that name"


@SPECIAL_FILES.add()
def circle_of_links(target: Target, rng: Random) -> str:
    target.file.unlink()
    target.file.symlink_to(target.file.name)
    return "a link to itself"


@SPECIAL_FILES.add()
def endless_device(target: Target, rng: Random) -> str:
    device = rng.choice(["/dev/zero", "/dev/urandom"])
    target.file.unlink()
    target.file.symlink_to(device)
    return f"a link to {device}"


@SPECIAL_FILES.add()
def unreadable(target: Target, rng: Random) -> str:
    target.file.chmod(0)
    return "nobody may read it"


@SPECIAL_FILES.add()
def sparse_and_huge(target: Target, rng: Random) -> str:
    behind = rng.random() < 0.5
    with target.file.open("r+b" if behind else "wb") as file:
        file.truncate(HUGE)
    return f"{HUGE:,} bytes, {'nearly all' if behind else 'all'} of them zero"


@SPECIAL_FILES.add()
def broken_link(target: Target, rng: Random) -> str:
    target.file.unlink()
    target.file.symlink_to(target.outside / "nothing")
    return "a link to nothing"


def other_of_the_kind(target: Target, rng: Random) -> str:
    """Two files of the same kind change places."""
    if not target.likewise:
        raise NotApplicableError
    other = rng.choice(target.likewise)
    aside = target.file.with_name(target.file.name + ".aside")
    target.file.rename(aside)
    other.rename(target.file)
    aside.rename(other)
    return f"changed places with {other.name}"


def copy_of_another(target: Target, rng: Random) -> str:
    """A file is overwritten with another one of the same kind."""
    if not target.likewise:
        raise NotApplicableError
    other = rng.choice(target.likewise)
    shutil.copyfile(other, target.file)
    return f"overwritten with a copy of {other.name}"
