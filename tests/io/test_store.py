"""The native store: round trip, laziness, corruption."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toy_mdps import random_mdp

from efhorizon import StoreError, TabularMDP, load, save
from efhorizon.io import store


@pytest.fixture
def mdp(rng: np.random.Generator) -> TabularMDP:
    plain = random_mdp(rng, 200, 3, 10)
    return TabularMDP(
        plain.transitions,
        plain.rewards,
        10,
        screens=rng.integers(256, size=(50, 8, 6, 3), dtype=np.uint8),
        screen_mapping=rng.integers(50, size=200),
        states=[rng.bytes(rng.integers(1, 40)) for _ in range(200)],
        metadata={"id": "toy", "returns": [0.5, 1]},
    )


def test_round_trip(tmp_path: Path, mdp: TabularMDP) -> None:
    loaded = load(save(mdp, tmp_path / "table"))
    assert (loaded.transitions == mdp.transitions).all()
    assert (loaded.rewards == mdp.rewards).all()
    assert loaded.horizon == 10
    assert dict(loaded.metadata) == dict(mdp.metadata)
    assert all((loaded.screen(state) == mdp.screen(state)).all() for state in range(200))
    assert loaded.states is not None
    assert mdp.states is not None
    assert all(loaded.states[state] == mdp.states[state] for state in range(200))
    assert store.damage(tmp_path / "table") is None


def test_screens_and_states_are_read_lazily(tmp_path: Path, mdp: TabularMDP) -> None:
    save(mdp, tmp_path / "table")
    for name in ("screens", "state_bytes"):
        (chunk,) = [path for path in (tmp_path / "table" / name / "c").rglob("*") if path.is_file()]
        content = bytearray(chunk.read_bytes())
        content[len(content) // 3] ^= 1
        chunk.write_bytes(content)
    loaded = load(tmp_path / "table")  # does not look at them
    assert loaded.fingerprint() == mdp.fingerprint()
    with pytest.raises(StoreError, match="damaged"):
        loaded.screen(0)
    assert loaded.states is not None
    with pytest.raises(StoreError, match="damaged"):
        loaded.states[0]


def test_every_damaged_file_is_noticed(tmp_path: Path, mdp: TabularMDP) -> None:
    save(mdp, tmp_path / "table")
    files = [path for path in (tmp_path / "table").rglob("*") if path.is_file()]
    assert len(files) == 15  # seven arrays of two files each, and the header
    for file in files:
        good = file.read_bytes()
        for position in (len(good) // 3, len(good) // 2):
            bad = bytearray(good)
            bad[position] ^= 4
            file.write_bytes(bad)
            damage = store.damage(tmp_path / "table")
            # a changed blank in a metadata file changes nothing
            assert damage or file.name == "zarr.json", f"{file} at {position}"
            assert damage is None or "\n" not in damage
        file.write_bytes(good[: len(good) // 2])
        assert store.damage(tmp_path / "table"), file
        file.unlink()
        assert store.damage(tmp_path / "table"), file
        file.write_bytes(good)
    assert store.damage(tmp_path / "table") is None


@pytest.mark.parametrize("place", [("horizon",), ("metadata", "id"), ("metadata", "returns")])
def test_a_header_that_was_edited_is_refused(tmp_path: Path, mdp: TabularMDP, place: tuple[str, ...]) -> None:
    """The arrays are all as they were written, and the file is good JSON: only the header's digest can tell."""
    save(mdp, tmp_path / "table")
    file = tmp_path / "table" / "zarr.json"
    content = json.loads(file.read_text())
    entry = content["attributes"]
    for name in place[:-1]:
        entry = entry[name]
    assert entry[place[-1]] in (10, "toy", [0.5, 1])
    entry[place[-1]] = 11
    file.write_text(json.dumps(content))
    for look in (load, store.header):
        with pytest.raises(StoreError, match="header"):
            look(tmp_path / "table")
    assert store.damage(tmp_path / "table")


@pytest.mark.parametrize("name", ["screens", "state_bytes"])
def test_a_missing_chunk_does_not_read_as_zeros(tmp_path: Path, mdp: TabularMDP, name: str) -> None:
    save(mdp, tmp_path / "table")
    (chunk,) = [path for path in (tmp_path / "table" / name / "c").rglob("*") if path.is_file()]
    chunk.unlink()
    with pytest.raises(StoreError, match=name):
        first_row(load(tmp_path / "table"), name)


def first_row(mdp: TabularMDP, name: str) -> object:
    if name == "screens":
        return mdp.screen(0)
    assert mdp.states is not None
    return mdp.states[0]


def test_a_table_that_needs_more_memory_than_there_is_is_not_read(
    tmp_path: Path, mdp: TabularMDP, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(mdp, tmp_path / "table")
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=100))
    with pytest.raises(StoreError, match="memory"):
        load(tmp_path / "table")


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such table"):
        load(tmp_path / "nothing")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="not an efhorizon table"):
        load(tmp_path / "folder")


def test_an_interrupted_write_keeps_the_old_table(tmp_path: Path, mdp: TabularMDP) -> None:
    save(mdp, tmp_path / "table")

    class Broken:
        shape, dtype = (50, 8, 6, 3), np.dtype(np.uint8)

        def __getitem__(self, index: object) -> None:
            raise OSError(28, "No space left on device")

    other = TabularMDP([[0, -1]], [[0, 1]], 5, screens=Broken(), screen_mapping=[0])
    with pytest.raises(StoreError, match="No space left"):
        save(other, tmp_path / "table")
    assert load(tmp_path / "table").fingerprint() == mdp.fingerprint()
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_a_new_table_replaces_the_old_one(tmp_path: Path, mdp: TabularMDP) -> None:
    save(mdp, tmp_path / "table")
    save(TabularMDP([[0, -1]], [[0, 1]], 5), tmp_path / "table")
    assert load(tmp_path / "table").num_states == 1
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_an_unfinished_table_keeps_its_marks_and_is_no_published_file(tmp_path: Path) -> None:
    mdp = TabularMDP([[1, -1], [-1, -1]], np.zeros((2, 2)), 3, unexplored=[False, True])
    loaded = load(save(mdp, tmp_path / "table"))
    assert not loaded.is_complete
    assert loaded.unexplored is not None
    assert loaded.unexplored.tolist() == [False, True]
    with pytest.raises(StoreError, match="unexplored states"):
        save(mdp, tmp_path / "table.npz")
    assert TabularMDP([[0, 0]], [[0, 0]], 3, unexplored=[False]).is_complete
