"""One file from a remote, checked: its size before and while it comes, its SHA-256 at the end.

What has come of a file is kept under the name of its checksum, so that an interrupted download goes on where it
stopped, also in another process. What does not match is deleted: a wrong size, a wrong checksum, an answer that leads
to another host.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from efhorizon._version import __version__
from efhorizon.dataset.registry import FileEntry
from efhorizon.dataset.remote import Remote, RemoteError
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.files import open_regular

TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 20
_ATTEMPTS = 5  # in a row without a new byte
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_FULL, _PARTIAL, _NOT_SATISFIABLE, _NOT_FOUND = 200, 206, 416, 404

OnBytes = Callable[[int], None]
_Source = io.BufferedReader | http.client.HTTPResponse


class InterruptedDownloadError(EfhorizonError):
    """What has come is kept; the same call goes on."""


class RefusedError(StoreError):
    """What came is not what the registry says; nothing of it is kept."""


class MissingFileError(RemoteError):
    """The remote does not have the file."""


def small_file(remote: Remote, path: str, max_bytes: int) -> bytes:
    """All of a file whose size nobody knows yet."""
    where = _place(remote, path)
    try:
        with _opened(remote, path, 0) as (source, _, _):
            content = source.read(max_bytes + 1)
    except (OSError, http.client.HTTPException) as error:
        raise RemoteError(f"{where}: {_reason(error)}") from None
    if len(content) > max_bytes:
        raise RefusedError(f"{where}: more than {max_bytes:,} bytes; refused")
    return content


def fetch(remote: Remote, path: str, expected: FileEntry, partial: Path, on_bytes: OnBytes = lambda _: None) -> None:
    """Make `partial` the complete file; it goes on with what is there."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        resumed = _start(partial, expected)
        on_bytes(resumed)
        if _complete(remote, path, expected, partial, on_bytes):
            return
        if resumed:  # the beginning, from an earlier time, may be what is wrong
            partial.unlink()
            on_bytes(-expected.size)
            if _complete(remote, path, expected, partial, on_bytes):
                return
        raise RefusedError(f"{_place(remote, path)}: its SHA-256 is not what the registry says; refused")
    except RefusedError:
        partial.unlink(missing_ok=True)
        raise


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
    while (size := partial.stat().st_size if partial.exists() else 0) < expected.size or not partial.exists():
        try:
            _append(remote, path, expected, partial, size, on_bytes)
            failure = "the connection was closed"
        except (OSError, http.client.HTTPException) as error:
            failure = _reason(error)
        attempts = 0 if partial.exists() and partial.stat().st_size > size else attempts + 1
        is_done = partial.exists() and partial.stat().st_size == expected.size
        if attempts == _ATTEMPTS and not is_done:
            raise InterruptedDownloadError(
                f"{_place(remote, path)}: {failure}; {partial.stat().st_size if partial.exists() else 0:,} of "
                f"{expected.size:,} bytes are kept, the same command goes on"
            )
    return _sha256(partial) == expected.sha256


def _append(remote: Remote, path: str, expected: FileEntry, partial: Path, size: int, on_bytes: OnBytes) -> None:
    with _opened(remote, path, size) as (source, start, where):
        total = _announced(source, start, where)
        if total is not None and total != expected.size:
            raise RefusedError(f"{where}: {total:,} bytes, not the {expected.size:,} of the registry; refused")
        on_bytes(start - size)
        with partial.open("r+b" if partial.exists() else "wb", buffering=0) as file:  # a kill loses nothing
            file.seek(start)
            file.truncate()
            received = start
            while block := source.read1(min(_BLOCK, expected.size - received + 1)):  # what is there already
                if received + len(block) > expected.size:
                    raise RefusedError(f"{where}: more than the {expected.size:,} bytes of the registry; refused")
                file.write(block)
                received += len(block)
                on_bytes(len(block))
            os.fsync(file.fileno())


@contextmanager
def _opened(remote: Remote, path: str, start: int) -> Iterator[tuple[_Source, int, str]]:
    """A file's bytes from `start` or from its beginning, which of the two, and its place."""
    where = _place(remote, path)
    if remote.folder is not None:
        local = remote.file(path)
        if not remote.folder.is_dir():
            raise RemoteError(f"{remote.folder}: no such folder")
        if not local.exists():
            raise MissingFileError(f"{where}: not there")
        if not local.resolve().is_relative_to(remote.folder.resolve()):
            raise RefusedError(f"{where}: a link that leads out of the data set; refused")
        with open_regular(local, "a file of a data set") as file:
            file.seek(start)
            yield cast(io.BufferedReader, file), start, where
        return
    request = urllib.request.Request(where, headers={"User-Agent": f"efhorizon/{__version__}"})
    request.add_header("Accept-Encoding", "identity")
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        response = urllib.request.build_opener(_SameHost(remote)).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise _refused_by_server(error.code, where) from None
    except (OSError, http.client.HTTPException) as error:
        raise RemoteError(f"{where}: cannot be reached ({_reason(error)})") from None
    with response:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise RefusedError(f"{where}: comes packed, although that was not asked for; refused")
        yield response, _first_byte(response, start, where), where


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Answers that lead elsewhere are followed on the same host only, and where the remote itself keeps files."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not self._remote.allows(req.full_url, newurl):
            fp.close()
            raise RefusedError(f"{req.full_url}: leads to another host, {newurl[:200]}; refused")
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and (span := req.get_header("Range")):
            following.add_header("Range", span)
        return following


def _refused_by_server(code: int, where: str) -> EfhorizonError:
    if code == _NOT_FOUND:
        return MissingFileError(f"{where}: not there (404)")
    if code == _NOT_SATISFIABLE:
        return RefusedError(f"{where}: shorter than the registry says; refused")
    return RemoteError(f"{where}: the server answers {code}")


def _first_byte(response: http.client.HTTPResponse, start: int, where: str) -> int:
    """Where in the file an answer begins."""
    if response.status == _FULL:
        return 0
    span = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status != _PARTIAL or span is None or int(span[1]) != start:
        raise RefusedError(f"{where}: another part than was asked for ({response.status}); refused")
    return start


def _announced(source: _Source, start: int, where: str) -> int | None:
    """The size of the whole file, as far as it is said."""
    headers = getattr(source, "headers", None)
    if headers is None:
        return os.fstat(source.fileno()).st_size
    span = _RANGE.fullmatch(headers.get("Content-Range", ""))
    if span is not None and span[3] != "*":
        return int(span[3])
    length = headers.get("Content-Length")
    if length is None:
        return None
    if not length.isdecimal():
        raise RefusedError(f"{where}: says that it has {length[:40]!r} bytes; refused")
    return start + int(length)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _place(remote: Remote, path: str) -> str:
    return str(remote.file(path)) if remote.folder is not None else remote.url(path)


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, http.client.IncompleteRead):
        return "the connection was closed"
    if isinstance(inner, TimeoutError):
        return f"no answer within {TIMEOUT:.0f} seconds"
    return str(getattr(inner, "strerror", None) or inner)[:200] or type(inner).__name__
