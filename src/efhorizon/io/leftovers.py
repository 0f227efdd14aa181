"""What processes that were killed have left beside the files that they were writing.

A file is written aside under a name that says which process does it: `.NAME.efh-PLACE-PID.tmp`. PLACE stands for this
machine, since it was started, and for the container: folders may be shared between machines, and a process number
means nothing elsewhere. What a dead process of this place has left is removed at once. What comes from elsewhere is
removed once nothing in it has changed for a day, and so is what an older version left of the same file
(`.NAME.PID.tmp`).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Literal

import psutil
import xxhash

_LONG_AGO = 24 * 3600.0  # seconds; whoever writes a table changes something in it every few minutes
_NAME = re.compile(r"\.(?P<name>.+)\.efh-(?P<place>[0-9a-f]{16})-(?P<pid>[0-9]{1,10})\.(?P<kind>tmp|old)", re.DOTALL)
_OLDER_NAME = re.compile(r"\.(?P<name>.+)\.(?P<pid>[0-9]{1,10})\.(?P<kind>tmp|old)", re.DOTALL)
_of_older_versions: dict[str, dict[str, list[Path]]] = {}  # by folder and name, of folders that were looked at


def aside(path: Path, kind: Literal["tmp", "old"]) -> Path:
    """Where this process puts what will become `path`, or what it replaces."""
    return path.with_name(f".{path.name}.efh-{_place()}-{os.getpid()}.{kind}")


def remove(folder: Path, name: str) -> None:
    """Remove what dead processes have left in a folder; looks once per folder and process, and never fails.

    `name` is the file that is about to be written: what older versions left of it is removed too.
    """
    key = str(folder.absolute())
    if key not in _of_older_versions:
        _of_older_versions[key] = _by_name(folder, _OLDER_NAME)
        for path in chain.from_iterable(_by_name(folder, _NAME).values()):
            _remove_if_left_over(path)
    for path in _of_older_versions[key].pop(name, []):
        _remove_if_left_over(path)


def _by_name(folder: Path, pattern: re.Pattern[str]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for match in filter(None, (pattern.fullmatch(entry.name) for entry in entries)):
            found.setdefault(match["name"], []).append(folder / match[0])
    return found


def _remove_if_left_over(path: Path) -> None:
    with suppress(OSError):  # another process may do the same
        if _is_left_over(path):
            _discard(path)


def _is_left_over(path: Path) -> bool:
    made = _NAME.fullmatch(path.name)
    if made is not None and made["place"] == _place():
        pid = int(made["pid"])
        return pid != os.getpid() and not psutil.pid_exists(pid)
    return time.time() - _last_change(path) > _LONG_AGO


def _last_change(path: Path) -> float:
    latest = path.lstat().st_mtime
    for folder, _, files in os.walk(path):
        latest = max(latest, os.lstat(folder).st_mtime, *(os.lstat(Path(folder, file)).st_mtime for file in files))
    return latest


def _discard(path: Path) -> None:
    """Remove it, unless it is the only version that is left: then it goes back to its place."""
    made = _NAME.fullmatch(path.name) or _OLDER_NAME.fullmatch(path.name)
    assert made is not None
    original = path.with_name(made["name"])
    if made["kind"] == "old" and not os.path.lexists(original):
        path.rename(original)
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@cache
def _place() -> str:
    """Where process numbers mean the same: this machine, since it was started, and this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:  # not Linux
        boot, namespace = str(int(psutil.boot_time())), ""
    return xxhash.xxh3_64_hexdigest(f"{platform.node()} {boot} {namespace}".encode())
