"""Checksums of whole files: one inside the file, or a list of them beside it.

A file that carries its own checksum (SHA-256, 64 hexadecimal digits) was hashed with 64 zeros in that place, so every
byte of it is covered. Files that other programs read line by line have theirs in checksums.txt, as `sha256sum` writes
and compares it. A list goes before its files are replaced and comes back after them: a process that is killed in
between leaves files without a list, which count as those of older versions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from efhorizon.errors import StoreError
from efhorizon.io.files import read_bytes, written_aside

LIST = "checksums.txt"
BLANK = "0" * 64  # in the place of a checksum that is not known yet
_MAX_LIST_BYTES = 1 << 16
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_-][A-Za-z0-9_.-]*)")


def sealed(content: bytes) -> bytes:
    """Content with its checksum in the place of the last blank."""
    before, blank, after = content.rpartition(BLANK.encode())
    assert blank, "no place for the checksum"
    return before + _digest(content).encode() + after


def check_sealed(content: bytes, checksum: object, where: str) -> None:
    """Refuse content that is not what its own checksum says."""
    given = checksum.encode(errors="replace") if isinstance(checksum, str) else b""
    before, found, after = content.rpartition(given) if given else (b"", b"", b"")
    if not found or _digest(before + BLANK.encode() + after) != checksum:
        raise StoreError(f"{where}: damaged: its content is not what its checksum says")


def read_listed(path: Path, what: str, max_bytes: int) -> bytes:
    """All of a file, compared with the list of checksums beside it where that has it."""
    content = read_bytes(path, what, max_bytes)
    listed = _listed(path.parent)
    if path.name in listed and listed[path.name] != _digest(content):
        raise StoreError(f"{path}: damaged or changed: its content is not what {path.parent / LIST} says")
    return content


def write_listed(folder: Path, files: Mapping[str, bytes | None]) -> list[Path]:
    """Write files and the list of their checksums; None removes a file. Returns the paths of what is there now."""
    (folder / LIST).unlink(missing_ok=True)
    written = {name: content for name, content in files.items() if content is not None}
    for name in files.keys() - written.keys():
        (folder / name).unlink(missing_ok=True)
    text = "".join(f"{_digest(content)}  {name}\n" for name, content in sorted(written.items()))
    for name, content in {**written, LIST: text.encode()}.items():
        with written_aside(folder / name) as temporary:
            temporary.write_bytes(content)
    return [folder / name for name in (*written, LIST)]


def _listed(folder: Path) -> dict[str, str]:
    """Checksums by the names of files, all of which are there; none where there is no list."""
    path, what = folder / LIST, "a list of checksums"
    if not path.exists():
        return {}
    remedy = f"; without it the files in {folder} are read unchecked"
    found = {}
    for line in read_bytes(path, what, _MAX_LIST_BYTES).decode(errors="replace").splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise StoreError(f"{path}: not {what}: {line[:80]!r}{remedy}")
        if not (folder / match[2]).exists():
            raise StoreError(f"{path}: lists {match[2]}, which is not there{remedy}")
        found[match[2]] = match[1]
    return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
