"""`efhorizon report` and `efhorizon serve`."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from synthetic_study import Shape, write_study

from efhorizon.commands import main
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.render.html.server import report_server
from efhorizon.render.html.site import WrittenReport


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=2, num_seeds=1))
    assert main(["report", str(study), "--out", str(tmp_path / "report")]) == 0
    out = capsys.readouterr().out
    assert "2 MDPs" in out
    assert str(tmp_path / "report" / "index.html") in out


def test_report_as_json_with_notes_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1, num_seeds=1))
    (study / "pictures" / "0-start.png").unlink()
    assert main(["report", str(study), "--out", str(tmp_path / "report"), "--json"]) == 0
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    assert content["num_mdps"] == 1
    assert Path(content["index"]).is_file()
    assert any("0-start.png: no such picture" in note for note in content["notes"])
    assert "no such picture" in captured.err


def test_a_study_without_pictures_says_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=3, num_seeds=1))
    shutil.rmtree(study / "pictures")
    assert main(["report", str(study), "--out", str(tmp_path / "report"), "--json"]) == 0
    notes = [note for note in json.loads(capsys.readouterr().out)["notes"] if "picture" in note]
    assert notes == ["no pictures of states: an export has none, so neither has an analysis taken from one"]


def test_report_opens_the_browser_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    study = write_study(tmp_path / "study", Shape(num_mdps=1, algorithms=()))
    assert main(["report", str(study), "--out", str(tmp_path / "report"), "--open"]) == 0
    assert opened == [(tmp_path / "report" / "index.html").as_uri()]


@pytest.mark.parametrize("what", ["missing", "empty", "broken"])
def test_report_on_what_is_no_study_is_one_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study"
    if what != "missing":
        study.mkdir()
    if what == "broken":
        write_study(study, Shape(num_mdps=1, algorithms=()))
        (study / "analyses" / "0.json").write_text("{")
    assert main(["report", str(study), "--out", str(tmp_path / "report")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"efhorizon: {study}")
    assert error.count("\n") == 1
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("circle", ["summary.csv", "site"])
def test_report_on_a_circle_of_links_is_one_line(
    circle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / circle).symlink_to(circle)
    assert main(["report", str(tmp_path / "summary.csv"), "--out", str(tmp_path / "site")]) != 0
    assert len(capsys.readouterr().err.splitlines()) == 1


@contextmanager
def running(folder: Path) -> Iterator[ThreadingHTTPServer]:
    server = report_server(folder, 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def server(report: WrittenReport) -> Iterator[ThreadingHTTPServer]:
    with running(report.path) as started:
        yield started


def answer(server: ThreadingHTTPServer, path: str, host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    response = connection.getresponse()
    return response.status, response.read(), dict(response.getheaders())


def test_serve_gives_the_pages_of_the_report(server: ThreadingHTTPServer, report: WrittenReport) -> None:
    status, body, headers = answer(server, "/")
    assert (status, body) == (200, report.index.read_bytes())
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert answer(server, "/mdps.html")[0] == 200


def test_serve_listens_on_this_machine_only(server: ThreadingHTTPServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/mdps/", "/nothing.html"])
def test_serve_gives_nothing_else(server: ThreadingHTTPServer, path: str) -> None:
    assert answer(server, path)[0] == 404


ODD_PATHS = (
    *(
        "/%00",
        "/index.html%00",
        "/mdps/%00/x",
        "/%ff%fe",
        "/%ed%a0%80",
        "/..%2f..%2fetc/passwd",
        "/%5c..%5c",
        "//etc/passwd",
    ),
    *(
        "/" + "x" * 5000,
        "/" + "x/" * 5000,
        "/" + "%2e%2e/" * 50 + "etc/passwd",
        "/index.html/",
        "/index.html/..",
        "/?\x7f",
    ),
    *("/~root", "/report.json/x", "/.", "/mdps", "/mdps/", "/*", "http://[/mdps", "/mdps?[/", "*"),
)


@pytest.mark.parametrize("path", ODD_PATHS, ids=lambda path: path[:20].encode("unicode_escape").decode())
def test_serve_answers_odd_paths(
    server: ThreadingHTTPServer, report: WrittenReport, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, body, _ = raw_answer(server, f"GET {path} HTTP/1.1")
    assert status in (200, 301, 404)
    if status == 200:
        assert body == report.index.read_bytes()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("GET /" + "x" * 70_000 + " HTTP/1.1", 414),
        ("POST / HTTP/1.1", 501),
        ("DELETE /index.html HTTP/1.1", 501),
        ("TRACE / HTTP/1.1", 501),
        ("CONNECT a:1 HTTP/1.1", 501),
        ("HEAD / HTTP/1.1", 200),
        ("GET / HTTP/9.9", 505),
        ("GET / HTTP/1.1.1", 400),
        ("GET", 400),
        ("G\x00T / HTTP/1.1", 501),
    ],
    ids=lambda value: str(value)[:12].encode("unicode_escape").decode(),
)
def test_serve_answers_odd_requests(
    server: ThreadingHTTPServer, line: str, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raw_answer(server, line)[0] == expected
    assert capsys.readouterr().err == ""


def raw_answer(server: ThreadingHTTPServer, line: str) -> tuple[int, bytes, bytes]:
    """Status, body and head of the answer to a request as it is."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as connection:
        request = f"{line}\r\nHost: 127.0.0.1:{server.server_port}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while block := connection.recv(1 << 16):
            found += block
    head, _, body = found.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.[01] (\d+)", head) or re.search(rb"Error code: (\d+)", found)
    assert status is not None, found[:200]
    return int(status[1]), body, head


def test_serve_follows_no_link_out_of_the_report(
    report: WrittenReport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does it wait for a pipe or read a device."""
    site = shutil.copytree(report.path, tmp_path / "site")
    (tmp_path / "secret.html").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "index.html").write_text("secret")
    (site / "file.html").symlink_to(tmp_path / "secret.html")
    (site / "relative.html").symlink_to("../secret.html")
    (site / "folder").symlink_to(tmp_path / "outside")
    (site / "inner").mkdir()
    (site / "inner" / "index.html").symlink_to(tmp_path / "secret.html")
    (site / "circle.html").symlink_to("circle.html")
    (site / "device").symlink_to("/dev/zero")
    os.mkfifo(site / "pipe")
    (site / "inside.html").symlink_to("index.html")
    (tmp_path / "link").symlink_to(site)
    for folder in (site, tmp_path / "link"):  # the report itself may be behind a link
        with running(folder) as server:
            names = ("file.html", "relative.html", "folder", "folder/", "folder/index.html", "inner/", "circle.html")
            for name in (*names, "device", "pipe"):
                assert answer(server, f"/{name}")[0] == 404, name
            assert answer(server, "/inside.html")[:2] == (200, report.index.read_bytes())
            assert answer(server, "/inner")[0] == 301
    assert capsys.readouterr().err == ""


def test_a_browser_that_goes_away_is_not_worth_a_line(
    server: ThreadingHTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset when closed
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer(server, "/")[0] == 200
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_serve_refuses_other_host_names(server: ThreadingHTTPServer, host: str) -> None:
    assert answer(server, "/", host)[0] == 403


def test_serve_knows_this_machine_by_two_names(server: ThreadingHTTPServer) -> None:
    for host in ("localhost", f"localhost:{server.server_port}", "127.0.0.1"):
        assert answer(server, "/", host)[0] == 200


def test_serve_refuses_what_is_no_report(tmp_path: Path, report: WrittenReport) -> None:
    with pytest.raises(StoreError, match="not a report"):
        report_server(tmp_path, 0)


def test_serve_says_that_a_port_is_taken(report: WrittenReport) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EfhorizonError, match="--port 0 takes any free port"):
            report_server(report.path, taken.getsockname()[1])


def test_serve_command_on_what_is_no_report_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path), "--port", "0"]) == 1
    assert capsys.readouterr().err.startswith(f"efhorizon: {tmp_path}: not a report")
