"""A web server on this machine: it serves a folder with ranges, and misbehaves where a test asks it to."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


@dataclass
class Web:
    """A running server, what was asked of it, and what it does instead of answering."""

    folder: Path
    address: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path and range
    instead: Callable[[BaseHTTPRequestHandler, str], bool] = lambda handler, path: False  # True: that was the answer
    cut_after: int | None = None  # bytes of an answer after which the connection is closed
    knows_ranges: bool = True


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    web = Web(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path.lstrip("/"))
            web.asked.append((path, self.headers.get("Range")))
            if not web.instead(self, path):
                _answer(web, self, path)

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(web: Web, handler: BaseHTTPRequestHandler, path: str) -> None:
    file = web.folder / path
    if not file.is_file():
        handler.send_error(404)
        return
    content = file.read_bytes()
    span = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range") or "") if web.knows_ranges else None
    start = int(span[1]) if span else 0
    if start and start >= len(content):
        handler.send_error(416)
        return
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    handler.send_header("Content-Length", str(len(content) - start))
    handler.end_headers()
    rest = content[start:]
    handler.wfile.write(rest if web.cut_after is None else rest[: web.cut_after])
