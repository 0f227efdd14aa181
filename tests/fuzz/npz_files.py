"""Mutations of .npz: its arrays, the zip archive around them, the comment behind them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import lru_cache
from random import Random

from .json_files import changed_text
from .mutations import ANY_FILE, SPECIAL_FILES, Mutations, NotApplicableError, Target
from .npy_files import header_changed, joined, parts, pickled_array, values_changed

Members = dict[str, bytes]
Change = Callable[[Members, bytes, Random], tuple[bytes, str]]  # from members and comment to another archive

VALUES_CHANGED = "the checksums of the archive are those of the new content: another table, not a damaged one"
_BOMB_BLOCK, _BOMB_BLOCKS = 1 << 24, 192  # 3 GB of zeros
_END, _CENTRAL, _LOCAL = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_ARCHIVES = Mutations()


def read_zip(content: bytes) -> tuple[Members, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, archive.comment


def zipped(members: Members, comment: bytes = b"", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, method)
        archive.comment = comment[:65_535]
    return file.getvalue()


def _archive_change(*, may_differ: str = "", may_take_long: bool = False) -> Callable[[Change], Change]:
    def decorate(change: Change) -> Change:
        def apply(target: Target, rng: Random) -> str:
            content, what = change(*read_zip(target.file.read_bytes()), rng)
            target.file.write_bytes(content)
            return what

        apply.__name__ = change.__name__.strip("_")
        _ARCHIVES.add(may_differ=may_differ, may_take_long=may_take_long)(apply)
        return change

    return decorate


def _any(members: Members, rng: Random) -> str:
    return rng.choice(sorted(members))


@_archive_change()
def _array_header(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    name = _any(members, rng)
    members[name], what = header_changed(members[name], rng)
    return zipped(members, comment), f"{name}: {what}"


@_archive_change(may_differ=VALUES_CHANGED, may_take_long=True)
def _array_values(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    name = _any(members, rng)
    members[name], what = values_changed(members[name], rng)
    return zipped(members, comment), f"{name}: {what}"


@_archive_change()
def _pickled_member(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    name = _any(members, rng)
    members[name] = pickled_array()
    return zipped(members, comment), f"{name}: pickled objects"


@_archive_change(may_differ=VALUES_CHANGED)
def _member_missing(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    name = _any(members, rng)
    del members[name]
    return zipped(members, comment), f"{name} is missing"


@_archive_change(may_differ=VALUES_CHANGED, may_take_long=True)
def _members_swapped(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    one, other = _any(members, rng), _any(members, rng)
    members[one], members[other] = members[other], members[one]
    return zipped(members, comment), f"{one} and {other} changed places"


@_archive_change(may_differ=VALUES_CHANGED, may_take_long=True)
def _member_twice(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    name = _any(members, rng)
    second = members[name] if rng.random() < 0.5 else values_changed(members[name], rng)[0]
    entries = [_stored(each, data) for each, data in members.items()]
    return _raw_zip([*entries, _stored(name, second)], comment), f"{name} is there twice"


@_archive_change()
def _more_members(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    name = rng.choice(["more.npy", "../outside/x.npy", "/x.npy", "folder/", "x" * 60_000 + ".npy", "a\nb.npy", ".npy"])
    return zipped({**members, name: b"x"}, comment), f"a member {name[:40]!r}"


@_archive_change()
def _thousands_of_members(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    return zipped({**members, **{f"m{number}.npy": b"" for number in range(5_000)}}, comment), "5,000 more members"


@_archive_change()
def _other_compression(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    return zipped(members, comment, method), f"compression {method}"


def _patched(content: bytes, rng: Random, local: int, central: int, form: str, value: int) -> bytes:
    """The archive with one field of one member's headers changed, in both places where it is written."""
    patched = bytearray(content)
    at = struct.unpack_from("<I", content, content.rindex(_END) + 16)[0]
    entries = []
    while content[at : at + 4] == _CENTRAL:
        lengths = struct.unpack_from("<HHH", content, at + 28)
        entries.append((at, struct.unpack_from("<I", content, at + 42)[0]))
        at += 46 + sum(lengths)
    in_central, in_local = rng.choice(entries)
    struct.pack_into(form, patched, in_central + central, value)
    if rng.random() < 0.8:
        struct.pack_into(form, patched, in_local + local, value)
    return bytes(patched)


@_archive_change()
def _encrypted(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    return _patched(zipped(members, comment), rng, 6, 8, "<H", rng.choice([1, 65, 9])), "a member is encrypted, it says"


@_archive_change()
def _unknown_compression(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    method = rng.choice([0, 1, 9, 12, 14, 93, 95, 99, 65_535])
    return _patched(zipped(members, comment), rng, 8, 10, "<H", method), f"compression {method}, it says"


@_archive_change()
def _wrong_checksum(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    return _patched(zipped(members, comment), rng, 14, 16, "<I", rng.getrandbits(32)), "a wrong checksum"


@_archive_change()
def _wrong_size(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    size = rng.choice([0, 1, 2**31, 2**32 - 2, 2**32 - 1])
    local, central, what = rng.choice([(18, 20, "packed"), (22, 24, "unpacked")])
    return _patched(zipped(members, comment), rng, local, central, "<I", size), f"{size} bytes {what}, it says"


@_archive_change()
def _other_flags(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    local, central, form, what = rng.choice(
        [(4, 6, "<H", "version needed"), (6, 8, "<H", "flags"), (10, 12, "<I", "time")]
    )
    value = rng.getrandbits(16)
    return _patched(zipped(members, comment), rng, local, central, form, value), f"{what} {value}"


@_archive_change()
def _comment_changed(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    if not comment:
        raise NotApplicableError
    text, what = changed_text(comment.decode(), rng)
    return zipped(members, text.encode()), f"comment: {what}"


@_archive_change()
def _comment_damaged(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    if not comment:
        raise NotApplicableError
    place = rng.randrange(len(comment))
    other = rng.choice([comment[:place], comment[:place] + b"\xff" + comment[place:], b"[" * 60_000, comment * 2])
    return zipped(members, other), f"comment: {other[:40]!r} and so on"


@_archive_change(may_differ="the comment says the horizon; a file without one has that of its name or longest episode")
def _comment_of_another_tool(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    other = rng.choice([b"", b"made by another tool", b"[1, 2]", b"null", b'{"other": 1}', b"\xff\xfe"])
    return zipped(members, other), f"comment: {other!r}"


@_archive_change(may_differ="the comment is that of an older file, which had no checksum")
def _comment_of_an_older_file(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    content = json.loads(comment) if comment else {"horizon": 10, "metadata": {}}
    old = {name: content[name] for name in ("horizon", "metadata") if name in content}
    text, what = changed_text(json.dumps(old), rng)
    return zipped(members, text.encode()), f"an older file's comment: {what}"


@_archive_change(may_differ="the comment is that of an older file, which had no checksum")
def _absurd_horizon(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    horizon = rng.choice([0, -1, 1.5, True, "9", None, 10**6, 2**31, 2**63, 10**400, [], {}])
    name = rng.choice(["x", "../outside/x", "/dev/x", "\x1b[31m", "[/bold]", 3, None, ["a"], "=1+1"])
    text = json.dumps({"horizon": horizon, "metadata": {"id": name, "suite": "minigrid"}})
    return zipped(members, text.encode()), f"horizon {str(horizon)[:30]}, id {name!r}"


@_archive_change()
def _something_before(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    return b"#!/bin/sh\n" + zipped(members, comment), "text before the archive"


@_archive_change()
def _another_format(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    return rng.choice([members[_any(members, rng)], b"\x1f\x8b" + bytes(30), b"PK\x05\x06" + bytes(18)]), "no archive"


@lru_cache(maxsize=1)
def _zeros() -> tuple[bytes, int]:
    """3 GB of zeros, packed, and their checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(_BOMB_BLOCK)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(_BOMB_BLOCKS):
        checksum = zlib.crc32(block, checksum)
    return packed + again * (_BOMB_BLOCKS - 1) + packer.flush(), checksum


@_archive_change(may_differ=VALUES_CHANGED)
def _bomb(members: Members, comment: bytes, rng: Random) -> tuple[bytes, str]:
    """A member that unpacks to 3 GB, with or without a header that agrees."""
    name = _any(members, rng)
    packed, checksum = _zeros()
    version, header, _ = parts(members[name])
    if rng.random() < 0.5:
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({_BOMB_BLOCK * _BOMB_BLOCKS},)}}"
    start = joined(version, header, b"")
    whole = b"\x00" + struct.pack("<HH", len(start), len(start) ^ 0xFFFF) + start + packed  # the header as it is
    size = len(start) + _BOMB_BLOCK * _BOMB_BLOCKS
    entries = [_stored(each, data) for each, data in members.items() if each != name]
    return _raw_zip([*entries, (name, 8, whole, checksum, size)], comment), f"{name} unpacks to {size:,} bytes"


_Entry = tuple[str, int, bytes, int, int]  # name, method, packed data, checksum, unpacked size


def _stored(name: str, data: bytes) -> _Entry:
    return name, 0, data, zlib.crc32(data), len(data)


def _raw_zip(entries: list[_Entry], comment: bytes) -> bytes:
    """An archive as `zipfile` would never write it."""
    file, directory = io.BytesIO(), b""
    for name, method, packed, checksum, size in entries:
        encoded = name.encode()
        about = struct.pack("<HHHHIIIHH", 0, method, 0, 33, checksum, len(packed), size, len(encoded), 0)
        place = struct.pack("<HHHII", 0, 0, 0, 0, file.tell())
        directory += _CENTRAL + struct.pack("<HH", 20, 20) + about + place + encoded
        file.write(_LOCAL + struct.pack("<H", 20) + about + encoded + packed)
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), file.tell(), len(comment))
    return file.getvalue() + directory + _END + end + comment


NPZ = Mutations(_ARCHIVES, _ARCHIVES, ANY_FILE, SPECIAL_FILES)
