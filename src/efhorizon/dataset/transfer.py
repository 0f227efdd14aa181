"""One file from a remote, checked: its size before and while it comes, its SHA-256 at the end.

What has come of a file is kept under the name of its checksum, so that an interrupted download continues where it
stopped, also in another process. What does not match is deleted: a wrong size, a wrong checksum, an answer that leads
to another host. A connection that fails is tried again a few times, with growing pauses.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from efhorizon.dataset.answers import (
    FAILURES,
    RefusedError,
    Source,
    UnreachableError,
    answer,
    place,
    reason,
)
from efhorizon.dataset.registry import FileEntry
from efhorizon.dataset.remote import Remote, RemoteError
from efhorizon.errors import EfhorizonError, StoreError

PAUSES = (0.2, 0.5, 1.0, 2.0)  # seconds before another attempt, after attempts in a row that brought nothing new
_BLOCK = 1 << 20

OnBytes = Callable[[int], None]


class InterruptedDownloadError(EfhorizonError):
    """What has come is kept; the same call continues."""


def small_file(remote: Remote, path: str, max_bytes: int) -> bytes:
    """All of a file whose size nobody knows yet."""
    where = place(remote, path)
    for pause in (*PAUSES, None):
        failure = "the connection was closed"
        try:
            with answer(remote, path, 0) as found:
                content = b"" if (found.total or 0) > max_bytes else found.source.read(max_bytes + 1)
            if max(len(content), found.total or 0) > max_bytes:
                raise RefusedError(f"{where}: more than {max_bytes:,} bytes; refused")
            if found.total in (None, len(content)):
                return content
        except UnreachableError:
            if pause is None:
                raise
        except FAILURES as error:
            failure = reason(error)
        time.sleep(pause or 0)
    raise RemoteError(f"{where}: {failure}")


def fetch(remote: Remote, path: str, expected: FileEntry, partial: Path, on_bytes: OnBytes = lambda _: None) -> None:
    """Make `partial` the complete file; it goes on with what is there. An OSError is the disk's, not the network's."""
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        resumed = _start(partial, expected)
        on_bytes(resumed)
        if _complete(remote, path, expected, partial, on_bytes):
            return
        if resumed:  # the beginning, from an earlier time, may be what is wrong
            partial.unlink()
            on_bytes(-expected.size)
            if _complete(remote, path, expected, partial, on_bytes):
                return
        raise RefusedError(f"{place(remote, path)}: its SHA-256 is not what the registry says; refused")
    except RefusedError:
        partial.unlink(missing_ok=True)
        raise
    finally:
        if partial.is_file() and not partial.is_symlink() and not partial.stat().st_size and expected.size:
            partial.unlink()


def _start(partial: Path, expected: FileEntry) -> int:
    """How many bytes are there already."""
    if partial.is_symlink() or (partial.exists() and not partial.is_file()):
        raise StoreError(f"{partial}: not a plain file; remove it")
    size = partial.stat().st_size if partial.exists() else 0
    if size > expected.size:
        partial.unlink()
        size = 0
    free = shutil.disk_usage(partial.parent).free
    if expected.size - size > free:
        raise EfhorizonError(f"{partial.parent}: {expected.size - size:,} bytes are needed, {free:,} are free")
    return size


def _complete(remote: Remote, path: str, expected: FileEntry, partial: Path, on_bytes: OnBytes) -> bool:
    """Fetch what is missing; whether the whole has the right checksum."""
    attempts = 0
    with partial.open("r+b" if partial.exists() else "w+b", buffering=0) as file:  # a kill loses nothing
        while (size := _size(file)) < expected.size:
            failure = _append(remote, path, expected, file, on_bytes)
            if _size(file) == expected.size:
                break
            attempts = 0 if _size(file) > size else attempts + 1
            if attempts > len(PAUSES):
                raise InterruptedDownloadError(
                    f"{place(remote, path)}: {failure}; {_size(file):,} of {expected.size:,} bytes are kept, "
                    "the same command continues"
                )
            time.sleep(PAUSES[attempts - 1] if attempts else 0)
        os.fsync(file.fileno())
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest() == expected.sha256


def _append(remote: Remote, path: str, expected: FileEntry, file: io.FileIO, on_bytes: OnBytes) -> str:
    """Add what one connection brings; returns why it ended."""
    size, where = _size(file), place(remote, path)
    try:
        with answer(remote, path, size) as found:
            if found.total is not None and found.total != expected.size:
                raise RefusedError(
                    f"{where}: {found.total:,} bytes, not the {expected.size:,} of the registry; refused"
                )
            on_bytes(found.start - size)
            file.seek(found.start)
            file.truncate()
            received = found.start
            while block := _block(found.source, expected.size - received + 1):
                received += len(block)
                if received > expected.size:
                    raise RefusedError(f"{where}: more than the {expected.size:,} bytes of the registry; refused")
                _write(file, block)
                on_bytes(len(block))
    except UnreachableError as error:
        return str(error).removeprefix(f"{where}: ")
    except _BrokenError as error:
        return str(error)
    return "the connection was closed"


class _BrokenError(Exception):
    """A connection failed; in contrast to the disk."""


def _block(source: Source, most: int) -> bytes:
    """What is there already."""
    try:
        return source.read1(min(_BLOCK, most))
    except FAILURES as error:
        raise _BrokenError(reason(error)) from None


def _write(file: io.FileIO, block: bytes) -> None:
    rest = memoryview(block)
    while rest:  # a disk that is nearly full takes a part
        rest = rest[file.write(rest) :]


def _size(file: io.FileIO) -> int:
    return os.fstat(file.fileno()).st_size
