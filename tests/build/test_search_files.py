"""The files of a search: what is damaged is refused or changes nothing, whatever it is; older searches still open."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from small_searches import worked
from toy_mdps import WalkSimulator

from efhorizon import EfhorizonError, StoreError
from efhorizon.build.search import Search
from efhorizon.build.search_records import COMMIT, CONFIG, FILES
from efhorizon.build.table import table
from efhorizon.io.tables import load, save

HORIZON = 6
EVERY_FILE = (CONFIG, COMMIT, *FILES)


def copied(original: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name in EVERY_FILE:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes((original / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    worked(folder, HORIZON - 1)
    return folder


def outcome(folder: Path, horizon: int) -> dict[str, bytes] | str:
    try:
        return worked(folder, horizon)
    except EfhorizonError as error:
        message = str(error)
    assert "\n" not in message
    return message


def test_no_flipped_bit_changes_a_table(original: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    """A table of what is there, and one for which the search goes on: 600 flips, some in every file."""
    expected = {horizon: worked(copied(original, tmp_path / str(horizon)), horizon) for horizon in (4, HORIZON)}
    refused = dict.fromkeys(EVERY_FILE, 0)
    for number in range(660):
        name = EVERY_FILE[number % len(EVERY_FILE)]
        folder = copied(original, tmp_path / "flipped")
        content = bytearray((folder / name).read_bytes())
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        (folder / name).write_bytes(content)
        horizon = (4, HORIZON)[number // len(EVERY_FILE) % 2]
        found = outcome(folder, horizon)
        if isinstance(found, str):
            refused[name] += 1
            assert f"delete {folder} and run the same command again" in found
        else:
            assert found == expected[horizon], name
    assert set(refused.values()) == {60}


def test_a_flipped_screen_is_not_stored(original: Path, tmp_path: Path) -> None:
    folder = copied(original, tmp_path / "search")
    content = bytearray((folder / "screens").read_bytes())
    content[-1] ^= 1
    (folder / "screens").write_bytes(content)
    with pytest.raises(StoreError, match="screens: not what was written"):
        save(table(Search(folder), 4, rule="none"), tmp_path / "table")
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_not_written_to(original: Path, tmp_path: Path, name: str) -> None:
    folder = copied(original, tmp_path / "search")
    content = bytearray((folder / name).read_bytes())
    content[0] ^= 1
    (folder / name).write_bytes(content)
    before = {file: (folder / file).read_bytes() for file in EVERY_FILE}
    with pytest.raises(StoreError, match="not what was written"):
        worked(folder)
    assert {file: (folder / file).read_bytes() for file in EVERY_FILE if file == name} == {name: before[name]}


def test_older_searches_open_and_get_checksums(original: Path, tmp_path: Path) -> None:
    folder = copied(original, tmp_path / "older")
    for name in (CONFIG, COMMIT):
        content = json.loads((folder / name).read_text())
        del content["checksum"]
        (folder / name).write_text(json.dumps(content, indent=1))
    (folder / ".commit.json.4711.tmp").write_text("half a commit of a killed process")
    assert worked(folder) == worked(copied(original, tmp_path / "newer"))
    assert json.loads((folder / COMMIT).read_text())["checksum"]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*EVERY_FILE, "lock"])


def changed_json(rng: np.random.Generator) -> list[tuple[str, Callable[[Any], Any]]]:
    """Every field missing or of another kind, and absurd numbers."""
    changes: list[tuple[str, Callable[[Any], Any]]] = []
    values = [None, True, -1, 0, 2**31, 2**63, 10**400, 1.5, 1e308, "", "x", "=" * 99, [], [[]], {}, {"a": 1}, [-1] * 9]
    fields = {
        CONFIG: ["provenance", "num_actions", "screen_shape", "state_dictionary", "screen_dictionary"],
        COMMIT: ["layer_starts", "num_expanded", "seconds", "files", "checksum", *(f"files.{name}" for name in FILES)],
    }
    for file, names in fields.items():
        for name in names:
            changes.append((file, functools.partial(_without, name)))
            changes += [(file, functools.partial(_with, name, value)) for value in values]
        changes.append((file, functools.partial(_with, "unknown", 1)))
    for name in FILES:
        changes += [
            (COMMIT, functools.partial(_with, f"files.{name}", value))
            for value in ([0, 0], [2**40, 0], [-4, 0], [10**400, 0], [4, 2**32], [4], [4, 0, 0], [4.5, 0], ["4", 0])
        ]
    changes += [
        (COMMIT, functools.partial(_with, "layer_starts", value))
        for value in ([0], [0, 1], [0, 1, 1], [0, 5, 3], [1, 2], [0, 1, 10**30], list(range(100_000)))
    ]
    return changes


def _without(name: str, content: Any) -> Any:
    *path, last = name.split(".")
    for step in path:
        content = content[step]
    content.pop(last, None)
    return content


def _with(name: str, value: Any, content: Any) -> Any:
    *path, last = name.split(".")
    for step in path:
        content = content[step]
    content[last] = value
    return content


@pytest.mark.parametrize("has_checksums", [True, False])
def test_damaged_json_is_one_line(
    has_checksums: bool, original: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    """With checksums and, as in an older search, without: then the numbers must still fit together."""
    expected = worked(copied(original, tmp_path / "copy"))
    num_refused = 0
    for file, change in changed_json(rng):
        folder = copied(original, tmp_path / "changed")
        contents = {name: json.loads((folder / name).read_text()) for name in (CONFIG, COMMIT)}
        if not has_checksums:
            del contents[CONFIG]["checksum"], contents[COMMIT]["checksum"]
        change(contents[file])
        for name, content in contents.items():
            (folder / name).write_text(json.dumps(content))
        found = outcome(folder, HORIZON)
        if isinstance(found, str):
            num_refused += 1
        else:
            # such as other seconds
            assert found == expected, change
    assert num_refused > 300


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000, '{"a": NaN}', "\ufeff{}", "1" * 5000])
@pytest.mark.parametrize("name", [CONFIG, COMMIT])
def test_what_is_no_json_is_one_line(name: str, text: str, original: Path, tmp_path: Path) -> None:
    folder = copied(original, tmp_path / "search")
    (folder / name).write_text(text)
    assert f"delete {folder} and run the same command again" in str(outcome(folder, HORIZON))


@pytest.mark.parametrize("what", ["pipe", "device", "sparse", "missing", "folder", "link to itself"])
@pytest.mark.parametrize("name", EVERY_FILE)
def test_files_of_another_kind(name: str, what: str, original: Path, tmp_path: Path) -> None:
    """None of them makes it wait, or read more than a file of its kind can hold."""
    if (name, what) == (COMMIT, "missing"):
        return  # then there is no search
    folder = copied(original, tmp_path / "search")
    path = folder / name
    size = path.stat().st_size
    if what == "sparse":
        os.truncate(path, 10 * 2**30)
    else:
        path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "folder":
        path.mkdir()
    elif what == "link to itself":
        path.symlink_to(name)
    before = psutil.Process().memory_info().rss
    found = outcome(folder, HORIZON)
    assert psutil.Process().memory_info().rss - before < 2**28
    if what == "sparse" and name in FILES:
        assert isinstance(found, dict)  # behind what was committed: cut off, as after a kill
        assert path.stat().st_size < 10 * size
    elif (name, what) == (COMMIT, "link to itself"):
        assert isinstance(found, dict)  # nothing is there
    else:
        assert isinstance(found, str)


def test_a_declared_size_that_memory_cannot_hold(original: Path, tmp_path: Path) -> None:
    """The keys of 2^36 states, in a file with holes whose checksum nobody has to compute."""
    folder = copied(original, tmp_path / "search")
    commit = json.loads((folder / COMMIT).read_text())
    del commit["checksum"]
    number = 2**36
    for name, width in (("state_keys", 16), ("state_screens", 4), ("state_index", 16)):
        commit["files"][name][0] = width * number
        os.truncate(folder / name, width * number)
    (folder / COMMIT).write_text(json.dumps(commit))
    assert f"needs {16 * number:,} bytes of memory, more than is available" in str(outcome(folder, HORIZON))


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """No file may grow beyond 2 kB, which says what a full disk says: it cannot be written."""
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from small_searches import worked; from toy_mdps import WalkSimulator\n"
        "from efhorizon.errors import StoreError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
        "try: worked(Path(sys.argv[1]), 40, WalkSimulator)\n"
        "except StoreError as error: print(error)\n"
    )
    paths = [str(Path(__file__).parents[1] / "support"), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", script, str(tmp_path / "search")]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "cannot be written (File too large); what was committed is kept" in said
    search = Search(tmp_path / "search")
    assert 0 < search.num_expanded < 200
    search.close()
    assert worked(tmp_path / "search", 40, WalkSimulator) == worked(tmp_path / "whole", 40, WalkSimulator)


def test_what_could_not_be_read_again_is_not_begun(tmp_path: Path) -> None:
    class Huge(WalkSimulator):
        def get_state(self) -> bytes:
            return super().get_state() + bytes(13 << 20)

    with pytest.raises(StoreError, match="bytes are too many for a state and its screen"):
        worked(tmp_path / "search", 1, Huge)
    assert [path.name for path in (tmp_path / "search").iterdir()] == ["lock"]


def test_a_stored_table_is_what_the_search_found(original: Path, tmp_path: Path) -> None:
    search = Search(copied(original, tmp_path / "search"))
    mdp = table(search, 4, rule="none")
    save(mdp, tmp_path / "table")
    stored = load(tmp_path / "table")
    assert all((stored.screen(state) == mdp.screen(state)).all() for state in range(mdp.num_states))
    search.close()
