"""Downloads from a real web server on this machine: complete and right, or refused with nothing left in the cache."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest
import web

import efhorizon as ef
from efhorizon.commands import main
from efhorizon.dataset import registry as registries
from efhorizon.dataset.answers import RefusedError
from efhorizon.dataset.registry import FileEntry
from efhorizon.dataset.remote import remote
from efhorizon.dataset.transfer import InterruptedDownloadError, fetch

LOCK, MAZE = "freeway_10_fs30", "maze_easy_l0_30_fs1"


def in_cache(cache: Path) -> list[str]:
    return [str(path) for path in cache.rglob("*") if path.is_file()] if cache.exists() else []


def test_one_line_and_no_second_download(served: web.Web, cache: Path) -> None:
    mdp = ef.load(LOCK)
    assert (mdp.num_states, mdp.num_screens, mdp.metadata["id"]) == (4, 4, LOCK)
    asked = len(served.asked)
    assert ef.load(LOCK).fingerprint() == mdp.fingerprint()
    assert len(served.asked) == asked


def test_the_cache_serves_without_any_remote(served: web.Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ef.load(MAZE)
    monkeypatch.delenv("EFHORIZON_REMOTE")
    assert ef.load(MAZE).num_states == 3
    with pytest.raises(ef.StoreError, match="no such table"):
        ef.load(LOCK)


def test_local_tables_come_first(served: web.Web, cache: Path) -> None:
    ef.save(ef.TabularMDP([[0, -1]], [[0, 1]], 1, metadata={"id": LOCK}), Path("tables") / LOCK)
    assert ef.load(LOCK).num_states == 1
    assert served.asked == []


def test_a_folder_is_a_remote_too(copy: Path, cache: Path) -> None:
    assert ef.load(LOCK, remote=copy).num_states == 4
    assert ef.load(MAZE, remote=f"file://{copy}").num_states == 3


def test_screens_that_were_left_out(served: web.Web, cache: Path) -> None:
    shutil.rmtree(served.folder / "screens")
    assert ef.load(LOCK).screens is None


def test_a_name_that_is_not_there(served: web.Web, cache: Path) -> None:
    with pytest.raises(ef.StoreError, match=f"not in the data set efhorizon 1.0.0 .*did you mean {LOCK}"):
        ef.load("freeway_10_fs31")
    assert in_cache(cache) == []


def largest(folder: Path) -> Path:
    """The largest file that `ef.load(LOCK)` needs."""
    return max((path for path in (folder / "screens" / LOCK / "table").rglob("*") if path.is_file()), key=size)


def size(path: Path) -> int:
    return path.stat().st_size


def flip_a_byte(folder: Path) -> None:
    content = bytearray(largest(folder).read_bytes())
    content[len(content) // 2] ^= 1
    largest(folder).write_bytes(content)


def truncate(folder: Path) -> None:
    largest(folder).write_bytes(largest(folder).read_bytes()[:-7])


def lengthen(folder: Path) -> None:
    largest(folder).write_bytes(largest(folder).read_bytes() + b"more")


def resealed(folder: Path, change: Callable[[dict], None]) -> None:
    """A registry that somebody else wrote, with a checksum that is right."""
    content = json.loads((folder / "registry.json").read_text())
    content.pop("checksum")
    change(content)
    files = {path: FileEntry(**entry) for path, entry in content["files"].items()}
    content["content"] = registries.identity(files)
    from efhorizon.io.checksums import BLANK, sealed

    (folder / "registry.json").write_bytes(sealed(json.dumps({**content, "checksum": BLANK}).encode()))


def lead_out(path: str) -> Callable[[Path], None]:
    def change(content: dict) -> None:
        (old,) = content["mdps"][LOCK]["parts"]["bridge"]["files"]
        content["files"][path] = content["files"].pop(old)
        part = content["mdps"][LOCK]["parts"]["bridge"]
        part["files"], part["path"] = [path], path

    return lambda folder: resealed(folder, change)


def wrong_size(folder: Path) -> None:
    def change(content: dict) -> None:
        path = next(each for each in content["files"] if each.startswith(f"screens/{LOCK}/table"))
        content["files"][path]["size"] += 1

    resealed(folder, change)


def outside_of_its_part(folder: Path) -> None:
    def change(content: dict) -> None:
        content["mdps"][LOCK]["parts"]["table"]["files"] = ["summary.csv"]

    resealed(folder, change)


def name_that_leads_out(folder: Path) -> None:
    resealed(folder, lambda content: content.update(name="../x"))


def flip_in_registry(folder: Path) -> None:
    content = (folder / "registry.json").read_bytes()
    (folder / "registry.json").write_bytes(content.replace(b'"num_runs": 3', b'"num_runs": 4'))


REFUSALS = [
    (flip_a_byte, "SHA-256"),
    (truncate, "bytes, not the"),
    (lengthen, "bytes, not the"),
    (wrong_size, "bytes, not the"),
    (lead_out("mdps/../../evil.npz"), "leads out of the data set"),
    (lead_out("/etc/evil.npz"), "leads out of the data set"),
    (lead_out("mdps/..\\evil.npz"), "leads out of the data set"),
    (outside_of_its_part, "is outside of"),
    (name_that_leads_out, "cannot be the name"),
    (flip_in_registry, "damaged"),
]


@pytest.mark.parametrize("place", ["web", "folder"])
@pytest.mark.parametrize(("damage", "message"), REFUSALS)
def test_refused_with_nothing_in_the_cache(
    served: web.Web,
    cache: Path,
    damage: Callable[[Path], None],
    message: str,
    place: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(served.folder)
    given = served.address if place == "web" else str(served.folder)
    with pytest.raises(ef.EfhorizonError, match=message):
        ef.load(LOCK, remote=given)
    assert in_cache(cache) == []
    assert main(["dataset", "download", LOCK, "--remote", given]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert said.startswith(f"efhorizon: {given}")
    assert in_cache(cache) == []


def redirect(handler: BaseHTTPRequestHandler, target: str) -> bool:
    handler.send_response(302)
    handler.send_header("Location", target)
    handler.end_headers()
    return True


@pytest.mark.parametrize("what", ["registry.json", "screens"])
def test_a_redirect_to_another_host(served: web.Web, cache: Path, what: str) -> None:
    with web.serving(served.folder) as other:
        served.instead = lambda handler, path: path.startswith(what) and redirect(handler, f"{other.address}/{path}")
        with pytest.raises(ef.EfhorizonError, match="leads to another host"):
            ef.load(LOCK)
        assert other.asked == []
    assert in_cache(cache) == []


def test_a_redirect_on_the_same_host_is_followed(served: web.Web, cache: Path) -> None:
    served.instead = lambda handler, path: path.startswith("old/") and redirect(handler, "/" + path[len("old/") :])
    assert ef.load(LOCK, remote=f"{served.address}/old").num_states == 4


def test_a_redirect_to_a_local_file(served: web.Web, cache: Path) -> None:
    served.instead = lambda handler, path: redirect(handler, f"file://{served.folder}/{path}")
    with pytest.raises(ef.EfhorizonError):
        ef.load(LOCK)
    assert in_cache(cache) == []


def test_a_server_that_is_down(copy: Path, cache: Path) -> None:
    with web.serving(copy) as running:
        address = running.address
    with pytest.raises(ef.EfhorizonError, match="cannot be reached"):
        ef.load(LOCK, remote=address)
    assert in_cache(cache) == []


def test_a_server_with_an_error(served: web.Web, cache: Path) -> None:
    def fail(handler: BaseHTTPRequestHandler, path: str) -> bool:
        handler.send_error(503)
        return True

    served.instead = fail
    with pytest.raises(ef.EfhorizonError, match="the server answers 503"):
        ef.load(LOCK)


def test_a_registry_without_end(served: web.Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registries, "MAX_BYTES", 100)
    with pytest.raises(ef.EfhorizonError, match="more than 100 bytes"):
        ef.load(LOCK)


def test_a_pinned_registry(served: web.Web, cache: Path) -> None:
    import hashlib

    right = hashlib.sha256((served.folder / "registry.json").read_bytes()).hexdigest()
    assert ef.load(LOCK, remote=f"{served.address}#sha256={right}").num_states == 4
    with pytest.raises(ef.EfhorizonError, match="not the one that was pinned"):
        ef.load(MAZE, remote=f"{served.address}#sha256={'0' * 64}")


def test_a_pickle_is_not_opened(served: web.Web, cache: Path, tmp_path: Path) -> None:
    """An npz with objects in it is refused, although its checksum is right."""
    proof = tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.mkdir, (str(proof),))

    file = served.folder / "mdps" / LOCK / "consolidated.npz"
    np.savez(file, transitions=np.array([Evil()], object), rewards=np.zeros((1, 1), np.float32))

    def change(content: dict) -> None:
        import hashlib

        path = f"mdps/{LOCK}/consolidated.npz"
        content["files"][path] = {"size": size(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        content["mdps"][LOCK]["parts"] = {"bridge": content["mdps"][LOCK]["parts"]["bridge"]}

    resealed(served.folder, change)
    with pytest.raises(ef.EfhorizonError):
        ef.load(LOCK)
    assert not proof.exists()


# --- interrupted


def test_it_goes_on_where_it_stopped(served: web.Web, tmp_path: Path) -> None:
    """Every connection breaks after some bytes: the file is complete, and no byte came twice."""
    content = np.random.default_rng(0).bytes(5000)
    (served.folder / "large").write_bytes(content)
    served.cut_after = 1300
    entry = registries.FileEntry(len(content), __import__("hashlib").sha256(content).hexdigest())
    counted: list[int] = []
    fetch(remote(served.address), "large", entry, tmp_path / "partial", counted.append)
    assert (tmp_path / "partial").read_bytes() == content
    assert sum(counted) == 5000
    assert [span for _, span in served.asked] == [None, "bytes=1300-", "bytes=2600-", "bytes=3900-"]


def test_what_has_come_is_kept_when_nothing_more_comes(served: web.Web, tmp_path: Path) -> None:
    content = bytes(range(256)) * 20
    (served.folder / "large").write_bytes(content)
    entry = registries.FileEntry(len(content), __import__("hashlib").sha256(content).hexdigest())
    (tmp_path / "partial").write_bytes(content[:1000])
    served.cut_after = 0
    with pytest.raises(InterruptedDownloadError, match="1,000 of 5,120 bytes are kept"):
        fetch(remote(served.address), "large", entry, tmp_path / "partial")
    assert (tmp_path / "partial").read_bytes() == content[:1000]
    served.cut_after = None
    fetch(remote(served.address), "large", entry, tmp_path / "partial")
    assert served.asked[-1] == ("large", "bytes=1000-")
    assert (tmp_path / "partial").read_bytes() == content


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_wrong_beginning_is_fetched_again(served: web.Web, tmp_path: Path, knows_ranges: bool) -> None:
    content = bytes(range(256)) * 20
    (served.folder / "large").write_bytes(content)
    served.knows_ranges = knows_ranges
    entry = registries.FileEntry(len(content), __import__("hashlib").sha256(content).hexdigest())
    (tmp_path / "partial").write_bytes(b"x" * 1000)
    fetch(remote(served.address), "large", entry, tmp_path / "partial")
    assert (tmp_path / "partial").read_bytes() == content


def test_a_file_that_became_shorter_while_it_was_interrupted(served: web.Web, tmp_path: Path) -> None:
    content = bytes(range(256)) * 20
    entry = registries.FileEntry(len(content), __import__("hashlib").sha256(content).hexdigest())
    (tmp_path / "partial").write_bytes(content[:4000])
    (served.folder / "large").write_bytes(content[:3000])
    with pytest.raises(RefusedError, match="shorter than the registry says"):
        fetch(remote(served.address), "large", entry, tmp_path / "partial")
    assert not (tmp_path / "partial").exists()


def test_killed_in_the_middle_and_finished(served: web.Web, cache: Path) -> None:
    """A process is killed with SIGKILL while a file comes slowly; the next one asks for the rest only."""
    wanted = largest(served.folder)
    path, content = str(wanted.relative_to(served.folder)), wanted.read_bytes()
    half = len(content) // 2

    def slowly(handler: BaseHTTPRequestHandler, asked: str) -> bool:
        if asked != path or handler.headers.get("Range"):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[:half])
        handler.wfile.flush()
        time.sleep(60)
        return True

    served.instead = slowly
    code = (
        "import efhorizon.dataset.transfer as transfer; transfer._BLOCK = 16; "
        f"import efhorizon; efhorizon.load({LOCK!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(size(each) >= 16 for each in _partials(cache, content)):
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (partial,) = _partials(cache, content)
    come = size(partial)
    assert 0 < come <= half
    assert ef.load(LOCK).num_states == 4
    assert (path, f"bytes={come}-") in served.asked
    assert _partials(cache, content) == []
    assert main(["dataset", "verify"]) == 0


def _partials(cache: Path, content: bytes) -> list[Path]:
    import hashlib

    return list(cache.glob(f"sets/*/partial/{hashlib.sha256(content).hexdigest()}"))


# --- commands


def test_list_show_download_verify(served: web.Web, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed["mdps"]] == [LOCK, MAZE, "other"]
    assert listed["dataset"] == "efhorizon"
    assert in_cache(cache) == []
    assert main(["dataset", "show", LOCK, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["parts"]["screens"]["separate"]
    assert not shown["parts"]["screens"]["cached"]
    assert main(["dataset", "download", LOCK, "--parts", "all", "--into", "tables", "--json"]) == 0
    (done,) = json.loads(capsys.readouterr().out)["downloaded"]
    assert set(done["parts"]) == {"table", "bridge", "screens", "analysis", "runs", "pictures"}
    assert main(["show", LOCK]) == 0
    assert main(["dataset", "verify", "--json"]) == 0
    capsys.readouterr()
    assert main(["dataset", "list"]) == 0
    assert "table*" in capsys.readouterr().out
    assert main(["dataset", "list", "--cached", "--json"]) == 0
    (cached,) = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in cached["mdps"]] == [LOCK]


def test_all_of_it(served: web.Web, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "download", "--all", "--json"]) == 0
    assert {each["name"] for each in json.loads(capsys.readouterr().out)["downloaded"]} == {LOCK, MAZE, "other"}


def test_verify_finds_damage_in_the_cache(served: web.Web, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ef.load(LOCK)
    file = next(cache.glob(f"sets/*/screens/{LOCK}/table/zarr.json"))
    file.write_bytes(file.read_bytes().replace(b"horizon", b"Horizon", 1))
    assert main(["dataset", "verify"]) == 1
    assert "SHA-256" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("ftp://example.org/x", "not supported"),
        ("hf://nothing", "write hf://OWNER/NAME"),
        ("hf://a/../b", "write hf://OWNER/NAME"),
        ("http://", "not the address of a folder"),
        ("https://me:secret@example.org/", "not the address of a folder"),
        ("http://[bad", "not the address of a folder"),
        ("http://example.org:99999/", "not the address of a folder"),
        ("http://example.org:x/", "not the address of a folder"),
        (f"http://{'a' * 70}.org/", "not the address of a folder"),
        ("http://ex ample.org/", "not the address of a folder"),
        ("hf://someone/bridge@v1..2", "write hf://OWNER/NAME"),
        ("~nobody-of-this-name/x", "no such folder"),
        ("/no/such/place", "no such folder"),
    ],
)
def test_what_is_no_remote(given: str, message: str, cache: Path) -> None:
    with pytest.raises(ef.EfhorizonError, match=message):
        ef.load(LOCK, remote=given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["download", LOCK, "--parts", "runs,tables"], "'tables': the data set has no such part, but analysis, bridge"),
        (["list", "--suite", "Atari"], "--suite Atari: the data set has no such suite, but atari, minigrid, procgen"),
    ],
)
def test_what_a_data_set_does_not_have(
    served: web.Web, cache: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dataset", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert in_cache(cache) == []


def test_commands_need_a_remote(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "list"]) == 1
    assert "EFHORIZON_REMOTE" in capsys.readouterr().err


def test_where_the_hub_keeps_files() -> None:
    hub = remote("hf://someone/bridge@v1.0")
    assert hub.url("mdps/x/table.npz") == (
        "https://huggingface.co/datasets/someone/bridge/resolve/v1.0/mdps/x/table.npz"
    )
    assert hub.allows(hub.url("x"), "https://cas-bridge.xethub.hf.co/some/thing")
    assert not hub.allows(hub.url("x"), "http://cdn-lfs.hf.co/some/thing")
    assert not hub.allows(hub.url("x"), "https://evilhf.co/some/thing")
    for same in (
        "hf://datasets/someone/bridge",
        "HF://someone/bridge/",
        "https://huggingface.co/datasets/someone/bridge",
    ):
        assert remote(same).address == "https://huggingface.co/datasets/someone/bridge/resolve/main"
    assert remote("hf://someone/bridge@refs/pr/1").url("x").endswith("/resolve/refs%2Fpr%2F1/x")


def test_from_http_to_https_on_the_same_host() -> None:
    plain = remote("http://example.org/data")
    assert plain.allows("http://example.org/data/x", "https://example.org/data/x")
    assert not plain.allows("https://example.org/data/x", "http://example.org/data/x")
    assert not plain.allows("http://example.org/data/x", "https://example.org:8443/data/x")
