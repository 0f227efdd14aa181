"""Files that are either complete or not there: write aside, fsync, rename; and reading with a limit."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from efhorizon.errors import StoreError
from efhorizon.io import leftovers

_HERE, _RENAME_EXCHANGE = -100, 2  # AT_FDCWD and the flag of renameat2, from linux/fs.h


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place once the block has ended without an error.

    For files and folders. What was at `path` stays until then, and an error leaves nothing behind. What processes that
    were killed have left in the folder is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    leftovers.remove(path.parent, path.name)
    temporary = leftovers.aside(path, "tmp")
    _remove(temporary)
    try:
        yield temporary
        _fsync_tree(temporary)
        if path.is_dir() and not path.is_symlink():  # a folder cannot be renamed over another
            _exchange(temporary, path)
            _remove(temporary)
        else:
            temporary.replace(path)
        _fsync(path.parent)
    except BaseException:
        _remove(temporary)
        raise


def open_regular(path: Path, what: str) -> BinaryIO:
    """A regular file, opened for reading; never waits for a pipe or a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path}: not {what}: it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, what: str, max_bytes: int) -> bytes:
    """All of a regular file that is not larger than a file of its kind can be."""
    with open_regular(path, what) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise StoreError(f"{path}: {size:,} bytes are too many for {what} (at most {max_bytes:,})")
        try:
            return file.read(size)
        except OSError as error:
            raise StoreError(f"{path}: cannot be read ({error.strerror})") from None


def write_json(path: Path, content: Any) -> None:
    """Replace a small JSON file in one step."""
    with written_aside(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1))


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders: in one step if the system can, so that a kill never leaves neither in place."""
    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    if exchange is not None and exchange(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return
    aside = leftovers.aside(other, "old")
    _remove(aside)
    other.rename(aside)
    one.rename(other)
    aside.rename(one)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _fsync_tree(path: Path) -> None:
    if path.is_dir():
        for child in path.iterdir():
            _fsync_tree(child)
    _fsync(path)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
