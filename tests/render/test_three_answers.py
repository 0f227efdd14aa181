"""The three answers of a page, in their order: will it be learnt, why is it hard, what to change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from synthetic_study import Shape, write_study

from efhorizon import TabularMDP
from efhorizon.render.html import front_page
from efhorizon.render.html.names import page_link
from efhorizon.render.html.site import WrittenReport, write_report
from efhorizon.study.analyses import analysis_record, current_analysis, write_analysis
from efhorizon.study.analysis_record import CompleteFigures
from efhorizon.study.kept_changes import add_changes
from efhorizon.study.results import Results


def corridor(name: str = "corridor") -> TabularMDP:
    """Four steps to a reward, in nine: action 1 goes on, action 0 goes back to the start."""
    transitions = np.array([[0, 1], [0, 2], [0, 3], [0, -1]])
    rewards = np.zeros((4, 2))
    rewards[-1, 1] = 1.0
    screens = (np.arange(4, dtype=np.uint8) * 60).reshape(4, 1, 1, 1) * np.ones((1, 4, 6, 3), np.uint8)
    described = {"id": name, "suite": "minigrid", "game": "corridor", "screen_format": "rgb"}
    return TabularMDP(transitions, rewards, 9, screens=screens, screen_mapping=np.arange(4), metadata=described)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> WrittenReport:
    folder = tmp_path_factory.mktemp("answers")
    write_analysis(Results.made(folder / "study"), corridor())
    return write_report(folder / "study", folder / "site", num_resamples=20)


def text_of(path: Path) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", path.read_text(encoding="utf-8")).split())


def test_the_answers_come_in_order(site: WrittenReport) -> None:
    text = text_of(site.path / page_link("corridor"))
    places = [
        text.index(part)
        for part in ("Will PPO or DQN learn this", "Why is it hard?", "What to change?", "The state of Theorem 5.4")
    ]
    assert places == sorted(places)
    assert text.index("efhorizon what-if corridor") > places[2]


def test_the_page_shows_the_changes_that_were_tried(tmp_path: Path) -> None:
    results, mdp = Results.made(tmp_path / "study"), corridor()
    analysis = write_analysis(results, mdp)
    assert add_changes(results, mdp, analysis)
    record = results.analysis("corridor")
    assert not add_changes(results, mdp, record)  # they are there
    assert isinstance(record.changes, list)
    site = write_report(tmp_path / "study", tmp_path / "site", num_resamples=20)
    text = text_of(site.path / page_link("corridor"))
    assert f"Try first: {record.changes[0].title}." in text
    for change in record.changes:
        assert change.title in text
    assert "tries shaped rewards, other horizons" not in text


def test_the_page_shows_each_reason_with_its_state(site: WrittenReport) -> None:
    record = Results(site.path.parent / "study").analysis("corridor")
    assert isinstance(record.figures, CompleteFigures)
    assert isinstance(record.figures.why, list)
    page = (site.path / page_link("corridor")).read_text(encoding="utf-8")
    assert page.count('data-part="reason"') == len(record.figures.why) > 1
    assert page.count('alt="Screen of this state"') == len(record.figures.why)
    for reason in record.figures.why:
        assert f"{100 * reason.share:.0f}%" in page
    assert page.count("Returns after ") >= 2 * len(record.figures.why)  # a histogram for each action


def test_an_older_analysis_gets_its_reasons_and_their_pictures(tmp_path: Path) -> None:
    results = Results.made(tmp_path / "study")
    mdp = corridor()
    write_analysis(results, mdp)
    file = next((tmp_path / "study" / "analyses").glob("*.json"))
    content = json.loads(file.read_text())
    for name in ("why", "why_basis"):
        del content["analysis"][name]
    del content["reason_scenes"]
    content.pop("checksum", None)
    file.write_text(json.dumps(content))
    for picture in (tmp_path / "study" / "pictures").glob("*-reason-*"):
        picture.unlink()
    completed = current_analysis(results, mdp)
    assert completed is not None
    assert completed.figures.why == analysis_record(mdp)[0].figures.why
    assert all(results.picture(name) for name in completed.pictures.values())
    assert current_analysis(results, mdp) == completed


def test_what_was_tried_is_on_the_page_of_the_original(tmp_path: Path) -> None:
    """Shaped versions with their H and what PPO and DQN needed, and the budget where that was not enough."""
    study = write_study(tmp_path / "study", Shape(num_mdps=2))
    shaped, original = "game0_10_fs30", "maze_easy_l1_30_fs1"
    for file in (study / "analyses").glob("*.json"):
        content = json.loads(file.read_text())
        if content["id"] == shaped:
            content.update(unshaped=original, shaping="distance")
            content.pop("checksum", None)
            file.write_text(json.dumps(content))
    site = write_report(study, tmp_path / "site", num_resamples=20)
    page = text_of(site.path / page_link(original))
    tried = page[page.index("Tried in this study") : page.index("The state of Theorem 5.4")]
    assert "as it is" in tried
    assert shaped in tried
    assert "Tried in this study" not in text_of(site.path / page_link(shaped))


@pytest.mark.parametrize(
    ("leaders", "said"),
    [
        ((), ""),
        (("effective_horizon",), ""),
        (("ucb",), " Better at ranking: UCB."),
        (("effective_horizon", "ucb"), " In ranking it is tied with: UCB."),
        (("effective_horizon", "ucb", "b", "c", "d"), " In ranking it is tied with 4 other bounds: "),
    ],
)
def test_the_takeaway_names_few_bounds(leaders: tuple[str, ...], said: str) -> None:
    rows = [SimpleNamespace(name=name, title=name.upper()) for name in ("effective_horizon", "ucb", "b", "c", "d")]
    found = front_page._tied(SimpleNamespace(leaders={"correlation": leaders}, rows=rows))
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_the_front_page_begins_with_a_takeaway_and_a_scatter(report: WrittenReport) -> None:
    page = report.index.read_text(encoding="utf-8")
    text = text_of(report.index)
    said = re.search(r"PPO solves \d+ of \d+ MDPs within [\d.]+[kM] timesteps", text)
    assert said is not None
    order = [text.index(part) for part in ("PPO solves", "against the timesteps that PPO needed", "MDPs compared")]
    assert order == sorted(order)
    assert page.index("What the effective horizon is") > page.index("against the timesteps that PPO needed")
