"""Two processes on one search, stopped at every call of the system: one works, the other says so, nothing is lost."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_searches import stepping, worked

from efhorizon.build.search_records import read_commit
from efhorizon.errors import StoreError

HORIZON = 3
Outcome = dict[str, bytes] | str


def no_sync(_: int) -> None:
    """Nothing here is about power cuts, and the disk is slow."""


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", no_sync)
        yield


def outcome(folder: Path) -> Outcome:
    """The table, or what was said instead."""
    try:
        return worked(folder, HORIZON)
    except StoreError as error:
        return str(error)


def serve(connection: Connection) -> None:
    """In the other process: work, and wait at one step until the first process says so."""
    os.fsync = no_sync
    while True:
        folder, pause = connection.recv()

        def before(number: int, pause: int = pause) -> None:
            if number == pause:
                connection.send("paused")
                connection.recv()

        with stepping(before):
            found = outcome(folder)
        connection.send(found)


class Other:
    """The other process, which is paused or done."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()

    def start(self, folder: Path, pause: int) -> Outcome | None:
        """Let it work up to a step; None if it waits there."""
        self._connection.send((folder, pause))
        found = self._connection.recv()
        return None if found == "paused" else found

    def finish(self) -> Outcome:
        self._connection.send("go")
        found: Outcome = self._connection.recv()
        return found

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


@pytest.fixture(scope="module")
def other() -> Iterator[Other]:
    started = Other()
    yield started
    started.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return worked(tmp_path_factory.mktemp("expected"), HORIZON)


def folders(other: Other, tmp_path: Path, every: int = 1) -> Iterator[Path]:
    """Empty folders in which the other process works: it is stopped at its first step, its second, and so on."""
    for pause in itertools.count(1, every):
        folder = tmp_path / str(pause)
        if other.start(folder, pause) is not None:
            assert pause > 150  # calls of the system from nothing to a table
            return
        yield folder
        shutil.rmtree(folder)


def num_committed(folder: Path) -> int:
    commit = read_commit(folder)
    return 0 if commit is None else commit.num_expanded


def check(folder: Path, expected: Outcome, *outcomes: Outcome) -> None:
    """Each of them is right or says why not in one line, and what is left is right."""
    for found in outcomes:
        if isinstance(found, str):
            assert "\n" not in found
        else:
            assert found == expected
    left = num_committed(folder)
    assert worked(folder, HORIZON) == expected
    assert left in (0, num_committed(folder))  # 0: it was deleted
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def says_that_another_works(found: Outcome) -> bool:
    return isinstance(found, str) and "another build is working on this search" in found


def test_one_is_stopped_at_each_step_while_the_other_works(other: Other, expected: Outcome, tmp_path: Path) -> None:
    num_worked = 0
    for folder in folders(other, tmp_path):
        ours = outcome(folder)
        committed = num_committed(folder) if isinstance(ours, dict) else 0
        theirs = other.finish()
        assert num_committed(folder) >= committed
        for one, another in ((ours, theirs), (theirs, ours)):
            assert isinstance(one, dict) or (says_that_another_works(one) and isinstance(another, dict))
        num_worked += isinstance(ours, dict)
        check(folder, expected, ours, theirs)
    assert 0 < num_worked < 10  # until the other process had the lock


def test_both_are_stopped_somewhere(other: Other, expected: Outcome, tmp_path: Path, rng: np.random.Generator) -> None:
    """The first waits, the second goes on to some step, the first goes to its end, the second too."""
    for trial in range(300):
        near_the_start = trial % 3 > 0  # where it is decided who works
        pauses = rng.integers(1, 30 if near_the_start else 150, size=2).tolist()
        folder, finished = tmp_path / str(trial), list[Outcome]()
        assert other.start(folder, pauses[0]) is None

        def before(number: int, pause: int = pauses[1], finished: list[Outcome] = finished) -> None:
            if number == pause:
                finished.append(other.finish())

        with stepping(before):
            ours = outcome(folder)
        theirs = finished[0] if finished else other.finish()
        assert isinstance(ours, dict) or isinstance(theirs, dict)
        check(folder, expected, ours, theirs)
        shutil.rmtree(folder)


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def remove_lock(folder: Path) -> None:
    (folder / "lock").unlink(missing_ok=True)


@pytest.mark.parametrize("meanwhile", [remove_folder, remove_lock], ids=["folder", "lock"])
@pytest.mark.parametrize("ours_too", [True, False])
def test_the_folder_or_the_lock_is_removed_meanwhile(
    meanwhile: Callable[[Path], Any],
    ours_too: bool,
    other: Other,
    expected: Outcome,
    tmp_path: Path,
) -> None:
    for folder in folders(other, tmp_path, every=1 if ours_too else 3):
        meanwhile(folder)
        ours = outcome(folder) if ours_too else ""
        committed = num_committed(folder) if isinstance(ours, dict) else 0
        theirs = other.finish()
        assert num_committed(folder) >= committed
        if meanwhile is remove_folder:
            assert isinstance(ours, dict) or not ours_too  # a folder of its own
        else:
            assert isinstance(ours, dict) or isinstance(theirs, dict)
        check(folder, expected, ours, theirs)


def test_a_file_is_removed_meanwhile(other: Other, tmp_path: Path) -> None:
    """Then nothing more is committed, and the next one says so."""
    said = set()
    for folder in folders(other, tmp_path, every=5):
        (folder / "transitions").unlink(missing_ok=True)
        for found in (other.finish(), outcome(folder)):
            if isinstance(found, str):
                assert "\n" not in found
                said.add(found.split(": ", 1)[1])
    assert "deleted while the search was running; run the same command to begin again" in said


class KilledError(BaseException):
    """Stands for kill -9: from here on nothing reaches the disk."""


def test_killed_at_each_step(expected: Outcome, tmp_path: Path) -> None:
    before = 0
    for last in range(1, 150):
        folder = tmp_path / str(last)

        def killed(number: int, last: int = last) -> None:
            if number >= last:
                raise KilledError

        with stepping(killed), pytest.raises(KilledError):
            worked(folder, HORIZON)
        committed = num_committed(folder)
        assert committed >= before
        before = committed
        assert worked(folder, HORIZON) == expected
        assert num_committed(folder) >= committed
        assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
        shutil.rmtree(folder)
    assert before > 0
