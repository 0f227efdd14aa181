"""The published layout in both directions, and files that must be refused."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from damaged_files import everything, silent_flips, table_with_everything
from toy_mdps import random_mdp

from efhorizon import EfhorizonError, StoreError, TabularMDP, save
from efhorizon.io import bridge_npz, npz
from efhorizon.io.tables import load

# of the three tables that the authors published; the files themselves are not part of the project
PUBLISHED = {
    "freeway_10_fs30": ((197, 3), 10, "925253bb0f2cc9c7dd29dfda77580d4cf3f2dccafe5adec84d01b299ddbc753f"),
    "maze_easy_l0_30_fs1": ((243, 9), 30, "fa9f1f77d161a792c06cc64803675ce403b444e208b3c60491e37b2fc18b7002"),
    "MiniGrid-KeyCorridorS3R1-v0": ((168, 6), 100, "a1defee7a61868865504e1664121e2fb634537e2e998b01ede11ec4a8877a59d"),
}
REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "bridge"


def arrays(**changes: object) -> dict[str, object]:
    content: dict[str, object] = {
        "transitions": np.array([[1, -1], [0, 1]], np.int64),
        "rewards": np.array([[0, 1], [0.1, 0]], np.float32),
        "screens": np.arange(2 * 4 * 3 * 3, dtype=np.uint8).reshape(2, 4, 3, 3),
        "screen_mapping": np.array([1, 0], np.int64),
        "states": np.array([[1, 2, 3], [4, 5, 0]], np.uint8),
        "state_lengths": np.array([3, 2], np.uint64),
    }
    content.update(changes)
    return {name: array for name, array in content.items() if array is not None}


def written(path: Path, **changes: object) -> Path:
    np.savez_compressed(path, **arrays(**changes))  # type: ignore[arg-type]
    return path


def test_a_published_file_is_read(tmp_path: Path) -> None:
    mdp = load(written(tmp_path / "consolidated.npz"), horizon=7)
    assert mdp.horizon == 7
    assert mdp.transitions.tolist() == [[1, -1], [0, 1]]
    assert mdp.rewards.tolist() == [[0.0, 1.0], [0.1, 0.0]]  # the decimal, not float32's neighbour of it
    assert mdp.screen(0).tolist() == np.arange(36, 72).reshape(4, 3, 3).tolist()
    assert mdp.states is not None
    assert [mdp.states[0], mdp.states[1]] == [b"\1\2\3", b"\4\5"]


def test_the_layout_survives_a_round_trip_unchanged(tmp_path: Path) -> None:
    mdp = load(written(tmp_path / "one.npz"), horizon=7)
    save(mdp, tmp_path / "two.npz")
    with np.load(tmp_path / "two.npz", allow_pickle=False) as file:
        assert set(file.files) == set(arrays())
        for name, array in arrays().items():
            assert file[name].dtype == array.dtype  # type: ignore[attr-defined]
            assert (file[name] == array).all()
    assert load(tmp_path / "two.npz").horizon == 7  # the comment of the archive says it


def test_screens_and_states_are_optional(tmp_path: Path) -> None:
    path = written(tmp_path / "x.npz", screens=None, screen_mapping=None, states=None, state_lengths=None)
    mdp = load(path, horizon=3)
    assert mdp.screens is None
    assert mdp.states is None
    save(mdp, tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as file:
        assert sorted(file.files) == ["rewards", "transitions"]


def test_horizon_from_the_folder_name_or_the_longest_episode(tmp_path: Path) -> None:
    folder = tmp_path / "freeway_10_fs30"
    folder.mkdir()
    assert load(written(folder / "consolidated.npz")).horizon == 10
    acyclic = np.array([[1, -1], [-1, -1]])
    assert load(written(tmp_path / "x.npz", transitions=acyclic)).horizon == 2
    with pytest.raises(EfhorizonError, match="does not say its horizon"):
        load(written(tmp_path / "y.npz"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transitions": None}, "no array 'transitions'"),
        ({"rewards": None}, "no array 'rewards'"),
        ({"transitions": np.array([[1, -1], [0, 2]])}, "state 1, action 1 is 2"),
        ({"transitions": np.array([1, 0])}, "shape"),
        ({"rewards": np.array([[0, np.nan], [0, 0]], np.float32)}, "nan"),
        ({"rewards": np.zeros((3, 2), np.float32)}, "shape"),
        ({"screens": None}, "must both be"),
        ({"screen_mapping": np.array([0, 9])}, "outside"),
        ({"state_lengths": None}, "must both be"),
        ({"state_lengths": np.array([3, 9], np.uint64)}, "beyond"),
        ({"states": np.zeros((5, 3), np.uint8)}, "2 states but 5 raw states"),
        ({"rewards": np.array([[{}, None], [None, None]], object)}, "pickled"),
        ({"states": np.array([[{}], [None]], object)}, "pickled"),
    ],
)
def test_malformed_files_are_refused_in_one_line(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = written(tmp_path / "bad.npz", **changes)
    with pytest.raises(EfhorizonError, match=message) as error:
        load(path, horizon=3)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_truncated_and_damaged_files_are_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    save(random_mdp(rng, 500, 3, 10), tmp_path / "good.npz")
    content = (tmp_path / "good.npz").read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 10):
        (tmp_path / "bad.npz").write_bytes(content[:size])
        with pytest.raises(EfhorizonError):
            load(tmp_path / "bad.npz", horizon=3)
    damaged = bytearray(content)
    for position in range(200, 400):
        damaged[position] ^= 255
    (tmp_path / "bad.npz").write_bytes(damaged)
    with pytest.raises(EfhorizonError):
        load(tmp_path / "bad.npz", horizon=3)


def test_a_header_that_promises_too_much_takes_no_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (10**15, 3)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("transitions.npy", header.getvalue())
        archive.writestr("rewards.npy", header.getvalue())
    with pytest.raises(EfhorizonError, match=r"says .* bytes but holds 0"):
        load(tmp_path / "bomb.npz", horizon=3)


def test_a_file_that_needs_more_memory_than_there_is_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header may be honest and the data compressed a thousandfold: sizes are compared with memory as well."""
    large = {"transitions": np.zeros((1000, 2), np.int64), "rewards": np.zeros((1000, 2))}
    path = written(tmp_path / "x.npz", **{**dict.fromkeys(arrays()), **large})
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1000))
    with pytest.raises(EfhorizonError, match="memory") as error:
        load(path, horizon=3)
    assert "\n" not in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(EfhorizonError, match="no such file"):
        load(tmp_path / "nothing.npz")


def test_an_interrupted_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path / "x.npz")
    before = path.read_bytes()
    mdp = load(path, horizon=3)

    class Broken:
        shape, dtype = (2, 4, 3, 3), np.dtype(np.uint8)

        def __getitem__(self, index: object) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="space"):
        save(TabularMDP(mdp.transitions, mdp.rewards, 3, screens=Broken(), screen_mapping=[0, 0]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables(name: str) -> None:
    path = REFERENCE / name / "consolidated.npz"
    if not path.exists():
        pytest.skip("the authors' files are not on this machine")
    shape, horizon, fingerprint = PUBLISHED[name]
    mdp = load(path)
    assert (mdp.transitions.shape, mdp.horizon, mdp.fingerprint()) == (shape, horizon, fingerprint)


def test_no_flipped_bit_of_an_export_changes_a_result(tmp_path: Path, rng: np.random.Generator) -> None:
    silent, refused = silent_flips(save(table_with_everything(rng), tmp_path / "toy.npz"), 800, rng)
    assert silent == []
    assert refused > 400


def test_every_flipped_bit_of_the_comment_and_the_directory_is_harmless(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    """In a folder whose name says another horizon, which is what counts where the comment says none."""
    path = tmp_path / "freeway_10_fs30" / "consolidated.npz"
    path.parent.mkdir()
    save(table_with_everything(rng), path)
    content, good = path.read_bytes(), everything(path)
    with zipfile.ZipFile(path) as archive:
        directory = archive.start_dir
    for position in range(directory, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            found = everything(path)
        except EfhorizonError:
            continue
        assert found == good, position


def with_comment(path: Path, comment: bytes) -> Path:
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = comment
    return path


@pytest.mark.parametrize("name", ["horizon", "metadata"])
def test_a_comment_that_does_not_match_its_checksum_is_refused(tmp_path: Path, name: str) -> None:
    path = save(load(written(tmp_path / "one.npz"), horizon=100), tmp_path / "two.npz")
    with zipfile.ZipFile(path) as archive:
        comment = json.loads(archive.comment)
    assert comment["horizon"] == 100
    changed = {"horizon": 300, "metadata": {"id": "other"}}[name]
    with_comment(path, json.dumps({**comment, name: changed}).encode())
    with pytest.raises(EfhorizonError, match="does not match its checksum"):
        load(path)
    del comment[name]
    with_comment(path, json.dumps(comment).encode())
    with pytest.raises(EfhorizonError, match="does not match its checksum"):
        load(path)


def test_a_comment_without_a_checksum_is_an_older_one(tmp_path: Path) -> None:
    path = with_comment(written(tmp_path / "x.npz"), b'{"horizon": 12, "metadata": {"id": "older"}}')
    assert (load(path).horizon, load(path).metadata["id"]) == (12, "older")
    assert load(with_comment(path, b"made with another tool"), horizon=3).metadata == {}


def test_an_array_of_another_file_does_not_fit_the_checksum(tmp_path: Path) -> None:
    path = save(load(written(tmp_path / "one.npz"), horizon=100), tmp_path / "two.npz")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    members["rewards.npy"] = members["rewards.npy"][:-4] + np.float32(5).tobytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = comment
    with pytest.raises(EfhorizonError, match="does not match its checksum"):
        load(path)


def test_a_file_whose_end_is_missing_is_refused(tmp_path: Path) -> None:
    path = save(load(written(tmp_path / "one.npz"), horizon=100), tmp_path / "freeway_10_fs30" / "x.npz")
    content = path.read_bytes()
    for missing in (1, 30, 60, len(content) - content.index(b'{"horizon"') - 1, len(content) - content.rindex(b"PK")):
        path.write_bytes(content[:-missing])
        with pytest.raises(EfhorizonError):
            load(path)


def test_a_file_that_was_replaced_since_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "x.npz")
    opened = load(path, horizon=3)
    assert opened.states is not None
    written(path, screens=np.zeros((2, 4, 3, 3), np.uint8), states=np.zeros((2, 3), np.uint8))
    with pytest.raises(StoreError, match="replaced by another file"):
        opened.screen(0)
    with pytest.raises(StoreError, match="replaced by another file"):
        opened.states[0]


@pytest.mark.parametrize("name", ["rewards", "screen_mapping", "states", "state_lengths"])
def test_shapes_are_compared_before_memory_is_taken(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file can declare gigabytes: zeros compress well."""
    shapes = {"rewards": (10**6, 3), "states": (10**6, 4)}
    path = written(tmp_path / "x.npz", **{name: np.zeros(shapes.get(name, (10**6,)), np.uint8)})
    monkeypatch.setattr(npz.Member, "array", lambda member: pytest.fail("data was read"))
    with pytest.raises(EfhorizonError, match=r"shape|raw states"):
        load(path, horizon=3)


def test_too_little_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "x.npz")
    opened = load(path, horizon=3)
    with monkeypatch.context() as patched:
        for module in (bridge_npz, npz):
            patched.setattr(module, "available_memory", lambda: 30)
        with pytest.raises(EfhorizonError, match="bytes of memory, more than is available"):
            load(path, horizon=3)
        with pytest.raises(EfhorizonError, match="array 'screens' needs 72 bytes of memory, more than is available"):
            opened.screen(0)

    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(npz.Member, "_content", no_memory)
    with pytest.raises(MemoryError):
        load(path, horizon=3)


def rewritten(path: Path, name: str, content: bytes, **options: int) -> Path:
    """The same archive with another member in place of one."""
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for each, old in members.items():
            archive.writestr(each, content if each == name else old, **(options if each == name else {}))
    return path


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (True, True), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1, -4), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2L, 2",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ", 2), }",
        "(" * 9000,
        "-" * 9000 + "1",
        "{'descr': 'V0', 'fortran_order': False, 'shape': (1000000000000, 2), }",
        "{'descr': '<c16', 'fortran_order': False, 'shape': (1, 2), }",
        "{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (2, 2), }",
        "\0\0\0",
        "",
    ],
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_damaged_headers_of_arrays_are_refused(tmp_path: Path, header: str, version: int) -> None:
    text = header.encode().ljust(118) + b"\n"
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    content = b"\x93NUMPY" + bytes([version, 0]) + length + text + np.array([[1, -1], [0, 1]]).tobytes()
    path = rewritten(written(tmp_path / "x.npz"), "transitions.npy", content)
    with pytest.raises(EfhorizonError) as error:
        load(path, horizon=3)
    assert "\n" not in str(error.value)


def test_encrypted_and_oddly_compressed_members_are_refused(tmp_path: Path) -> None:
    good = written(tmp_path / "x.npz").read_bytes()
    for offset, value in ((8, 1), (10, 99), (10, 12), (10, 9), (10, 0)):  # flags and method in the directory
        for start in (good.rindex(b"PK\1\2", 0, good.index(b"rewards.npy", good.index(b"PK\1\2"))), None):
            content = bytearray(good)
            at = (start if start is not None else good.index(b"PK\1\2")) + offset
            content[at] = value
            (tmp_path / "bad.npz").write_bytes(content)
            with pytest.raises(EfhorizonError) as error:
                load(tmp_path / "bad.npz", horizon=3)
            assert "\n" not in str(error.value)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(written(tmp_path / "y.npz")) as archive:
            content_of_one = archive.read("rewards.npy")
        path = rewritten(tmp_path / "y.npz", "rewards.npy", content_of_one, compress_type=method)
        with pytest.raises(EfhorizonError, match="encrypted or compressed in a way"):
            load(path, horizon=3)


def test_a_pipe_a_device_a_folder_and_a_loop_of_links_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "zero.npz").symlink_to("/dev/zero")
    (tmp_path / "folder.npz").mkdir()
    for name in ("pipe", "zero", "folder"):
        with pytest.raises(StoreError, match="not a regular file"):
            load(tmp_path / f"{name}.npz", horizon=3)
    (tmp_path / "loop.npz").symlink_to(tmp_path / "loop.npz")
    with pytest.raises(StoreError, match="no such file"):
        load(tmp_path / "loop.npz", horizon=3)


@pytest.mark.parametrize("value", [1e39, -1e39, 1e308])
def test_rewards_beyond_float32_are_refused(tmp_path: Path, value: float) -> None:
    path = written(tmp_path / "x.npz", rewards=np.array([[0, value], [0, 0]]))
    with pytest.raises(EfhorizonError, match="state 0, action 1"):
        load(path, horizon=3)


@pytest.mark.parametrize("horizon", ["1000000", "2147483648", "9223372036854775808", "9" * 400, "true", "1.5", "null"])
def test_horizons_that_cannot_be_planned_are_refused(tmp_path: Path, horizon: str) -> None:
    path = with_comment(written(tmp_path / "x.npz"), f'{{"horizon": {horizon}, "metadata": {{}}}}'.encode())
    with pytest.raises(EfhorizonError, match="horizon must be"):
        load(path)


@pytest.mark.parametrize(
    "metadata",
    [
        *([], "x", 3, {"id": 3}, {"id": ["a"]}, {"suite": {}}, {"inputs": 1}, {"inputs": {"ignore_screens": "yes"}}),
        *({"returns": [1]}, {"returns": "no"}, {"verification": {}}, {"verification": {"verified": 1}}),
        *({"screen_format": ["rgb"]}, {"provenance": []}, {"num_states_raw": -1}, {"num_states_raw": "many"}),
        *({"reward_factor": "nan"}, {"reward_factor": float("nan")}, {"degenerate": 2}, {"frameskip": 10**400}),
    ],
)
def test_metadata_of_other_types_is_refused(tmp_path: Path, metadata: object) -> None:
    comment = json.dumps({"horizon": 3, "metadata": metadata}).encode()
    with pytest.raises(EfhorizonError, match="metadata is not as efhorizon writes it") as error:
        load(with_comment(written(tmp_path / "x.npz"), comment))
    assert "\n" not in str(error.value)
