"""What killed processes leave behind is removed, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from efhorizon.bounds import examples
from efhorizon.io import leftovers, tables
from efhorizon.io.files import write_json, written_aside

KILLED = """
import os, signal, sys
from pathlib import Path
from efhorizon.io.files import written_aside
with written_aside(Path(sys.argv[1])) as temporary:
    if sys.argv[2] == "folder":
        temporary.mkdir()
        (temporary / "zarr.json").write_text("{}")
    else:
        temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
DEAD = 2**22 + 1  # larger than any process number that Linux gives


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def made_long_ago(path: Path, seconds: float = 2 * 24 * 3600) -> Path:
    path.write_text("half")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_killed_process_leaves_something_that_the_next_one_removes(tmp_path: Path, kind: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x"), kind], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(hidden(tmp_path)) == 1
    assert tables.table_names(tmp_path) == []  # half a table is none
    write_json(tmp_path / "another.json", {})
    assert hidden(tmp_path) == []


def test_what_living_processes_and_other_places_write_stays(tmp_path: Path) -> None:
    place = leftovers._place()
    living = tmp_path / f".x.efh-{place}-{os.getppid()}.tmp"
    elsewhere = tmp_path / f".x.efh-{'0' * 16}-{DEAD}.tmp"
    older = tmp_path / f".x.{DEAD}.tmp"
    for path in (living, elsewhere, older):
        path.write_text("half")
    write_json(tmp_path / "x", {})
    assert hidden(tmp_path) == sorted(path.name for path in (living, elsewhere, older))


def test_what_has_not_changed_for_a_day_is_removed(tmp_path: Path) -> None:
    made_long_ago(tmp_path / f".x.efh-{'0' * 16}-{DEAD}.tmp")
    made_long_ago(tmp_path / f".x.{DEAD}.tmp")
    made_long_ago(tmp_path / f".x.{os.getppid()}.tmp")
    folder = tmp_path / f".y.efh-{'0' * 16}-{DEAD}.tmp"
    folder.mkdir()
    (folder / "new").write_text("somebody is at work")
    os.utime(folder, (0, 0))
    somebody_elses = made_long_ago(tmp_path / f".other.{DEAD}.tmp")  # no name of ours: nothing of that name is written
    write_json(tmp_path / "x", {})
    assert hidden(tmp_path) == sorted([folder.name, somebody_elses.name])


@pytest.mark.parametrize("name", [f".x.efh-PLACE-{DEAD}.old", f".x.{DEAD}.old"])
def test_the_only_version_that_is_left_goes_back_to_its_place(tmp_path: Path, name: str) -> None:
    """As after a kill between two renames, on systems that cannot exchange folders in one step."""
    made_long_ago(tmp_path / name.replace("PLACE", leftovers._place()))
    with pytest.raises(OSError, match="full"), written_aside(tmp_path / "x"):
        raise OSError("full")
    assert (tmp_path / "x").read_text() == "half"
    assert hidden(tmp_path) == []


def test_what_was_replaced_already_is_removed(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("new")
    made_long_ago(tmp_path / f".x.efh-{leftovers._place()}-{DEAD}.old")
    write_json(tmp_path / "y", {})
    assert (tmp_path / "x").read_text() == "new"
    assert hidden(tmp_path) == []


def test_a_whole_table_of_a_dead_process(tmp_path: Path) -> None:
    table = tables.save(examples.sparse_rewards(3), tmp_path / "sparse")
    table.rename(tmp_path / f".sparse.efh-{leftovers._place()}-{DEAD}.tmp")
    leftovers._of_older_versions.clear()  # as in another process
    tables.save(examples.sparse_rewards(4), tmp_path / "sparse")
    assert [path.name for path in tmp_path.iterdir()] == ["sparse"]


def test_a_folder_that_cannot_be_listed_stops_nothing(tmp_path: Path) -> None:
    leftovers.remove(tmp_path / "nowhere", "x")
