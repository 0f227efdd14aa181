"""How a table is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from efhorizon.bounds import examples
from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.io.tables import load_table, save, table_names, table_path


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(examples.sparse_rewards(3), tmp_path / "tables" / "sparse")
    return Path("tables")


def test_by_name_or_by_path(tables: Path, tmp_path: Path) -> None:
    for given in ("sparse", "tables/sparse", str(tmp_path / "tables" / "sparse")):
        assert load_table(Path(given), tables).horizon == 3
    save(examples.sparse_rewards(5), tmp_path / "sparse")
    assert load_table(Path("sparse"), tables).horizon == 3  # the folder of tables comes first
    assert load_table(Path("./sparse"), tmp_path / "elsewhere").horizon == 5
    assert table_path("sparse", tables) == tables / "sparse"


def test_an_npz_is_a_table_too(tables: Path, tmp_path: Path) -> None:
    save(examples.sparse_rewards(4), tmp_path / "tables" / "flat.npz")
    for given in ("flat", "flat.npz", "tables/flat.npz", tmp_path / "tables" / "flat.npz"):
        assert load_table(given, tables, horizon=4).num_actions == 2
    assert load_table("sparse", tables, horizon=2).horizon == 2
    (tmp_path / "tables" / "searches").mkdir()  # where `build` keeps what it has explored
    assert table_names(tables) == ["flat", "sparse"]
    assert table_names(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("freeway_10_fs30", "; build it first: efhorizon build freeway_10_fs30 --out tables"),
        ("sprse", "; did you mean sparse?"),
        ("MiniGrid-Empty-5x5", "; did you mean MiniGrid-Empty-5x5-v0 (build it first), "),
        ("nothing/at/all", ""),
    ],
)
def test_what_is_not_there(name: str, hint: str, tables: Path) -> None:
    with pytest.raises(StoreError) as caught:
        load_table(Path(name), tables)
    message = f"{name}: no such table, and none of that name in tables/"
    assert str(caught.value).startswith(message + hint)
    if not hint:
        assert str(caught.value) == message


def test_without_a_folder_of_tables(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"build it first: efhorizon build pong_20_fs30 --out .*nowhere"):
        table_path(Path("pong_20_fs30"), tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["x", "x.npz"])
def test_metadata_that_could_not_be_read_is_not_written(tmp_path: Path, name: str) -> None:
    mdp = examples.sparse_rewards(3).with_metadata(id=["not", "a", "name"])
    with pytest.raises(InvalidTableError, match="metadata"):
        save(mdp, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
