"""Damage to the native store is noticed before it changes a result, also in arrays that are read chunk by chunk."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from damaged_files import (
    SHARD_DAMAGE,
    as_older_store,
    everything,
    silent_flips,
    table_with_everything,
    with_header,
)

from efhorizon import StoreError, TabularMDP, load, save
from efhorizon.io import store, zarr_array


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small table has several chunks and shards."""
    monkeypatch.setattr(zarr_array, "_CHUNK_BYTES", 300)
    monkeypatch.setattr(zarr_array, "_CHUNKS_A_SHARD", 2)


@pytest.fixture(params=["new", "older"])
def path(request: pytest.FixtureRequest, tmp_path: Path, small_chunks: None, rng: np.random.Generator) -> Path:
    path = save(table_with_everything(rng), tmp_path / "table")
    return path if request.param == "new" else as_older_store(path)


def first_shard(path: Path, name: str, number: int = 0) -> Path:
    folder = path / name / "c" / str(number)
    return next(file for file in (folder, *folder.rglob("*")) if file.is_file())


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as error:
        everything(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


def test_a_store_with_several_shards_is_read(path: Path, rng: np.random.Generator) -> None:
    assert len(list((path / "screens" / "c").iterdir())) > 2
    table = table_with_everything(np.random.default_rng(20230501))
    loaded = load(path)
    assert table.screens is not None
    assert loaded.screens is not None
    assert (loaded.screens[:] == table.screens[:]).all()
    assert (loaded.screens[7:20] == table.screens[7:20]).all()
    assert (loaded.screens[-1] == table.screens[-1]).all()
    with pytest.raises(IndexError):
        loaded.screens[30]
    assert store.damage(path) is None


@pytest.mark.parametrize("name", ["screens", "state_bytes", "transitions"])
@pytest.mark.parametrize("damage", SHARD_DAMAGE.values(), ids=SHARD_DAMAGE)
def test_a_damaged_shard_is_refused_on_opening(path: Path, name: str, damage: Callable[[Path], object]) -> None:
    damage(first_shard(path, name, 1))
    with pytest.raises(StoreError, match=f"array {name!r} is damaged"):
        load(path)
    assert store.damage(path) is not None


@pytest.mark.parametrize("name", ["screens", "state_bytes", "transitions"])
def test_two_shards_that_changed_places_are_refused(path: Path, name: str) -> None:
    one, other = first_shard(path, name, 0), first_shard(path, name, 1)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    refusal(path)


@pytest.mark.parametrize("name", ["screens", "transitions"])
def test_a_pipe_a_device_a_folder_and_a_loop_of_links_are_refused_at_once(path: Path, name: str) -> None:
    shard = first_shard(path, name)
    shard.unlink()
    os.mkfifo(shard)
    assert "not a regular file" in refusal(path)
    shard.unlink()
    shard.symlink_to("/dev/zero")
    assert "not a regular file" in refusal(path)
    shard.unlink()
    shard.mkdir()
    assert "not a regular file" in refusal(path)
    shard.rmdir()
    shard.symlink_to(shard)
    assert "lost some of its chunks" in refusal(path)


def test_metadata_files_that_are_no_files(path: Path) -> None:
    for file in (path / "zarr.json", path / "screens" / "zarr.json"):
        good = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        refusal(path)
        file.unlink()
        file.symlink_to("/dev/zero")
        refusal(path)
        file.unlink()
        file.write_bytes(b"[" * 200_000)
        refusal(path)
        file.write_bytes(good)
    assert everything(path)


def test_a_header_of_gigabytes_is_not_read(path: Path) -> None:
    with (path / "zarr.json").open("ab") as file:
        file.truncate(1 << 33)  # it takes no space
    assert "too many for the header" in refusal(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("codecs", [{"name": "gzip", "configuration": {"level": 1}}]),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [2**40, 8, 6, 3]}}),
        ("shape", [2**33, 8, 6, 3]),
        ("data_type", "float64"),
    ],
)
def test_another_layout_is_refused(path: Path, name: str, value: object) -> None:
    file = path / "screens" / "zarr.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), name: value}))
    assert "does not describe what was written" in refusal(path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("screens", [2**33, 8, 6, 3]),
        ("screens", [1, 2**20, 2**20, 3]),
        ("screens", [2**70, 1, 1, 1]),
        ("transitions", [2**33, 3]),
        ("transitions", [2**30, 2**20]),
        ("screen_mapping", [2**40]),
        ("state_offsets", [2]),
        ("reward_values", [2**61]),
    ],
)
def test_sizes_that_cannot_be_are_refused_before_memory_is_taken(path: Path, name: str, shape: list[int]) -> None:
    content = json.loads((path / "zarr.json").read_text())
    content["attributes"]["digests"][name]["shape"] = shape
    refusal(with_header(path, content))


def test_a_header_that_names_other_folders_is_refused(path: Path) -> None:
    content = json.loads((path / "zarr.json").read_text())
    content["attributes"]["digests"]["../../elsewhere"] = content["attributes"]["digests"]["transitions"]
    assert "not an efhorizon table" in refusal(with_header(path, content))
    assert "not an efhorizon table" in str(store.damage(path))


@pytest.mark.parametrize("change", ["horizon", "metadata", "digests"])
def test_a_header_that_does_not_match_its_digest_is_refused(path: Path, change: str) -> None:
    content = json.loads((path / "zarr.json").read_text())
    header = content["attributes"]
    if change == "horizon":
        header["horizon"] = 300
    elif change == "metadata":
        header["metadata"]["id"] = "other"
    else:
        header["digests"]["screens"]["xxh128"] = "0" * 32
    (path / "zarr.json").write_text(json.dumps(content))
    assert "the header of the store is damaged" in refusal(path)


@pytest.mark.parametrize("num_states", [60, 20])
def test_a_table_that_was_replaced_since_is_refused(path: Path, num_states: int) -> None:
    opened = load(path)
    assert opened.states is not None
    save(table_with_everything(np.random.default_rng(1), num_states), path)
    with pytest.raises(StoreError, match="replaced by another table"):
        opened.screen(0)
    with pytest.raises(StoreError, match="replaced by another table"):
        opened.states[0]
    shutil.rmtree(path)
    with pytest.raises(StoreError):
        opened.screen(0)


def test_a_table_with_the_same_screens_in_its_place_changes_nothing(path: Path) -> None:
    opened, again = load(path), load(path)
    screen = again.screen(3)
    save(TabularMDP([[0, -1]], [[0, 1]], 5, screens=again.screens, screen_mapping=[0]), path)
    assert (opened.screen(3) == screen).all()


def test_too_little_memory_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(store, "available_memory", lambda: 100)
        assert "more than is available" in refusal(path)

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(zarr_array.np, "empty", no_memory)
    with pytest.raises(MemoryError):
        load(path)


def test_no_flipped_bit_changes_a_result(path: Path, rng: np.random.Generator) -> None:
    silent, refused = silent_flips(path, 600, rng)
    assert silent == []
    assert refused > 400


def test_zarr_reads_the_same(tmp_path: Path, small_chunks: None, rng: np.random.Generator) -> None:
    zarr = pytest.importorskip("zarr")
    mdp = table_with_everything(rng)
    group = zarr.open_group(str(save(mdp, tmp_path / "table")), mode="r", zarr_format=3)
    assert (group["screens"][...] == mdp.screens).all()
    assert (group["transitions"][...] == mdp.transitions).all()
    assert mdp.states is not None
    assert group["state_bytes"][...].tobytes() == b"".join(mdp.states[state] for state in range(mdp.num_states))


def test_what_zarr_wrote_is_read(tmp_path: Path, small_chunks: None, rng: np.random.Generator) -> None:
    """Stores of older versions were written by zarr itself."""
    zarr = pytest.importorskip("zarr")
    path = as_older_store(save(table_with_everything(rng), tmp_path / "table"))
    good = everything(path)
    codec = zarr.codecs.ZstdCodec(level=3, checksum=True)
    with zarr.config.set({"array.write_empty_chunks": True}):
        for folder in [each for each in path.iterdir() if each.is_dir()]:
            array = zarr.open_array(str(folder), mode="r")
            content, chunks, shards = array[...], array.chunks, array.shards
            shutil.rmtree(folder)
            again = zarr.create_array(
                str(folder), shape=content.shape, dtype=content.dtype, chunks=chunks, shards=shards, compressors=[codec]
            )
            again[...] = content
    assert everything(path) == good
