"""Markdown: escaping, tables, footnotes and digits; counts by suite; the pages of a small study with known answers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import PUBLISHED_LINES, analysis, published_file, results_directory, row, solved_or_not
from markdown_it import MarkdownIt

from efhorizon.evaluation.by_suite import counts_of, run_counts, suite_bounds, suite_counts
from efhorizon.evaluation.metrics import CORRELATION, MEDIAN_RATIO
from efhorizon.evaluation.resampling import Estimate
from efhorizon.evaluation.source import StudyData, study_data
from efhorizon.evaluation.tables import Tables, all_tables, tables_by_rule
from efhorizon.render.markdown.text import (
    Footnotes,
    blocks,
    difference,
    escaped,
    estimate_text,
    factor,
    from_log10,
    interval,
    number,
    picture,
    same,
    significant,
    table,
    unbroken,
)
from efhorizon.render.numbers import MISSING

HOSTILE = '<script>alert(1)</script> | [a](http://b) `c` *d* _e_ $f$ <img src="x">\n# g & a@b.com ~~h~~ \\'
RESAMPLES = 200


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").render(text))


def test_text_of_others_stays_text() -> None:
    page = rendered(table(["name", "number"], [[escaped(HOSTILE), "1"]]))
    for tag in ("<script", "<a ", "<img", "<code", "<em", "<s>", "<h1"):
        assert tag not in page
    assert page.count("<td") == 2
    assert "&lt;script&gt;alert(1)&lt;/script&gt; | [a](http://b) `c` *d* _e_ $f$" in page
    assert escaped("pong_10_fs30") == "pong_10_fs30"  # what needs no backslash has none
    assert "# g &amp; a@b.com ~~h~~ \\</td>" in page
    assert escaped("a\x00b\ud800c") == "a b c"
    assert '"' not in escaped_attribute(picture("f.svg", 'a "b" <c>', "49%"))


def escaped_attribute(image: str) -> str:
    return image.split('alt="')[1].split('" width=')[0]


def test_table_and_blocks() -> None:
    assert table(["a", "b", "c"], [["1", "2", "3"]], num_left=2) == (
        "| a | b | c |\n| --- | --- | --: |\n| 1 | 2 | 3 |"
    )
    assert blocks("a", "", "b") == "a\n\nb"


def test_footnotes_share_numbers() -> None:
    notes = Footnotes()
    assert notes.text() == ""
    assert [notes.missing("why"), notes.mark("other"), notes.missing("why"), notes.missing(None)] == [
        f"{MISSING}<sup>1</sup>",
        "<sup>2</sup>",
        f"{MISSING}<sup>1</sup>",
        f"{MISSING}<sup>3</sup>",
    ]
    assert notes.text() == "<sup>1</sup> why\\\n<sup>2</sup> other\\\n<sup>3</sup> unknown"


def test_digits_do_not_hang_on_the_last_bit() -> None:
    for value in (0.815, 0.125, 1 / 3, 2.675):
        texts = {number(near) for near in (value, math.nextafter(value, 0), math.nextafter(value, 9))}
        assert len(texts) == 1
    for value in (12.5, 31.5, 1e4, 3.25e7):
        log = math.log10(value)
        assert len({from_log10(near) for near in (log, math.nextafter(log, 0), math.nextafter(log, 99))}) == 1
    assert same(0.1 + 0.2, 0.3)
    assert not same(None, None)


def test_numbers() -> None:
    assert [number(at) for at in (None, 3, 0.126, -0.001, math.inf)] == [MISSING, "3", "0.13", "0.00", "infinite"]
    assert [significant(at) for at in (None, 0.0090259, 3.2e-11, -4.0171, 1.0)] == [
        MISSING,
        "0.009026",
        "3.2e-11",
        "-4.017",
        "1",
    ]
    assert [from_log10(at) for at in (None, math.log10(31), math.log10(3.2e4), math.inf)] == [
        MISSING,
        "31",
        "3.2e4",
        "infinite",
    ]
    assert [difference(at) for at in (0.214, -0.214, -0.001)] == ["+0.21", "-0.21", "+0.00"]
    assert [factor(at) for at in (math.log10(21), -math.log10(21), 0.0, -math.inf)] == [
        "\N{MULTIPLICATION SIGN} 21",
        "÷ 21",
        "\N{MULTIPLICATION SIGN} 1",
        "÷ infinite",
    ]


def test_estimates() -> None:
    notes = Footnotes()
    whole = Estimate(0.8123, 0.7, 0.894, 9)
    assert estimate_text(whole, CORRELATION, notes).replace("\xa0", " ") == "0.81 [0.70, 0.89]"
    ratio = Estimate(math.log10(31), 0.0, math.inf, 9)
    assert estimate_text(ratio, MEDIAN_RATIO, notes, is_bold=True) == f"**31** {interval('1', 'infinite')}"
    assert notes.text() == ""
    assert estimate_text(Estimate(None, None, None, 0, "none solved"), CORRELATION, notes) == f"{MISSING}<sup>1</sup>"
    assert estimate_text(Estimate(0.5, None, None, 3, None, "few families"), CORRELATION, notes) == "0.50<sup>2</sup>"
    assert notes.text() == "<sup>1</sup> none solved\\\n<sup>2</sup> no interval: few families"


def test_counts_by_suite() -> None:
    summaries = [
        solved_or_not("a1", 10, math.inf, family="a"),
        solved_or_not("a2", math.inf, None, family="a"),
        solved_or_not("g", None, 5, origin="minigrid"),
        solved_or_not("g-shaped", 5, 5, origin="minigrid", type="shaped", unshaped="g"),  # does not count
    ]
    atari, minigrid = suite_counts(summaries)
    assert (atari.suite, atari.num_mdps, atari.num_families) == ("atari", 2, 1)
    assert (dict(atari.num_run), dict(atari.num_solved)) == (
        {"ppo": 2, "dqn": 1, "gorp": 0},
        {"ppo": 1, "dqn": 0, "gorp": 0},
    )
    assert (minigrid.suite, minigrid.num_mdps, minigrid.num_run["ppo"], minigrid.num_solved["dqn"]) == (
        "minigrid",
        1,
        0,
        1,
    )
    assert counts_of("all", summaries).num_mdps == 3


def test_counts_of_runs(tmp_path: Path) -> None:
    rows = [row("a", seed=seed, protocol={"max_steps": 100}) for seed in range(3)]
    rows += [row("a", setting="rollout1280"), row("a", "gorp", setting="k1"), row("unknown")]
    ppo, gorp = run_counts(study_data(results_directory(tmp_path / "results", [analysis("a")], rows)))
    assert (ppo.algorithm, ppo.num_mdps, ppo.num_rows, ppo.seeds) == ("ppo", 1, 4, (1, 3))
    assert (ppo.settings, ppo.budgets) == (("rollout128", "rollout1280"), (100, 5_000_000))
    assert (gorp.algorithm, gorp.num_rows, gorp.seeds) == ("gorp", 1, (1, 1))


def test_the_table_of_a_suite_is_that_of_its_mdps_alone(tmp_path: Path) -> None:
    data = study_data(published_file(tmp_path / "all.csv"))
    only = [line for line in PUBLISHED_LINES if ",procgen," in line]
    alone = all_tables(study_data(published_file(tmp_path / "procgen.csv", tuple(only))), num_resamples=RESAMPLES)
    found = {each.suite: each.bounds for each in suite_bounds(data.summaries, data.titles, num_resamples=RESAMPLES)}
    assert list(found) == ["atari", "minigrid", "procgen"]
    for ours, expected in zip(found["procgen"], alone.bounds, strict=True):
        assert replace(ours, tests=()) == replace(expected, tests=())  # p-values are adjusted for all suites


@pytest.fixture
def small(tmp_path: Path) -> tuple[StudyData, Tables, Tables]:
    """The six MDPs of the evaluation's tests."""
    data = study_data(published_file(tmp_path / "summary.csv"))
    return data, *tables_by_rule(data, num_resamples=RESAMPLES)


def pages(small: tuple[StudyData, Tables, Tables]) -> dict[str, str]:
    """The page of tables up to those by the paper's rule, and the lists."""
    publication = pytest.importorskip("efhorizon.render.markdown", exc_type=ImportError)
    files = dict(publication.publication(*small))
    headline, papers = files["tables.md"].split("\n## The same by the paper's rule")
    return files | {"tables.md": headline, "papers": papers}


def lines(text: str, start: str) -> list[list[str]]:
    """The cells of all lines of tables that begin so."""
    found = [line for line in text.replace("\xa0", " ").splitlines() if line.startswith(f"| {start}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def test_table_2_shows_the_numbers_of_the_evaluation(small: tuple[StudyData, Tables, Tables]) -> None:
    text = pages(small)["tables.md"]
    shown = lines(text, "**effective horizon, GORP")
    assert shown[0][1].startswith("0.80 [")  # as worked out by hand for `efhorizon evaluate`
    assert shown[0][2:9:2] == ["0.81", "31", "0.92", "0.86"]
    for cells, of_algorithm in zip(shown, small[1].bounds, strict=False):
        found: dict[str, Any] = next(row for row in of_algorithm.rows if row.name == "effective_horizon").metrics
        for cell, name in ((cells[1], "correlation"), (cells[5], "auroc"), (cells[7], "accuracy")):
            estimate = found[name]
            assert cell.replace("*", "") == f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
        assert cells[3].replace("*", "").startswith(f"{10 ** found['median_ratio_log10'].value:.2g} [")
        assert cells[9].startswith(f"{found['concordance'].value:.2f} [")
    assert lines(text, "DQN, empirical")[0][2] == "0.77"
    assert "\n- AUROC: effective horizon" in text.split("### DQN")[0]
    assert "**0." not in text.split("## The effective horizon against")[0]  # six MDPs prove nothing
    assert "without its 3 infinite" in text
    assert lines(pages(small)["papers"], "**effective horizon, GORP")[0] == shown[0]  # nothing is left out here


def test_other_sections(small: tuple[StudyData, Tables, Tables]) -> None:
    text = pages(small)["tables.md"]
    assert lines(text, "**all**") == [["**all**", "6", "6", "4 of 6", "3 of 6", "3 of 6"]]
    assert lines(text, "all, the paper's rule")[0][1:] == lines(text, "**all**")[0][1:]
    assert lines(text, "the paper |")[0][3:5] == ["95 of 155", "117 of 155"]
    assert lines(text, "Procgen") == [["Procgen", "2", "2", "1 of 2", "0 of 2", "1 of 2"]]
    assert lines(text, "yes") == [["yes", "3", "80", "1", "24"], ["yes", "2", "2"]]
    assert lines(text, "no ") == [["no", "1", "15", "1", "36"], ["no", "1", "1"]]
    assert lines(text, "1 |") == [["1", "4", "3", "1", "0", "2", "2", "0"]]
    for test in small[1].bounds[0].tests:
        if (test.second, test.metric) == ("ucb", "auroc"):
            cell = f"{test.difference:+.2f} [{test.low:+.2f}, {test.high:+.2f}] p = {test.p_value_holm:.3f}, "
            cell += f"{test.p_value_all:.3f}"
            assert cell in [line[3] for line in lines(text, "UCB") if len(line) == 6]
    assert "is right on 0.67 of them. Fisher's exact test of whether the two are related at all: p = 1." in text
    assert "1 of 2 MDPs solved. Bounds cannot be compared with fewer than 5 families." in text
    assert "No pair of an MDP and its shaped version was run." in text
    assert "There are no rows of single runs" in text
    assert "nan" not in text.lower()
    assert "None" not in text


def test_reasons_stand_below_the_table(small: tuple[StudyData, Tables, Tables]) -> None:
    text = pages(small)["tables.md"]
    (worst, *_) = lines(text, "worst case")
    assert worst[1].startswith(f"{MISSING}<sup>")
    after = text.split("| worst case", 1)[1].split("\n\n")[1]
    assert f"{worst[1].removeprefix(MISSING)} all predictions are equal" in after


def test_lists(small: tuple[StudyData, Tables, Tables]) -> None:
    text = pages(small)["lists.md"]
    properties, complexities, returns = lines(text, "MiniGrid-B-v0")
    assert properties[:7] == ["MiniGrid-B-v0", "MiniGrid", "10", "10", "10", "3", "infinite"]
    assert complexities[1:4] == ["> 5,000,000", "100,000", "> 100,000,000"]
    assert complexities[4:] == ["5.0e10", "infinite", "1.0e11", "1000", "infinite", "infinite"]
    assert returns == ["MiniGrid-B-v0", "0.5", "1", "0", "0", "0"]
    assert [line[0] for line in lines(text, "")].count("pong_10_fs30") == 3


def test_rules_for_ties_are_listed_where_they_differ(tmp_path: Path) -> None:
    own = {"value": 2.0, "k": 1, "m": 10, "kind": "exact"}
    found = {
        "easier": {
            "lowest": {"value": 1.0, "k": 1, "m": 1, "kind": "exact"},
            "adversarial": {"reason": "not affordable"},
        },
        "harder": {"lowest": own, "adversarial": {"value": 2.3, "k": 1, "m": 20, "kind": "upper", "reason": "k = 4"}},
        "same": {"lowest": own, "adversarial": own},
        "older": None,
    }
    given = [analysis(name) for name in found]
    for content, by_ties in zip(given, found.values(), strict=True):
        if by_ties is not None:
            content["analysis"]["exact_by_ties"] = by_ties
    data = study_data(results_directory(tmp_path / "results", given, []))
    text = pages((data, *tables_by_rule(data, num_resamples=RESAMPLES)))["lists.md"]
    section = text.split("## Ties", 1)[1].split("## Bounds", 1)[0]
    assert "For 1 of the 3 MDPs with an exact H, all three give the same" in section
    rows = [[cell.replace("\u00a0", " ") for cell in row] for row in lines(section, "")]
    shown = {row[0]: row[1:] for row in rows if row[0] in found}
    assert shown["harder"] == ["H = 2.00 (k = 1, m = 10)"] * 2 + ["H ≤ 2.30 (k = 1, m = 20)"]
    assert shown["easier"][1] == "H = 1.00 (k = 1, m = 1)"
    assert shown["easier"][2].startswith(MISSING)
    assert "not affordable" in section
    assert set(shown) == {"easier", "harder"}
    assert "## Ties" not in pages((data, *tables_by_rule(data, num_resamples=RESAMPLES)))["tables.md"]


def test_a_study_of_nothing_but_theory(tmp_path: Path) -> None:
    data = study_data(results_directory(tmp_path / "results", [analysis("a"), analysis("b")], []))
    text = pages((data, *tables_by_rule(data, num_resamples=RESAMPLES)))["tables.md"]
    assert lines(text, "MiniGrid") == [["MiniGrid", "2", "1", "not run", "not run", "not run"]]
    assert text.count("was not run.") == 2
    assert "All MDPs are from MiniGrid: the tables above are about this suite alone." in text


def test_a_baseline_on_fewer_mdps_says_so(tmp_path: Path) -> None:
    names = [f"m{i}" for i in range(6)]
    rows = [row(name, sample_complexity=1000 * (i + 1)) for i, name in enumerate(names)]
    rows += [row(name, "dqn", sample_complexity=500 * (i + 1)) for i, name in enumerate(names[:2])]
    analyses = [analysis(name, horizon_value=1.0 + i / 3, game=name) for i, name in enumerate(names)]
    data = study_data(results_directory(tmp_path / "results", analyses, rows))
    text = pages((data, *tables_by_rule(data, num_resamples=RESAMPLES)))["tables.md"]
    shown = lines(text, "DQN, empirical")
    assert {line[0] for line in shown} == {"DQN, empirical (on 2 of the 6 MDPs)"}


def test_the_order_of_bounds_is_not_that_of_the_file(tmp_path: Path) -> None:
    """An export sorts the fields of an analysis; the pages stay as they are."""

    def turned(content: dict[str, Any]) -> dict[str, Any]:
        return {name: turned(value) if isinstance(value, dict) else value for name, value in reversed(content.items())}

    names = [f"m{i}" for i in range(6)]
    analyses = [analysis(name, horizon_value=1.0 + i / 3, game=name) for i, name in enumerate(names)]
    rows = [row(name, sample_complexity=1000 * (i + 1)) for i, name in enumerate(names)]
    found = []
    for number_, made in enumerate((analyses, [turned(each) for each in analyses])):
        data = study_data(results_directory(tmp_path / str(number_), made, rows))
        found.append(pages((data, *tables_by_rule(data, num_resamples=RESAMPLES))))
    assert found[0] == found[1]


def test_unbroken() -> None:
    assert unbroken("> 5 000") == ">\xa05\xa0000"
