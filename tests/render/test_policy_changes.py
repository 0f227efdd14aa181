"""What policies change, as people see it: Table 3b's figure, demonstrators, lists, and the pages of variants."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from evaluation_data import analysis, graded_study, results_directory, row
from markupsafe import Markup

from efhorizon.evaluation.changes import ChangePoint
from efhorizon.evaluation.policies import graded_table
from efhorizon.evaluation.source import StudyData, study_data
from efhorizon.evaluation.summary_csv import encoded_summaries
from efhorizon.evaluation.tables import tables_by_rule
from efhorizon.render.charts.changes import change_scatter
from efhorizon.render.charts.grades import horizon_chart, needed_chart
from efhorizon.render.html.names import page_link
from efhorizon.render.html.policy_changes import guided
from efhorizon.render.html.site import write_report
from efhorizon.render.markdown import publication
from efhorizon.render.numbers import TIMES

SVG = "{http://www.w3.org/2000/svg}"
INF = math.inf


def of_class(picture: Markup, name: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(picture).iter() if name in (each.get("class") or "").split()]


def place(mark: ElementTree.Element) -> tuple[float, float]:
    found = re.fullmatch(r"translate\((\S+) (\S+)\)", mark.get("transform") or "")
    assert found is not None
    return float(found[1]), float(found[2])


# Charts


def test_pairs_are_placed_by_their_factors() -> None:
    """From 1/100 to 1 on both axes, with 0.3 powers of ten of padding: equal changes lie on the diagonal."""
    points = [
        ChangePoint("a@x", "atari", -2.0, -2.0),
        ChangePoint("b@x", "atari", 0.0, 0.0),
        ChangePoint("c@x", "atari", INF, -1.0),
        ChangePoint("d@x", "atari", -INF, -1.0),
    ]
    drawn = change_scatter(points, bound_title="H", algorithm="PPO", links={"a@x": "a.html"})
    first, second, infinite, zero = (place(mark) for mark in of_class(drawn, "mark")[-4:])
    (diagonal,) = of_class(drawn, "diagonal")
    x1, y1, x2, y2 = (float(diagonal.get(name) or "nan") for name in ("x1", "y1", "x2", "y2"))
    for x, y in (first, second):  # marks are placed to a tenth of a pixel
        assert y == pytest.approx(y1 + (x - x1) * (y2 - y1) / (x2 - x1), abs=0.2)
    assert zero[0] < first[0] < second[0] < infinite[0]
    assert zero[1] == infinite[1] == pytest.approx((first[1] + second[1]) / 2, abs=0.2)
    titles = [each.text or "" for each in ElementTree.fromstring(drawn).iter(f"{SVG}title")]
    assert "a@x\npredicted 0.01, measured 0.01" in titles
    assert "d@x\npredicted 0, measured 0.1" in titles
    assert [each.get("href") for each in ElementTree.fromstring(drawn).iter(f"{SVG}a")] == ["a.html"]


def test_lines_fall_with_the_horizon() -> None:
    found = graded_table(graded_study())
    assert found is not None
    drawn = horizon_chart(found)
    *lines, median = [each for each in of_class(drawn, "curve") if each.tag == f"{SVG}path"]
    assert [each.findtext(f"{SVG}title") for each in lines] == ["a", "b"]
    heights = [[float(number) for number in re.findall(r" (\S+?)(?:L|$)", each.get("d") or "")] for each in lines]
    a, b = heights  # H of a: 3, 2, 1; of b: 3, 1.5, 2.5, where a larger H is higher up
    assert a[0] == b[0] < a[1] < b[1]
    assert a[2] - a[1] == pytest.approx(a[1] - a[0], abs=0.02)
    assert b[0] < b[2] < b[1]
    assert median.get("d")
    assert "not solved" in needed_chart(found)  # b with noise 0.2
    assert "not solved" not in drawn


# Files to commit


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    titles = {"effective_horizon": "effective horizon, GORP (Lemma 5.3)", "ucb": "UCB"}
    data = StudyData(Path(), {}, [], graded_study(), titles)
    return publication(data, *tables_by_rule(data, num_resamples=20))


def section(page: str, heading: str) -> str:
    """From a heading to the next of the same level."""
    level = heading.split()[0]
    return page.split(f"\n{heading}\n", 1)[1].split(f"\n{level} ")[0].split("\n# ")[0]


def test_tables_say_what_policies_change(pages: dict[str, str]) -> None:
    text = section(pages["tables.md"], "## Table 3b: exploration policies")
    assert "5 pairs: in 4 both MDPs were solved, in 0 only the changed one, in 1 only the original." in text
    assert "| effective horizon, GORP (Lemma 5.3) | 4 | " in text
    assert " | 0.57 | " in text  # the paper's
    assert "| clone of noise 0.9 | 2 | 2 | 0 | 0 | " in text
    assert "| clone of noise 0.2 | 2 | 1 | 0 | 1 | " in text
    assert f"| random play | 1.00 | 2 | 3.00 | +0.00 | 2 | {TIMES}\N{NO-BREAK SPACE}1 |" in text
    assert "| clone of noise 0.9 | 0.90 | 2 | 1.75 | -1.25 | 2 | ÷\N{NO-BREAK SPACE}10 |" in text
    assert "| a | 3.00 / 100,000 | 2.00 / 10,000 | 1.00 / 1,000 |" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "- b, from clone of noise 0.9 to clone of noise 0.2: PPO's timesteps 100,000 to not solved" in text
    assert 'src="figures/policies-effective_horizon-ppo.svg"' in text
    assert {"figures/demonstrators-horizon.svg", "figures/demonstrators-ppo.svg"} <= set(pages)
    assert "figures/policies-ucb-ppo.svg" not in pages  # it predicts no change


def test_lists_have_the_pairs_apart(pages: dict[str, str]) -> None:
    text = section(pages["lists.md"], "## Policies to start from").replace("\N{NO-BREAK SPACE}", " ")
    line = "| a | clone of noise 0.2 | 1 | 1 | 3.00 | 1.00 | 0.01 | 0.01 | 100,000 | 1,000 | "
    assert line in text
    assert "&#64;" not in section(pages["lists.md"], "## Properties")


def test_nothing_is_said_without_policies() -> None:
    data = StudyData(Path(), {}, [], [each for each in graded_study() if each.policy is None], {})
    found = publication(data, *tables_by_rule(data, num_resamples=20))
    assert "No MDP was run with an exploration policy other than the uniform one." in found["tables.md"]
    assert "Policies to start from" not in found["lists.md"]
    assert not [name for name in found if "policies" in name or "demonstrators" in name]


# The web report


def test_sentences_about_random_play_become_those_about_a_policy() -> None:
    assert guided("Random play passes; a random episode is optimal under random play.") == (
        "The policy passes; an episode of the policy is optimal under the policy."
    )


def test_the_front_page_has_table_3b_and_its_figure(tmp_path: Path) -> None:
    (tmp_path / "summary.csv").write_bytes(encoded_summaries(graded_study()))
    report = write_report(tmp_path / "summary.csv", tmp_path / "report", num_resamples=20)
    page = report.index.read_text()
    assert "3 MDPs" in page
    assert "5 more with a policy to start from" in page
    assert "PPO, 4 of 5 pairs solved" in page
    assert "Demonstrators from random to optimal" in page
    assert f'href="{page_link("a@cloned-0.2")}"' in page
    assert list((report.path / "figures").glob("policies-*.svg"))


def test_pages_of_an_mdp_and_its_variant_show_each_other(tmp_path: Path) -> None:
    explorer = {"label": "clone", "title": "a clone", "network": "n1", "probabilities": "p1", "num_states": 60}
    variant = analysis("a@clone", horizon_value=1.0, exploration="clone", explorer=explorer)
    rows = [row("a"), row("a@clone", hyperparameters={"initial": "n1"}, sample_complexity=1_000)]
    folder = results_directory(tmp_path / "s", [analysis("a"), analysis("b"), variant], rows)
    assert len(study_data(folder).summaries) == 3
    report = write_report(folder, tmp_path / "report", num_resamples=20)
    base, own, other = ((report.path / page_link(name)).read_text() for name in ("a", "a@clone", "b"))
    for page in (base, own):
        assert "What a policy to start from changes" in page
        assert "20,000" in page
        assert "1,000" in page
    assert f'<a href="{page_link("a@clone").removeprefix("mdps/")}">a clone</a>' in base
    assert f'with random play: <a href="{page_link("a").removeprefix("mdps/")}">a</a>' in own
    assert "chance that an episode of the policy is optimal" in own
    assert "efhorizon study a@clone --policies POLICIES --algos ppo --seeds 1 --steps 5000000" in own
    assert "What a policy to start from changes" not in other
