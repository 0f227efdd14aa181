"""Files and folders that are complete or not there: what happens on the way, in which order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from efhorizon.io.files import write_json, written_aside


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is brought to the disk, and what is renamed, by name."""
    found: list[tuple[str, str]] = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor: int) -> None:
        found.append(("fsync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        fsync(descriptor)

    def watched_replace(path: Path, target: Path) -> Path:
        found.append(("rename", path.name))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux says which file a number stands for")
def test_data_is_on_the_disk_before_its_name_is(tmp_path: Path, events: list[tuple[str, str]]) -> None:
    with written_aside(tmp_path / "folder" / "table") as temporary:
        (temporary / "deep").mkdir(parents=True)
        (temporary / "deep" / "chunk").write_text("data")
        assert events == []
    name = temporary.name
    assert events == [("fsync", "chunk"), ("fsync", "deep"), ("fsync", name), ("rename", name), ("fsync", "folder")]
    assert (tmp_path / "folder" / "table" / "deep" / "chunk").read_text() == "data"


@pytest.mark.parametrize("atomic", [True, False])
def test_a_folder_takes_the_place_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, atomic: bool) -> None:
    if not atomic:  # a system that cannot swap two folders in one step
        monkeypatch.setattr("efhorizon.io.files.ctypes.CDLL", lambda name: object())
    path = tmp_path / "table"
    for number in range(3):
        with written_aside(path) as temporary:
            temporary.mkdir()
            (temporary / str(number)).touch()
        assert [each.name for each in path.iterdir()] == [str(number)]
        assert [each.name for each in tmp_path.iterdir()] == ["table"]


@pytest.mark.parametrize("is_folder", [True, False])
def test_after_an_error_all_is_as_before(tmp_path: Path, is_folder: bool) -> None:
    path = tmp_path / "table"
    write_json(path, {"old": True})
    before = path.read_bytes()

    def fail_half_way() -> None:
        with written_aside(path) as temporary:
            if is_folder:
                temporary.mkdir()
                temporary = temporary / "half"
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / "table").symlink_to(tmp_path / "elsewhere")
    with written_aside(tmp_path / "table") as temporary:
        temporary.write_text("new")
    assert not (tmp_path / "table").is_symlink()
    assert (tmp_path / "table").read_text() == "new"
    assert (tmp_path / "elsewhere" / "kept").exists()
