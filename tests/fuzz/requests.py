"""Requests over HTTP: what a browser, or something worse, may send to `serve`."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from .cases import Case

SECRET = "a secret outside of the report"
ORDINARY = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_SECONDS = 3.0
_MOST = 1 << 24  # bytes of an answer that are read: no file of the report is as large

_PATHS = (
    *("/", "/index.html", "/mdps.html", "/data/summary.csv", "/assets/site.css", "/nothing", "//", "/./"),
    *("/index.html/",),
    *("/%00", "/%", "/%zz", "/%ff%fe", "/\x00", "/\x1b[31m", "/a\tb", "/é", "/%c0%ae%c0%ae/"),
    *("/index.html%00.png", "/?" + "a" * 100),
    *("/../outside/secret.txt", "/%2e%2e/outside/secret.txt", "/..%2foutside%2fsecret.txt"),
    *("/assets/../../outside/secret.txt",),
    *("/....//outside/secret.txt", "/..\\outside\\secret.txt", "//outside/secret.txt", "/file:///etc/passwd"),
    *("/~root/",),
    *("/link.txt", "/folder/secret.txt", "/folder/", "/folder", "/zero", "/pipe", "/circle", "/assets"),
    *("/data/", "/mdps"),
    *("/" + "a" * 300, "/" + "a" * 70_000, "/" + "a/" * 3_000, "http://127.0.0.1/index.html"),
    *("http://evil.example/", "*", ""),
)
_METHODS = (
    *("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", ""),
    *("G" * 70_000, "\x00"),
)
_VERSIONS = (
    *("HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2", "HTTP/9.9", "HTTP/1." + "9" * 400, "HTTP/x.y"),
    *("", "X"),
)
_HOSTS = (
    *("127.0.0.1", "127.0.0.1:{port}", "localhost", "evil.example", "", "127.0.0.1, evil.example", "[::1]"),
    *("\x00", ":", "a" * 70_000),
)
_HEADERS = (
    *("Range: bytes=0-", "Range: bytes=-1", f"Range: bytes={'9' * 400}-", "If-Modified-Since: x"),
    *("If-Modified-Since: Thu, 01 Jan 0000 00:00:00 GMT", f"If-Modified-Since: Thu, 01 Jan {'9' * 30} 00:00:00 GMT"),
    *("If-Modified-Since: Thu, 99 Jan 2020 99:99:99 +9999", "Content-Length: -1", "Content-Length: x"),
    *("Content-Length: 5",),
    *("Transfer-Encoding: chunked", "Expect: 100-continue", "no colon", ": empty", " folded"),
    *("X: " + "a" * 70_000, "X: \x00\xff"),
    *("Connection: keep-alive", "Upgrade: websocket", "X-Forwarded-For: evil", "Host: evil.example"),
)


def request(case: Case) -> bytes:
    """One request; the port is filled in when it is known. Paths come in turn, the rest at random."""
    rng = case.rng()
    odd = rng.random()
    if odd < 0.03:
        return rng.randbytes(rng.choice([1, 100, 5_000]))
    path, method, version, host = _PATHS[case.turn(len(_PATHS))], "GET", "HTTP/1.1", "127.0.0.1:{port}"
    if odd > 0.4:  # otherwise everything but the path is as it should be
        method, version, host = rng.choice(_METHODS), rng.choice(_VERSIONS), rng.choice(_HOSTS)
    headers = [f"Host: {host}", *rng.sample(_HEADERS, rng.choice([0, 0, 1, 2, 4]))]
    if rng.random() < 0.05:
        headers += [f"X{each}: {each}" for each in range(200)]
    if rng.random() < 0.03:
        del headers[0]
    end = "\n" if rng.random() < 0.05 else "\r\n"
    return end.join([f"{method} {path} {version}".strip(), *headers, "Connection: close", "", ""]).encode(
        "latin-1", "replace"
    )


def prepare(site: Path, outside: Path) -> None:
    """Put into a report what should never be served."""
    (outside / "secret.txt").write_text(SECRET)
    (site / "link.txt").symlink_to(outside / "secret.txt")
    (site / "folder").symlink_to(outside)
    (site / "zero").symlink_to("/dev/zero")
    (site / "circle").symlink_to("circle")
    os.mkfifo(site / "pipe")


def exchange(site: Path, sent: bytes) -> int:
    """Serve a report, send one request and say what came back; the exit code says whether that is acceptable."""
    from efhorizon.render.html.server import report_server

    served = {hashlib.sha256(path.read_bytes()).digest() for path in site.rglob("*") if _is_ours(path)}
    server = report_server(site, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    answer, complaint = _answer(port, sent.replace(b"{port}", str(port).encode()))
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ")[1].decode("latin-1") if head.startswith(b"HTTP/") and b" " in head else ""
    if SECRET.encode() in answer:
        complaint = "the secret is served"
    elif status == "200" and body and hashlib.sha256(body).digest() not in served:
        complaint = f"{len(body):,} bytes are served that are no file of the report"
    again, _ = _answer(
        port, f"GET /index.html HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
    )
    if b" 200 " not in again.partition(b"\r\n")[0]:
        complaint = "afterwards it answers no more"
    print(json.dumps({"status": status, "complaint": complaint}))
    return 1 if complaint else 0


def served(line: list[str]) -> int:
    """`efhorizon serve`, stopped as by Ctrl-C once it has answered; its exit code."""
    from efhorizon.commands import main

    def visit() -> None:
        for _ in range(100):
            time.sleep(0.02)
            sys.stdout.flush()
            printed = os.pread(1, 200, 0).decode()
            if "127.0.0.1:" in printed:
                port = int(printed.split("127.0.0.1:")[1].split("/")[0])
                answer, _ = _answer(
                    port, f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
                )
                os.ftruncate(1, 0)  # the port is another one each time
                os.lseek(1, 0, os.SEEK_SET)
                print(json.dumps({"answer": hashlib.sha256(answer.partition(b"\r\n\r\n")[2]).hexdigest()}))
                break
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
    threading.Thread(target=visit, daemon=True).start()
    return main(line)


def _is_ours(path: Path) -> bool:
    return path.is_file() and not any(part.is_symlink() for part in (path, *path.parents))


def _answer(port: int, sent: bytes) -> tuple[bytes, str]:
    received = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while len(received) < _MOST and (block := connection.recv(1 << 20)):
                received += block
        except TimeoutError:
            return bytes(received), f"no answer within {_SECONDS:g} s"
        except OSError:
            pass  # it hung up on us
    return bytes(received), "it sends without end" if len(received) >= _MOST else ""
