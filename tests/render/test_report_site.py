"""The whole site: pages that hang together, nothing executed from the data, and sense where something is missing."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from synthetic_study import HOSTILE, Shape, analysis, write_study

from efhorizon.commands import main
from efhorizon.errors import StoreError
from efhorizon.evaluation.source import study_data
from efhorizon.evaluation.summary_csv import read_summaries
from efhorizon.evaluation.tables import tables_by_rule
from efhorizon.render.html import site
from efhorizon.render.html.names import page_link, slug
from efhorizon.render.html.site import WrittenReport, write_report
from efhorizon.render.markdown import publication

FEW = {"num_resamples": 20}


class Page(HTMLParser):
    """What a browser would look at: tags with their attributes, headings, texts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def pages(report: WrittenReport) -> dict[str, Page]:
    return {str(path.relative_to(report.path)): Page(path) for path in sorted(report.path.rglob("*.html"))}


def test_every_mdp_has_a_page_and_a_line(report: WrittenReport, study: Path) -> None:
    found = pages(report)
    assert report.num_mdps == 15
    assert len([name for name in found if name.startswith("mdps/")]) == 15
    rows = [attributes for tag, attributes in found["mdps.html"].tags if tag == "tr" and "data-words" in attributes]
    assert len(rows) == 15


def test_every_link_and_picture_is_there(report: WrittenReport) -> None:
    for name, page in pages(report).items():
        for _, attributes in page.tags:
            for target in (attributes.get("href"), attributes.get("src")):
                if target is None or target.startswith("#"):
                    continue
                assert not re.match(r"[a-z]+:|//", target), f"{name} leaves the disk: {target}"
                assert (report.path / name).parent.joinpath(unquote(target)).is_file(), f"{name}: {target}"


def test_nothing_is_executed_but_our_own_files(report: WrittenReport) -> None:
    for name, page in pages(report).items():
        for tag, attributes in page.tags:
            assert tag not in ("iframe", "object", "embed", "base", "style")
            assert not [key for key in attributes if key.startswith("on") or key == "style"], name
            if tag == "script":
                assert re.fullmatch(r"(\.\./)?assets/[a-z]+\.js", attributes["src"] or "")
        policies = [each.get("content") or "" for _, each in page.tags if each.get("http-equiv")]
        assert [policy.split(";")[0] for policy in policies] == ["default-src 'none'"]
        assert "unsafe" not in policies[0]


def test_a_hostile_name_is_only_text(report: WrittenReport) -> None:
    page = Page(report.path / page_link(HOSTILE))
    assert HOSTILE in "".join(page.words)
    for path in report.path.rglob("*"):
        if path.suffix in (".html", ".svg"):
            assert "<script>alert" not in path.read_text(encoding="utf-8")


CONTROLS = "a\x00\x07\x1b[31m\x7f\x9b31m\x85b"


def test_control_characters_in_names_are_replaced(tmp_path: Path) -> None:
    """In pages, in figures, and in Markdown files; downloads have the name as it is."""
    study = write_study(tmp_path / "study", Shape(num_mdps=2, num_seeds=1, with_pictures=False, names=(CONTROLS,)))
    report = write_report(study, tmp_path / "report", **FEW)
    data = study_data(study)
    texts = publication(data, *tables_by_rule(data, num_resamples=20))
    texts |= {str(path): path.read_text() for path in report.path.rglob("*") if path.suffix in (".html", ".svg")}
    assert len(texts) > 20
    for name, text in texts.items():
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text), name
        if name.endswith(".svg"):
            ElementTree.fromstring(text)
    assert (report.path / page_link(CONTROLS)).is_file()
    assert CONTROLS in {summary.name for summary in read_summaries(report.path / "data" / "summary.csv")}


@pytest.mark.parametrize(
    "name", ["[/bold]", "=1+1", "`rm`", "{{ 7 * 7 }}", "{% raw %}", "]]>", "--><script>alert(1)</script>", "${7*7}"]
)
def test_markup_in_names_is_only_text(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1, num_seeds=1, with_pictures=False, names=(name,)))
    report = write_report(study, tmp_path / "report", **FEW)
    assert name in "".join(Page(report.path / page_link(name)).words)
    assert main(["evaluate", str(study), "--resamples", "5"]) == 0
    assert name in capsys.readouterr().out


def test_headings_go_down_one_level_at_a_time(report: WrittenReport) -> None:
    for name, page in pages(report).items():
        assert page.headings[0] == 1, name
        assert page.headings.count(1) == 1, name
        assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False)), name


def test_pictures_have_alternative_texts(report: WrittenReport) -> None:
    for name, page in pages(report).items():
        for tag, attributes in page.tags:
            assert tag != "img" or "alt" in attributes, name
            is_chart = tag == "svg" and attributes.get("aria-hidden") != "true"
            assert not is_chart or attributes.get("aria-label"), name


def test_the_front_page_has_the_papers_numbers(report: WrittenReport) -> None:
    text = pages(report)["index.html"].text
    assert "paper: 155" in text
    assert "paper: 95 of 155" in text
    assert "paper 0.81" in text  # correlation of the effective horizon with PPO
    assert "paper 31" in text  # and its median ratio
    assert "paper 80" in text  # 1-QVI-solvable and solved
    assert "PG-GORP" in text  # bounds that the paper's table lacks


def test_a_page_of_a_published_mdp_has_the_authors_numbers(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1, names=("freeway_10_fs30",)))
    report = write_report(study, tmp_path / "report", **FEW)
    text = Page(report.path / page_link("freeway_10_fs30")).text
    assert "paper: ≤ 4.29" in text
    assert "paper: 197" in text
    assert "paper 11,100" in text


def test_downloads_are_complete(report: WrittenReport) -> None:
    with (report.path / "data" / "summary.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 15
    assert HOSTILE in {line["mdp_name"] for line in lines}
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    assert parquet.read_metadata(report.path / "data" / "mdps.parquet").num_rows == 15
    assert parquet.read_metadata(report.path / "data" / "runs.parquet").num_rows == 15 * (2 * 2 * 3 + 3)


def test_figures_are_files_of_their_own(report: WrittenReport) -> None:
    figures = list((report.path / "figures").glob("*.svg"))
    assert f"{slug('effective_horizon')}-ppo.svg" in {path.name for path in figures}
    assert "min-k.svg" in {path.name for path in figures}
    assert all("<a " not in path.read_text(encoding="utf-8") for path in figures)


def test_the_same_study_gives_the_same_pages(study: Path, report: WrittenReport, tmp_path: Path) -> None:
    again = write_report(study, tmp_path / "again", num_resamples=50)
    for path in report.path.rglob("*"):
        if path.is_file() and path.suffix != ".parquet":
            assert path.read_bytes() == (again.path / path.relative_to(report.path)).read_bytes(), path


def test_no_runs_yet(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=3, algorithms=()))
    report = write_report(study, tmp_path / "report", **FEW)
    found = pages(report)
    assert "No runs of PPO or DQN yet" in found["index.html"].text
    assert "No algorithm has been run on this MDP" in found[page_link("game0_10_fs30")].text


def test_runs_that_were_too_short_for_a_curve(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1, algorithms=("ppo",), num_seeds=1))
    for path in (study / "rows").glob("*.json"):
        row = json.loads(path.read_text())
        path.write_text(json.dumps({**row, "sample_complexity": None, "solved_by": None, "learning_curve": []}))
    found = pages(write_report(study, tmp_path / "report", **FEW))
    assert "No run was long enough to be evaluated" in found[page_link("game0_10_fs30")].text


def test_one_algorithm_only(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=3, algorithms=("dqn",), num_seeds=1))
    report = write_report(study, tmp_path / "report", **FEW)
    front = pages(report)["index.html"]
    assert "3 of 3" in front.text or "of 3" in front.text
    assert {each.get("data-shown-for") for _, each in front.tags if "data-shown-for" in each} == {"dqn"}


def test_no_pictures(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1, with_pictures=False))
    report = write_report(study, tmp_path / "report", **FEW)
    text = pages(report)[page_link("game0_10_fs30")].text
    assert "no pictures of an optimal episode" in text
    assert not report.notes


def test_mdps_that_lost_all_their_pictures_are_one_note(tmp_path: Path) -> None:
    """As with analyses that were taken over from an export."""
    study = write_study(tmp_path / "study", Shape(num_mdps=3))
    for picture in (study / "pictures").glob("[01]-*.png"):
        picture.unlink()
    notes = [note for note in write_report(study, tmp_path / "report", **FEW).notes if "picture" in note]
    assert notes == ["no pictures of 2 of 3 MDPs: an export has none, so neither has an analysis taken from one"]


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_name_of_a_picture_that_cannot_be_one(name: str, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1))
    (file,) = (study / "analyses").iterdir()
    content = json.loads(file.read_text()) | {"start_picture": f"pictures/{name}.png"}
    file.write_text(json.dumps(content))
    notes = [note for note in write_report(study, tmp_path / "report", **FEW).notes if "picture" in note]
    assert len(notes) == 1
    assert "no such picture" in notes[0]


def test_pictures_that_are_refused_are_noted(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1))
    (study / "pictures" / "0-start.png").unlink()
    (study / "pictures" / "0-deciding.png").write_text("no picture")
    _change(study, lambda content: content["episode"].update(frames=100))
    report = write_report(study, tmp_path / "report", **FEW)
    notes = [note for note in report.notes if note.startswith("picture left out")]
    assert [re.findall(r"no such picture|not a PNG|do not hold 100 frames", note) for note in notes] == [
        ["no such picture"],
        ["not a PNG"],
        ["do not hold 100 frames"],
    ]
    assert not (report.path / "pictures").exists()


def test_an_unfinished_analysis_is_shown_as_intervals(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=2))
    _change(study, _make_unfinished)
    report = write_report(study, tmp_path / "report", **FEW)
    found = pages(report)
    text = found[page_link("game0_10_fs30")].text
    assert "every figure below is an interval" in text
    assert "1,200 to ∞" in text
    assert "unfinished" in found["mdps.html"].text
    assert any("unfinished" in note for note in report.notes)


def _make_unfinished(content: dict[str, Any]) -> None:
    content["analysis"] = {
        "id": content["id"],
        "complete": False,
        "horizon": 10,
        "num_actions": 3,
        "num_states": [400, None],
        "optimal_return": [1.0, 5.0],
        "min_k": [1, None],
        "effective_horizon": {"value": [1.0, 10.0], "k": None, "m": None, "kind": "interval", "by_k": {}},
        "sample_complexity": {"worst_case": 295250, "ucb": [1200, None], "goal": None},
        "reasons": {"goal": "the table is unfinished"},
    }
    content["deciding"] = None


def test_a_summary_alone(report: WrittenReport, tmp_path: Path) -> None:
    other = write_report(report.path / "data" / "summary.csv", tmp_path / "report", **FEW)
    found = pages(other)
    assert other.num_mdps == 15
    assert "only its line in summary.csv" in found[page_link(HOSTILE)].text
    assert "paper 0.81" in found["index.html"].text


def test_an_export(report: WrittenReport, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    other = write_report(report.path / "data", tmp_path / "report", num_resamples=50)
    before, after = (Page(each.index).text.split("What the effective horizon is")[0] for each in (report, other))
    assert sorted(before.split()) == sorted(after.split())  # the order of bounds that are equally good is open


def test_an_empty_study_is_an_error_that_says_what_to_run(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=0))
    with pytest.raises(StoreError, match=r"nothing to show.*efhorizon analyze TABLE --results"):
        write_report(study, tmp_path / "report", **FEW)
    assert not (tmp_path / "report").exists()


def test_shaped_mdps_are_linked_and_compared(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=2))
    _change(study, lambda content: content.update(unshaped="maze_easy_l1_30_fs1", shaping="distance"))
    report = write_report(study, tmp_path / "report", **FEW)
    page = pages(report)[page_link("game0_10_fs30")]
    links = [each.get("href") for tag, each in page.tags if tag == "a"]
    assert page_link("maze_easy_l1_30_fs1").removeprefix("mdps/") in links
    assert "pairs solved" in pages(report)["index.html"].text


def test_155_mdps_make_a_front_page_of_less_than_3_megabytes(tmp_path: Path) -> None:
    shape = Shape(num_mdps=155, num_seeds=1, num_points=5, with_pictures=False)
    report = write_report(write_study(tmp_path / "study", shape), tmp_path / "report", **FEW)
    assert report.num_mdps == 155
    assert report.index.stat().st_size < 3_000_000


def test_a_folder_that_is_no_report_is_not_touched(study: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StoreError, match="not empty and not a report"):
        write_report(study, tmp_path)
    (tmp_path / "report.json").write_text('{"format": "something else"}')
    with pytest.raises(StoreError, match="not empty and not a report"):
        write_report(study, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_file_in_the_place_of_the_report(study: Path, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("x")
    with pytest.raises(StoreError, match="not a folder"):
        write_report(study, tmp_path / "report")


def test_results_inside_an_old_report_are_not_swept_away(tmp_path: Path) -> None:
    write_report(write_study(tmp_path / "study", Shape(num_mdps=1)), tmp_path / "report", **FEW)
    inside = write_study(tmp_path / "report" / "study", Shape(num_mdps=1))
    with pytest.raises(StoreError, match="contains the results themselves"):
        write_report(inside, tmp_path / "report")
    assert (inside / "results.json").is_file()


def test_an_old_report_is_replaced_whole(tmp_path: Path) -> None:
    write_report(write_study(tmp_path / "one", Shape(num_mdps=3)), tmp_path / "report", **FEW)
    write_report(write_study(tmp_path / "two", Shape(num_mdps=1)), tmp_path / "report", **FEW)
    assert len(list((tmp_path / "report" / "mdps").iterdir())) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "report"}


def test_a_failed_run_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1))
    write_report(study, tmp_path / "report", **FEW)
    before = (tmp_path / "report" / "index.html").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(site, "listing_page", fail)
    with pytest.raises(OSError, match="full"):
        write_report(study, tmp_path / "report", **FEW)
    assert (tmp_path / "report" / "index.html").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"study", "report"}


def test_a_name_that_no_file_can_hold(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", Shape(num_mdps=1, algorithms=()))
    content = analysis("\ud800", "atari", 0, np.random.default_rng(0), with_pictures=False)
    (study / "analyses" / "1.json").write_text(json.dumps(content))
    with pytest.raises(StoreError, match="not valid Unicode"):
        write_report(study, tmp_path / "report")


def _change(study: Path, change: Any) -> None:
    """Change the first analysis of a study."""
    path = study / "analyses" / "0.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
