"""The committed study: its tables and figures follow from its committed rows, to the byte (`make study`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from efhorizon.commands import main
from efhorizon.evaluation.source import study_data
from efhorizon.evaluation.summary_csv import FILE, read_summaries

ROOT = Path(__file__).parents[1]
ROWS, PAGES = ROOT / "data" / "study", ROOT / "docs" / "study"

pytestmark = pytest.mark.skipif(not ROWS.exists(), reason="no study is committed yet (data/study)")


def test_tables_and_figures_follow_from_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    assert main(["evaluate", str(ROWS), "--publish", str(tmp_path)]) == 0
    capsys.readouterr()
    made = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"tables.md", "lists.md"} < set(made)
    different = [
        name for name, content in made.items() if not (PAGES / name).is_file() or (PAGES / name).read_bytes() != content
    ]
    assert different == [], "make study writes them anew"


def test_every_committed_figure_is_still_made_and_shown() -> None:
    text = (PAGES / "tables.md").read_text(encoding="utf-8")
    assert [path.name for path in (PAGES / "figures").glob("*.svg") if f'src="figures/{path.name}"' not in text] == []


def test_summary_follows_from_the_rows() -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    assert read_summaries(ROWS / FILE) == study_data(ROWS).summaries
