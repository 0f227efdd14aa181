"""One command in a forked child of a warm process, with limits on time, memory and what it may write.

A fork takes milliseconds where a fresh interpreter takes seconds. What the product starts in processes of its own
(`verify`, the workers of a search) is forked as well, for the same reason.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 10.0
GROWTH = 1 << 30  # bytes of memory beyond what the intact file takes
_ROOM = 3 << 30  # bytes of address space at which a child gets no more: it must not harm the machine
_LARGEST_FILE = 1 << 28
_SHOWN = 1 << 20  # bytes of output that are looked at
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {  # audit events that change the file system, and which of their arguments are paths
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # None: by a signal
    signal: int | None
    stdout: str
    stderr: str
    seconds: float
    memory: int  # bytes, at its peak
    timed_out: bool
    wrote: tuple[str, ...]  # paths outside the case's folder


def run_in_child(call: Callable[[], int], folder: Path, *, seconds: float = SECONDS) -> Ended:
    """Run `call` in a child whose working directory is `folder`/cwd; it may write in `folder` only."""
    logs = {name: folder / name for name in ("stdout", "stderr", "wrote")}
    descriptors = {name: os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600) for name, path in logs.items()}
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(call, folder, descriptors, seconds)
    watched = os.pidfd_open(child)
    timed_out = not select.select([watched], [], [], seconds + 0.5)[0]
    os.close(watched)
    if timed_out:
        os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    took = time.monotonic() - began
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # what it has left behind
    texts = {}
    for name, descriptor in descriptors.items():
        texts[name] = os.pread(descriptor, _SHOWN, 0).decode("utf-8", "backslashreplace")
        os.close(descriptor)
        logs[name].unlink()
    return Ended(
        code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        stdout=texts["stdout"],
        stderr=texts["stderr"],
        seconds=took,
        memory=usage.ru_maxrss * 1024,
        timed_out=timed_out,
        wrote=tuple(dict.fromkeys(texts["wrote"].splitlines())),
    )


def _run(call: Callable[[], int], folder: Path, descriptors: dict[str, int], seconds: float) -> None:
    """The child's life; does not return."""
    code = 70
    try:
        os.setsid()
        os.chdir(folder / "cwd")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(descriptors["stdout"], 1)
        os.dup2(descriptors["stderr"], 2)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rww"))
        faulthandler.dump_traceback_later(seconds, file=2)  # where it hangs
        _limit()
        forking()
        sys.addaudithook(_watcher(folder, descriptors["wrote"]))
        try:
            code = call()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


_context = multiprocessing.get_context


def forking() -> None:
    """From now on, processes that the product starts are forks of this one."""
    multiprocessing.get_context = lambda method=None: _context("fork")  # type: ignore[assignment, misc]


def _limit() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + _ROOM
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))


def _watcher(folder: Path, log: int) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that notes every path outside the folder that Python writes to."""
    allowed = (f"{folder.resolve()}{os.sep}", os.devnull, "/proc/self/")

    def note(path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a descriptor: it was noted as it was opened
        name = os.path.abspath(os.fsdecode(path))
        parent, base = os.path.split(name)
        real = os.path.join(os.path.realpath(parent), base)
        if not real.startswith(allowed) and "__pycache__" not in real and ".cache/efhorizon" not in real:
            os.write(log, f"{real!r}\n".encode())

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            note(os.path.realpath(os.fsdecode(arguments[0])) if isinstance(arguments[0], str | bytes) else arguments[0])
        elif event in _CHANGES:
            for place in _CHANGES[event]:
                note(arguments[place])

    return hook
