"""One answer of a remote: a file's bytes from some place on, and what the answer says about them.

Nothing in an answer is trusted: sizes, ranges and redirects are compared or refused, and every way in which a server
can fail ends in one of the errors here.
"""

from __future__ import annotations

import http.client
import io
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

from efhorizon._version import __version__
from efhorizon.dataset.remote import Remote, RemoteError
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.files import open_regular

TIMEOUT = 30.0  # seconds without a byte
FAILURES = (OSError, http.client.HTTPException, ValueError)  # of a connection; ValueError: what cannot be parsed
_LENGTH, _RANGE = re.compile(r"[0-9]{1,18}"), re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_FULL, _PARTIAL, _NOT_SATISFIABLE, _NOT_FOUND = 200, 206, 416, 404
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # the same request may succeed later


Source = io.BufferedReader | http.client.HTTPResponse


class RefusedError(StoreError):
    """What came is not what the registry says; nothing of it is kept."""


class MissingFileError(RemoteError):
    """The remote does not have the file."""


class UnreachableError(RemoteError):
    """No answer, or one that says to try again later."""


@dataclass(frozen=True)
class Answer:
    """A file's bytes."""

    source: Source
    start: int  # which byte of the file comes first
    total: int | None  # bytes of the whole file, as far as it is said


def place(remote: Remote, path: str) -> str:
    """Where a file is, for messages."""
    return str(remote.file(path)) if remote.folder is not None else remote.url(path)


def reason(error: Exception) -> str:
    """What went wrong, in a few words."""
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, http.client.IncompleteRead):
        return "the connection was closed"
    if isinstance(inner, TimeoutError):
        return f"no answer within {TIMEOUT:.0f} seconds"
    said = str(getattr(inner, "strerror", None) or inner)[:200].strip() or type(inner).__name__
    return said if said.isprintable() else "the answer is not one of a web server"


@contextmanager
def answer(remote: Remote, path: str, start: int) -> Iterator[Answer]:
    """A file's bytes from `start`, or from its beginning where the server knows no ranges."""
    if remote.folder is not None:
        with _local(remote, path) as file:
            file.seek(start)
            yield Answer(file, start, os.fstat(file.fileno()).st_size)
        return
    where = remote.url(path)
    headers = {"User-Agent": f"efhorizon/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        request = urllib.request.Request(where, headers=headers)
        response = urllib.request.build_opener(_SameHost(remote)).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise _refused_by_server(error.code, where) from None
    except FAILURES as error:
        raise UnreachableError(f"{where}: cannot be reached ({reason(error)})") from None
    with response:
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", ""):
            raise RefusedError(f"{where}: comes packed, although that was not asked for; refused")
        first = _first_byte(response, start, where)
        yield Answer(response, first, _announced(response, first, where))


def _local(remote: Remote, path: str) -> io.BufferedReader:
    local, folder = remote.file(path), remote.file(".")
    try:
        if not folder.is_dir():
            raise RemoteError(f"{folder}: no such folder")
        if not local.exists():
            raise MissingFileError(f"{local}: not there")
        if not local.resolve().is_relative_to(folder.resolve()):
            raise RefusedError(f"{local}: a link that leads out of the data set; refused")
        if not local.is_file():
            raise RefusedError(f"{local}: no regular file; refused")
    except OSError as error:
        raise RemoteError(f"{local}: cannot be read ({error.strerror})") from None
    return cast(io.BufferedReader, open_regular(local, "a file of a data set"))


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
            shown = newurl[:200] if newurl.isprintable() else ascii(newurl[:200])
            raise RefusedError(f"{req.full_url}: leads to another host, {shown}; refused")
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and (span := req.get_header("Range")):
            following.add_header("Range", span)
        return following


def _refused_by_server(code: int, where: str) -> EfhorizonError:
    if code == _NOT_FOUND:
        return MissingFileError(f"{where}: not there (404)")
    if code == _NOT_SATISFIABLE:
        return RefusedError(f"{where}: shorter than the registry says; refused")
    return (UnreachableError if code in _PASSING else RemoteError)(f"{where}: the server answers {code}")


def _first_byte(response: http.client.HTTPResponse, start: int, where: str) -> int:
    """Where in the file an answer begins."""
    if response.status == _FULL:
        return 0
    span = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status != _PARTIAL or span is None or int(span[1]) != start:
        raise RefusedError(f"{where}: another part than was asked for ({response.status}); refused")
    return start


def _announced(response: http.client.HTTPResponse, start: int, where: str) -> int | None:
    """The size of the whole file, as far as it is said."""
    span = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if span is not None and span[3] != "*":
        return int(span[3])
    length = response.headers.get("Content-Length")
    if length is None:
        return None
    if not _LENGTH.fullmatch(length):
        raise RefusedError(f"{where}: says that it has {length[:40]!a} bytes; refused")
    return start + int(length)
