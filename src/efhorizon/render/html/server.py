"""A report over HTTP, for browsers on this machine only."""

from __future__ import annotations

import io
import os
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.render.html.marker import is_report

ADDRESS = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",  # a rewritten report shows at once
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NOWHERE = ""  # no file has this name


def report_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server for one report, listening on this machine only; port 0 takes any free port."""
    if not is_report(folder):
        raise StoreError(f"{folder}: not a report; make one with: efhorizon report RESULTS --out {folder}")
    try:
        return _Server((ADDRESS, port), partial(_Handler, directory=str(folder.resolve())))
    except OSError as error:
        raise EfhorizonError(f"port {port}: {error.strerror or error}; --port 0 takes any free port") from None


def report_address(server: ThreadingHTTPServer) -> str:
    return f"http://{ADDRESS}:{server.server_port}/"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that has gone before the end is not worth a line."""


class _Handler(SimpleHTTPRequestHandler):
    """Files of the report and nothing else: no listings, and no requests under another host name."""

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
        if host not in (ADDRESS, "localhost"):  # a page elsewhere whose name was pointed at this machine
            self.send_error(HTTPStatus.FORBIDDEN, "only for this machine")
            return None
        return super().send_head()

    def translate_path(self, path: str) -> str:
        """The file, or the folder if the final slash is missing; nowhere if it does not really lie in the report."""
        given = super().translate_path(path)
        try:
            real = Path(given, "index.html" if given.endswith("/") else "").resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # missing, no name that a file can have, a circle of links
            return _NOWHERE
        is_ours = real.is_relative_to(self.directory) and (real.is_file() or real.is_dir())
        return str(real) if is_ours else _NOWHERE

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        self.send_error(HTTPStatus.NOT_FOUND, "no such page")

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *values: object) -> None:
        """Requests are not worth a line each."""
