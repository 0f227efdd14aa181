"""A published study: what is in it, that it is the same each time, and what other programs see in it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from efhorizon.commands import main
from efhorizon.dataset import registry as registries
from efhorizon.errors import StoreError
from efhorizon.evaluation.source import study_data
from efhorizon.io.tables import load
from efhorizon.library import load as load_by_name
from efhorizon.stochastic import store

LOCK, MAZE = "freeway_10_fs30", "maze_easy_l0_30_fs1"
ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_study_gives_the_same_bytes(study: Path, dataset: Path, tmp_path: Path) -> None:
    assert main(["dataset", "publish", str(study), str(tmp_path / "again")]) == 0
    assert files(tmp_path / "again") == files(dataset)


def test_every_file_has_its_checksum(dataset: Path) -> None:
    registry = registries.read(dataset / "registry.json")
    found = files(dataset)
    sums = dict(reversed(line.split("  ")) for line in found.pop("SHA256SUMS").decode().splitlines())
    assert sums == {path: hashlib.sha256(content).hexdigest() for path, content in found.items()}
    assert found.keys() - {"registry.json"} == registry.files.keys()
    assert all(len(found[path]) == entry.size for path, entry in registry.files.items())


def test_what_each_mdp_has(dataset: Path) -> None:
    mdps = registries.read(dataset / "registry.json").mdps
    assert {name: set(mdp.parts) for name, mdp in mdps.items()} == {
        LOCK: {"table", "bridge", "screens", "analysis", "runs", "pictures"},
        MAZE: {"table", "bridge", "analysis", "pictures"},
        "other": {"table", "bridge"},
    }
    assert mdps[LOCK].num_runs == 3
    assert mdps[LOCK].suite == "atari"
    every = [part for mdp in mdps.values() for part in mdp.parts.values()]
    assert {part.path.split("/")[0] for part in every if part.separate} == {"screens"}
    assert {part.path.split("/")[0] for part in every if not part.separate} == {"mdps"}


def test_both_layouts_are_the_table(study: Path, dataset: Path) -> None:
    for name in (LOCK, MAZE):
        original = load(study / "tables" / name)
        assert load(dataset / "mdps" / name / "table").fingerprint() == original.fingerprint()
        npz = np.load(dataset / "mdps" / name / "consolidated.npz", allow_pickle=False)
        assert (npz["transitions"] == original.transitions).all()
        assert (npz["rewards"] == original.rewards).all()
        assert load(dataset / "mdps" / name / "consolidated.npz").horizon == original.horizon


def test_screens_of_commercial_games_are_apart(study: Path, dataset: Path, tmp_path: Path) -> None:
    assert load(dataset / "mdps" / LOCK / "table").screens is None
    assert load(dataset / "screens" / LOCK / "table").num_screens == 4
    assert load(dataset / "mdps" / MAZE / "table").num_screens == 3
    assert not any("screens" in path for path in files(dataset / "mdps" / LOCK))
    assert main(["dataset", "publish", str(study), str(tmp_path / "out"), "--no-screens"]) == 0
    assert not (tmp_path / "out" / "screens").exists()
    assert main(["dataset", "verify", str(tmp_path / "out")]) == 0


def test_it_can_be_evaluated_as_it_is(study: Path, dataset: Path) -> None:
    ours, theirs = study_data(dataset), study_data(study)
    assert ours.summaries == theirs.summaries
    assert ours.analyses.keys() == theirs.analyses.keys()
    assert len(ours.runs) == 3


def test_the_index_names_every_part(dataset: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    rows = {row["mdp_name"]: row for row in parquet.read_table(dataset / "index.parquet").to_pylist()}
    assert rows.keys() == {LOCK, MAZE, "other"}
    assert rows[LOCK]["table"] == f"mdps/{LOCK}/table"
    assert rows[LOCK]["screens"] == f"screens/{LOCK}/table"
    assert rows["other"]["runs"] is None
    assert (rows[LOCK]["num_states"], rows[LOCK]["num_actions"], rows[LOCK]["horizon"]) == (4, 2, 4)


def test_mlcroissant_validates_it_and_reads_the_rows(dataset: Path) -> None:
    croissant = pytest.importorskip("mlcroissant")
    described = croissant.Dataset(str(dataset / "croissant.json"))
    assert described.metadata.ctx.issues.errors == set()
    names = {record["mdps/mdp_name"].decode() for record in described.records("mdps")}
    assert names == {LOCK, MAZE, "other"}
    assert sum(1 for _ in described.records("runs")) == 3


def test_the_card_answers_for_what_is_in_it(dataset: Path) -> None:
    card = (dataset / "README.md").read_text()
    assert "3 MDPs, 3 runs" in card
    assert "GORP: 3 runs" in card
    assert 'ef.load("freeway_10_fs30")' in card
    assert "0 of 3 MDPs come without their table, 2 without runs" in card


def test_an_export_has_no_tables(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A data set is an export too. Published again without its tables, it has analyses and runs, and says so."""
    out = tmp_path / "out"
    assert main(["dataset", "publish", str(dataset), str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["num_mdps"], said["num_tables"], said["num_analyses"], said["num_runs"]) == (2, 0, 2, 3)
    assert "2 of 2 MDPs come without their table" in (out / "README.md").read_text()
    assert "This data set has no tables" in (out / "README.md").read_text()
    with pytest.raises(StoreError, match="has no table of it"):
        load_by_name(LOCK, remote=out)


@pytest.mark.slow
def test_the_committed_study_without_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["dataset", "publish", str(ROOT / "data" / "study"), str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    registry = registries.read(out / "registry.json")
    assert said["num_tables"] == 0
    assert said["num_mdps"] == len(registry.mdps) >= 270
    assert said["num_bytes"] < 60e6
    assert "come without their table" in (out / "README.md").read_text()
    assert main(["dataset", "verify", str(out)]) == 0


def test_tables_with_chance(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are published and downloaded for the commands; `ef.load` says that it does not open them."""
    from efhorizon.stochastic.sticky import sticky

    with_chance = sticky(load(study / "tables" / LOCK), 0.25).with_metadata(id="chance", suite="atari")
    store.save(with_chance, tmp_path / "more" / "chance")
    out = tmp_path / "out"
    assert main(["dataset", "publish", str(study), str(out), "--tables", str(tmp_path / "more")]) == 0
    mdp = registries.read(out / "registry.json").mdps["chance"]
    assert (mdp.kind, set(mdp.parts), mdp.num_states) == ("stochastic", {"table"}, with_chance.num_states)
    with pytest.raises(StoreError, match="has no table of it that this version opens"):
        load_by_name("chance", remote=out)
    capsys.readouterr()
    into = ["--remote", str(out), "--into", str(tmp_path / "tables")]
    assert main(["dataset", "download", "chance", *into]) == 0
    assert store.load(tmp_path / "tables" / "chance").num_states == with_chance.num_states


def test_what_is_not_a_data_set_is_not_replaced(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert main(["dataset", "publish", str(study), str(tmp_path / "mine")]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert files(tmp_path / "mine") == {"thesis.txt": b"years of work"}
    assert main(["dataset", "publish", str(study), str(study)]) == 1
    assert main(["dataset", "publish", str(study), str(tmp_path / "out"), "--name", "../x"]) == 1


def test_a_table_that_was_not_analyzed_as_it_is_is_left_out(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = Path(shutil.copytree(study, tmp_path / "study"))
    shutil.rmtree(changed / "tables" / LOCK)
    shutil.copytree(changed / "tables" / MAZE, changed / "tables" / LOCK)
    assert main(["dataset", "publish", str(changed), str(tmp_path / "out")]) == 0
    assert f"{LOCK}: its table is left out" in capsys.readouterr().err
    assert "table" not in registries.read(tmp_path / "out" / "registry.json").mdps[LOCK].parts


@pytest.mark.parametrize("damage", ["changed", "missing", "added"])
def test_verify_finds_it(copy: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = copy / "mdps" / LOCK / "consolidated.npz"
    if damage == "changed":
        content = bytearray(file.read_bytes())
        content[50] ^= 1
        file.write_bytes(content)
    elif damage == "missing":
        file.unlink()
    else:
        (copy / "mdps" / "more.txt").write_text("x")
    assert main(["dataset", "verify", str(copy), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["verified"]
    assert len(said["wrong"]) == 1
