"""A study as files to commit: the same bytes twice, figures that stand alone, other files left alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from synthetic_study import HOSTILE, Shape, write_study

from efhorizon.commands import main
from efhorizon.evaluation.source import study_data
from efhorizon.evaluation.tables import tables_by_rule
from efhorizon.render.markdown import publication, write_publication

pytest.importorskip("pyarrow", exc_type=ImportError)
SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "style", "title", "rect", "g", "path", "line", "text", "circle"}


@pytest.fixture(scope="module")
def export(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "rows"
    assert main(["evaluate", str(study), "--export", str(folder), "--resamples", "20", "--json"]) == 0
    return folder


@pytest.fixture(scope="module")
def published(export: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "docs" / "study"
    assert main(["evaluate", str(export), "--publish", str(folder), "--resamples", "100"]) == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_study_gives_the_same_bytes(
    export: Path, published: Path, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(export), "--publish", str(tmp_path / "again"), "--resamples", "100", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert sorted(content["published"]) == sorted(str(tmp_path / "again" / name) for name in contents(published))
    assert contents(tmp_path / "again") == contents(published)
    data = study_data(study)  # and so do the rows before they were exported
    files = publication(data, *tables_by_rule(data, num_resamples=100))
    assert {name: text.encode() for name, text in files.items()} == contents(published)


def test_another_seed_gives_other_intervals(export: Path, published: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", str(export), "--publish", str(tmp_path), "--resamples", "100", "--seed", "1"]
    assert main(arguments) == 0
    other, first = contents(tmp_path), contents(published)
    assert [name for name in first if other[name] != first[name]] == ["tables.md"]


def test_a_suite_with_its_own_table_has_its_own_tests() -> None:
    """In the published study, which has several suites."""
    text = (Path(__file__).parents[2] / "docs" / "study" / "tables.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    alone = sections["Table 2 for each suite alone"]
    tests = sections["The effective horizon against every other predictor"]
    with_table = [part.split("\n", 1)[0] for part in alone.split("\n### ")[1:] if "| worst case" in part]
    assert "MiniGrid, PPO" in with_table
    assert [part.split("\n", 1)[0] for part in tests.split("\n### ")[1:]] == ["PPO", "DQN", *with_table]


def test_figures_stand_alone(published: Path) -> None:
    figures = sorted((published / "figures").iterdir())
    names = {path.name for path in figures}
    assert {"effective_horizon-ppo.svg", "effective_horizon-dqn.svg", "min_k-ppo.svg", "min_k-dqn.svg"} < names
    assert len(names) == 2 * 9 + 2  # eight bounds and Theorem 5.4's horizon
    for path in figures:
        text = path.read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        assert text.replace('xmlns="http://www.w3.org/2000/svg"', "").count("://") == 0
        assert not re.search(r"url\(|@import|var\(|light-dark|javascript:", text)
        for each in root.iter():
            assert each.tag.removeprefix(SVG) in ALLOWED
            assert not [name for name in each.attrib if "href" in name or name.startswith("on") or name == "src"]
        ground = next(each for each in root if each.tag == f"{SVG}rect")
        assert (ground.get("fill"), ground.get("width"), ground.get("height")) == (
            "#ffffff",
            root.get("width"),
            root.get("height"),
        )


def test_the_page_shows_every_figure_and_no_other(published: Path) -> None:
    text = (published / "tables.md").read_text(encoding="utf-8")
    shown = re.findall(r'<img src="([^"]+)"', text)
    assert sorted(shown) == sorted(name for name in contents(published) if name.endswith(".svg"))


def test_a_name_that_means_ill_is_text(published: Path) -> None:
    for name in ("tables.md", "lists.md"):
        text = (published / name).read_text(encoding="utf-8")
        assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    figure = (published / "figures" / "ucb-ppo.svg").read_text(encoding="utf-8")
    titles = [each.text or "" for each in ElementTree.fromstring(figure).iter(f"{SVG}title")]
    assert any(title.startswith(HOSTILE) for title in titles)


def test_a_bound_of_any_name_stays_in_the_folder(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=2, num_seeds=1, algorithms=("ppo",), with_pictures=False))
    for file in (study / "analyses").iterdir():
        content = json.loads(file.read_text())
        content["analysis"]["sample_complexity"]["../../out"] = 700
        file.write_text(json.dumps(content))
    data = study_data(study)
    files = publication(data, *tables_by_rule(data, num_resamples=20))
    paths = write_publication(tmp_path / "a" / "b" / "c", files)
    assert all((tmp_path / "a" / "b" / "c") in path.resolve().parents for path in paths)
    assert [name for name in files if "out" in name and ".." not in name and name.startswith("figures/out-")]


def test_other_files_stay(published: Path, export: Path, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "notes.md").write_text("mine")
    (tmp_path / "figures" / "old-ppo.svg").write_text("old")
    (tmp_path / "tables.md").write_text("old")
    assert main(["evaluate", str(export), "--publish", str(tmp_path), "--resamples", "100"]) == 0
    found = contents(tmp_path)
    assert (found.pop("notes.md"), found.pop("figures/old-ppo.svg")) == (b"mine", b"old")
    assert found == contents(published)  # nothing else, no temporary file


def test_a_folder_that_cannot_be_written_is_one_line(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["evaluate", str(export), "--publish", str(tmp_path / "file"), "--resamples", "20"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert str(tmp_path / "file") in captured.err


def test_lists_say_how_each_table_was_checked(export: Path, published: Path) -> None:
    lists = (published / "lists.md").read_text()
    section = lists[lists.index("## How the tables were made and checked") :].splitlines()
    for name, content in study_data(export).analyses.items():
        if name == HOSTILE:
            continue
        (line,) = (line for line in section if line.startswith(f"| {name} |"))
        raw, pairs, *replayed = [cell.strip() for cell in line.split("|")[2:6]]
        assert content.table is not None
        assert content.table.verification is not None
        verification = content.table.verification
        assert raw == f"{content.table.num_raw_states:,}"
        assert replayed == [f"{n:,}" for n in (verification.episodes, verification.steps)]
        assert pairs.endswith("<sup>1</sup>")  # this export has no tables.csv that would count them
