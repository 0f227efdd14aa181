"""The published layout in both directions, and files that must be refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toy_mdps import random_mdp

from efhorizon import EfhorizonError, TabularMDP, load, save

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
