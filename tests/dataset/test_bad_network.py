"""Servers that lie, break off or answer nonsense, disks that are full, and several processes at once: one line each."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import web
from test_download import LOCK, MAZE, in_cache, largest, resealed, size

import efhorizon as ef
from efhorizon.commands import main
from efhorizon.dataset import answers, transfer
from efhorizon.dataset import registry as registries
from efhorizon.dataset.registry import FileEntry
from efhorizon.dataset.remote import remote
from efhorizon.dataset.transfer import fetch, small_file

CONTENT = bytes(range(256)) * 20
ENTRY = FileEntry(len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
LENGTH = f"Content-Length: {len(CONTENT)}"


@contextmanager
def speaking(answer: bytes) -> Iterator[str]:
    """The address of a server that says this to everybody, byte by byte, and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # who was told too much hangs up
                connection.recv(1 << 16)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def said(*lines: str, body: bytes = CONTENT) -> bytes:
    return "\r\n".join((*lines, "", "")).encode("latin-1") + body


CHUNKED = ("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")
RIGHT = {
    "a length": said("HTTP/1.1 200 OK", LENGTH),
    "no length": said("HTTP/1.1 200 OK"),
    "chunks": said(*CHUNKED, body=b"1400\r\n" + CONTENT + b"\r\n0\r\n\r\n"),
    "said not to be packed": said("HTTP/1.1 200 OK", LENGTH, "Content-Encoding: Identity"),
}
WRONG = {
    "a length of 5,000 digits": (said("HTTP/1.1 200 OK", "Content-Length: " + "9" * 5000), "bytes; refused"),
    "a quintillion bytes": (said("HTTP/1.1 200 OK", "Content-Length: " + "9" * 18), "999,999,999,999,999,999 bytes"),
    "a negative length": (said("HTTP/1.1 200 OK", "Content-Length: -5"), "says that it has '-5' bytes"),
    "too much is announced": (said("HTTP/1.1 200 OK", "Content-Length: 6000"), "6,000 bytes, not the 5,120"),
    "too little is announced": (said("HTTP/1.1 200 OK", "Content-Length: 60"), "60 bytes, not the 5,120"),
    "too much comes": (said("HTTP/1.1 200 OK", body=CONTENT + b"x"), "more than the 5,120 bytes"),
    "other bytes": (said("HTTP/1.1 200 OK", LENGTH, body=CONTENT[::-1]), "its SHA-256 is not"),
    "gzip": (said("HTTP/1.1 200 OK", LENGTH, "Content-Encoding: gzip"), "comes packed"),
    "a range nobody asked for": (said("HTTP/1.1 206 Partial", "Content-Range: bytes 7-9/10"), "another part"),
    "a range of 5,000 digits": (said("HTTP/1.1 206 Partial", f"Content-Range: bytes 0-1/{'9' * 5000}"), "another part"),
    "nothing": (said("HTTP/1.1 204 No Content", body=b""), "another part"),
    "another host": (said("HTTP/1.1 302 Found", "Location: //example.org/x"), "leads to another host"),
    "another port": (said("HTTP/1.1 302 Found", "Location: http://127.0.0.1:1/x"), "leads to another host"),
    "an address that is none": (said("HTTP/1.1 302 Found", "Location: http://[::1"), "Invalid IPv6"),
    "in a circle": (said("HTTP/1.1 302 Found", "Location: /x"), "answers 302"),
    "a password is wanted": (said("HTTP/1.1 401 Unauthorized", body=b""), "answers 401"),
    "later, perhaps": (said("HTTP/1.1 429 Too Many Requests", body=b""), "answers 429"),
    "a broken chunk": (said(*CHUNKED, body=b"zzz\r\n" + CONTENT), "the connection was closed"),
    "an escape sequence": (said("\x1b[31mpwned\x07"), "not one of a web server"),
    "no web server": (CONTENT, "not one of a web server"),
    "a header without end": (said("HTTP/1.1 200 OK", "A: " + "b" * 70_000), "cannot be reached"),
}


@pytest.fixture(autouse=True)
def _quick(cache: Path) -> None:
    """No pauses, an empty cache."""


@pytest.mark.parametrize("answer", RIGHT.values(), ids=list(RIGHT))
def test_good_answers(answer: bytes, tmp_path: Path) -> None:
    with speaking(answer) as address:
        fetch(remote(address), "x", ENTRY, tmp_path / "partial")
        assert (tmp_path / "partial").read_bytes() == CONTENT
        assert small_file(remote(address), "x", 10_000) == CONTENT


@pytest.mark.parametrize(("answer", "message"), WRONG.values(), ids=list(WRONG))
def test_bad_answers(answer: bytes, message: str, tmp_path: Path) -> None:
    with speaking(answer) as address, pytest.raises(ef.EfhorizonError, match=message) as caught:
        fetch(remote(address), "x", ENTRY, tmp_path / "partial")
    assert str(caught.value).isprintable()  # one line, and nothing that steers a terminal
    assert not (tmp_path / "partial").exists()


def test_a_registry_is_not_cut_off_unnoticed(tmp_path: Path) -> None:
    with speaking(said("HTTP/1.1 200 OK", "Content-Length: 6000")) as address:
        with pytest.raises(ef.EfhorizonError, match="the connection was closed"):
            small_file(remote(address), "x", 10_000)
        with pytest.raises(ef.EfhorizonError, match="more than 5,500 bytes; refused"):
            small_file(remote(address), "x", 5_500)


def test_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ef.EfhorizonError, match="no answer within"):
            fetch(remote(address), "x", ENTRY, tmp_path / "partial")


def test_a_slow_server(served: web.Web, cache: Path) -> None:
    """It comes in small pieces with pauses, and is complete."""
    wanted = largest(served.folder)
    path, content = str(wanted.relative_to(served.folder)), wanted.read_bytes()

    def slowly(handler: BaseHTTPRequestHandler, asked: str) -> bool:
        if asked != path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for start in range(0, len(content), 16):
            handler.wfile.write(content[start : start + 16])
            handler.wfile.flush()
            time.sleep(0.005)
        return True

    served.instead = slowly
    assert ef.load(LOCK).num_states == 4
    assert [path for path, _ in served.asked].count(path) == 1


def test_bad_wifi(served: web.Web, cache: Path) -> None:
    """Every file, the registry too, fails twice before it comes."""
    failures: dict[str, int] = {}

    def fail(handler: BaseHTTPRequestHandler, path: str) -> bool:
        failures[path] = failures.get(path, 0) + 1
        if failures[path] == 1:
            handler.send_error(503)
        elif failures[path] == 2:
            handler.close_connection = True
        return failures[path] <= 2

    served.instead = fail
    assert ef.load(LOCK).num_states == 4
    assert set(failures.values()) == {3}


def test_pauses_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(transfer, "PAUSES", (1.0, 2.0))
    monkeypatch.setattr(time, "sleep", waited.append)
    with speaking(said("HTTP/1.1 503 Busy", body=b"")) as address:
        with pytest.raises(transfer.InterruptedDownloadError):
            fetch(remote(address), "x", ENTRY, tmp_path / "partial")
        assert waited == [1.0, 2.0]
        with pytest.raises(ef.EfhorizonError, match="answers 503"):
            small_file(remote(address), "x", 10)
    assert waited[2:4] == [1.0, 2.0]


# --- what a data set says


def test_another_data_set_changes_nothing_of_one_in_the_cache(copy: Path, cache: Path, tmp_path: Path) -> None:
    """It has the same files, and so the same identity, but says that the maze's table is the game's."""
    ef.load(LOCK, remote=copy)
    ef.load(MAZE, remote=copy)
    evil = tmp_path / "evil"
    shutil.copytree(copy, evil)
    resealed(evil, lambda content: content["mdps"][LOCK].update(parts=content["mdps"][MAZE]["parts"]))
    assert ef.load(LOCK, remote=evil).num_states == 3
    assert ef.load(LOCK, remote=copy).num_states == 4
    with pytest.raises(ef.StoreError, match="in several data sets of the cache, and not the same"):
        ef.load(LOCK)
    assert ef.load(MAZE).num_states == 3  # the same in both


def in_another_part(content: dict) -> None:
    parts = content["mdps"][LOCK]["parts"]
    parts["table"]["path"] = f"mdps/{LOCK}"


def file_in_a_file(content: dict) -> None:
    some = f"mdps/{LOCK}/consolidated.npz"
    content["files"][f"{some}/x"] = content["files"][some]


def the_registry_itself(content: dict) -> None:
    part = content["mdps"][LOCK]["parts"]["bridge"]
    content["files"]["registry.json"] = content["files"][part["files"][0]]
    part["files"], part["path"] = ["registry.json"], "registry.json"


def no_files(content: dict) -> None:
    content["mdps"][LOCK]["parts"]["table"]["files"] = []


def enormous(content: dict) -> None:
    for path, entry in content["files"].items():
        if path.startswith(f"screens/{LOCK}"):
            entry["size"] = 2**62


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_another_part, "is a part inside another"),
        (file_in_a_file, "in a folder that is a file too"),
        (the_registry_itself, "the cache has files of that name"),
        (no_files, "has no files"),
        (enormous, "are free"),
    ],
)
def test_registries_that_are_refused(
    served: web.Web, cache: Path, change: Callable[[dict], None], message: str
) -> None:
    resealed(served.folder, change)
    with pytest.raises(ef.EfhorizonError, match=message):
        ef.load(LOCK)
    assert in_cache(cache) == []


def test_a_registry_of_a_million_files(copy: Path, cache: Path) -> None:
    """It is refused at once, whatever it says."""
    sha = "0" * 64
    entries = ",".join(f'"m/{number}":{{"size":1,"sha256":"{sha}"}}' for number in range(200_000))
    with (copy / "registry.json").open("w") as file:
        file.write('{"format":"efhorizon-dataset","format_version":1,"files":{')
        file.write(",".join([entries] * 5))
        file.write("}}")
    started = time.process_time()
    with pytest.raises(ef.EfhorizonError, match="more than 16,777,216 bytes; refused"):
        ef.load(LOCK, remote=copy)
    assert time.process_time() - started < 1


def test_no_registry_is_written_that_nobody_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registries, "MAX_BYTES", 100)
    empty = registries.Registry(name="x", version="1", efhorizon="0", content="0" * 64, mdps={}, files={})
    with pytest.raises(ef.StoreError, match="0 files are too many"):
        registries.encoded(empty)


def test_names_in_any_script(served: web.Web, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Letters with accents, Chinese, spaces, signs that addresses treat in their own way."""
    name = "Größe 迷宫 100%&#?+;"
    old, new = f"mdps/{MAZE}", f"mdps/{name}"
    (served.folder / old).rename(served.folder / new)

    def change(content: dict) -> None:
        content["files"] = {path.replace(old, new): entry for path, entry in content["files"].items()}
        content["mdps"] = {name: json.loads(json.dumps(content["mdps"][MAZE]).replace(MAZE, name))}

    resealed(served.folder, change)
    assert ef.load(name).num_states == 3
    assert main(["dataset", "list"]) == 0
    assert name in capsys.readouterr().out


def test_what_a_registry_says_cannot_steer_a_terminal(
    served: web.Web, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(content: dict) -> None:
        content["mdps"][LOCK]["suite"] = "\x1b[31msuite"
        for part in content["mdps"][LOCK]["parts"].values():
            part["licence"] = "[bold]\x1b]0;pwned\x07"

    resealed(served.folder, change)
    for command in (["list"], ["show", LOCK]):
        assert main(["dataset", *command]) == 0
        assert "\x1b" not in capsys.readouterr().out


# --- links in a folder that is a remote


def test_links_in_a_folder(copy: Path, cache: Path, tmp_path: Path) -> None:
    """Links inside of the data set are files like others; those that lead out are refused, and so are pipes."""
    wanted = largest(copy)
    kept = copy / "kept-elsewhere"
    wanted.rename(kept)
    wanted.symlink_to(kept)
    assert ef.load(LOCK, remote=copy).num_states == 4
    outside = tmp_path / "outside"
    kept.rename(outside)
    wanted.unlink()
    wanted.symlink_to(outside)
    shutil.rmtree(cache)
    with pytest.raises(ef.EfhorizonError, match="leads out of the data set"):
        ef.load(LOCK, remote=copy)
    wanted.unlink()
    os.mkfifo(wanted)
    with pytest.raises(ef.EfhorizonError, match="no regular file"):
        ef.load(LOCK, remote=copy)
    assert in_cache(cache) == []
    wanted.unlink()
    wanted.symlink_to(wanted)  # a circle is no file, and screens may be left out
    assert ef.load(LOCK, remote=copy).screens is None


# --- the disk


def test_a_disk_that_is_full(served: web.Web, cache: Path) -> None:
    """No file may become larger than 100 bytes: one line, and what has come is complete with more room."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))"
    code = (
        f"{limit}; import sys; from efhorizon.commands import main; sys.exit(main(['dataset', 'download', {LOCK!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be written (File too large); what has come is kept" in done.stderr
    assert done.stderr.count("\n") == 1
    assert any(size(Path(path)) == 100 for path in in_cache(cache))
    assert ef.load(LOCK).num_states == 4
    assert main(["dataset", "verify"]) == 0


def test_a_cache_that_cannot_be_written(served: web.Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    for place in (str(tmp_path / "file"), "/proc/efhorizon"):
        monkeypatch.setenv("EFHORIZON_CACHE", place)
        with pytest.raises(ef.EfhorizonError, match=r"cannot be written .* set EFHORIZON_CACHE to another folder"):
            ef.load(LOCK)


def test_several_processes_at_once(served: web.Web, cache: Path) -> None:
    """Each has its table, and every file came once."""
    code = f"import efhorizon; print(efhorizon.load({LOCK!r}).num_states, efhorizon.load({MAZE!r}).num_states)"
    served.instead = lambda handler, path: bool(time.sleep(0.02))
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in running] == ["4 3\n"] * 2
    files = [path for path, _ in served.asked if path != "registry.json"]
    assert len(files) == len(set(files))
    assert main(["dataset", "verify"]) == 0


def test_a_folder_that_another_process_removed_while_this_one_waited(served: web.Web, cache: Path) -> None:
    """The lock is that of the folder that is there, not of one that is gone."""
    from efhorizon.dataset.cache import asked

    dataset = asked(remote(served.address))
    with dataset._locked():
        descriptor: list[int] = []
        waiting = threading.Thread(target=lambda: descriptor.append(dataset._lock()))
        waiting.start()
        time.sleep(0.1)
        dataset.folder.rmdir()
    waiting.join(timeout=10)
    assert os.path.samestat(os.fstat(descriptor[0]), dataset.folder.stat())
    os.close(descriptor[0])
