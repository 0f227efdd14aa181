"""The committed study: its tables and figures follow from its committed rows, to the byte (`make study`)."""

from __future__ import annotations

from pathlib import Path

import pytest
import study_claims

from efhorizon.evaluation.source import study_data
from efhorizon.evaluation.summary_csv import FILE, read_summaries

ROOT = Path(__file__).parents[1]
ROWS, PAGES = ROOT / "data" / "study", ROOT / "docs" / "study"

pytestmark = pytest.mark.skipif(not ROWS.exists(), reason="no study is committed yet (data/study)")


@pytest.fixture(scope="module")
def numbers() -> study_claims.Numbers:
    """Everything that is computed from the rows; it takes some seconds."""
    pytest.importorskip("pyarrow", exc_type=ImportError)
    pytest.importorskip("jinja2")
    return study_claims.Numbers.of(study_data(ROWS))


def test_tables_and_figures_follow_from_the_rows(numbers: study_claims.Numbers) -> None:
    from efhorizon.render.markdown import publication

    made = publication(numbers.data, numbers.learnt, numbers.paper)
    assert {"tables.md", "lists.md"} < set(made)
    different = [
        name
        for name, content in made.items()
        if not (PAGES / name).is_file() or (PAGES / name).read_bytes() != content.encode()
    ]
    assert different == [], "make study writes them anew"


def test_every_claim_of_the_text_follows_from_the_rows(numbers: study_claims.Numbers) -> None:
    found = study_claims.claims(numbers)
    text = " ".join(study_claims.STUDY.read_text(encoding="utf-8").split())
    assert [claim.text for claim in found if claim.text not in text] == []
    assert study_claims.PAGE.read_text(encoding="utf-8") == study_claims.page(found)


def test_no_number_of_the_results_stands_outside_a_claim(numbers: study_claims.Numbers) -> None:
    text = " ".join(study_claims.STUDY.read_text(encoding="utf-8").split())
    section = text.split("## What came out")[1].split("## What changed since")[0]
    for claim in sorted(study_claims.claims(numbers), key=lambda claim: -len(claim.text)):
        section = section.replace(claim.text, "")
    assert [word for word in section.split() if any(letter.isdigit() for letter in word)] == []


def test_every_committed_figure_is_still_made_and_shown() -> None:
    text = "".join((PAGES / name).read_text(encoding="utf-8") for name in ("tables.md", "full-length.md"))
    assert [path.name for path in (PAGES / "figures").glob("*.svg") if f'src="figures/{path.name}"' not in text] == []


def test_summary_follows_from_the_rows() -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    assert read_summaries(ROWS / FILE) == study_data(ROWS).summaries
